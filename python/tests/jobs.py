"""What the tests share that start jobs themselves: how their tests are chosen, run and counted."""

import os
import signal
import subprocess
import sys
import time


def end(jobs):
    """Kills what is left of jobs that were started in sessions of their own."""
    for job in jobs:
        try:
            os.killpg(job.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        job.wait()


def outputs(commands, seconds):
    """Runs (command, environment) at the same time; returns the output and exit status of each."""
    jobs = [subprocess.Popen(command, env=environment, text=True, start_new_session=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT) for command, environment in commands]
    try:
        return [(job.communicate(timeout=seconds)[0], job.returncode) for job in jobs]
    finally:
        end(jobs)


def main(tests):
    """Runs those of the tests {name: function} that the command line chooses. A function returns why it was skipped, if
    it was. The last line is "N passed, N failed, N skipped"."""
    count = {"passed": 0, "failed": 0, "skipped": 0}
    texts = [text for text in sys.argv[1:] if not text.startswith("--")]  # options are for the other files
    for name, test in tests.items():
        if texts and not any(text in name for text in texts):
            continue
        try:
            why = test()
        except (AssertionError, subprocess.TimeoutExpired) as error:
            count["failed"] += 1
            print(f"failed: {name}\n{error}", flush=True)
            continue
        count["skipped" if why else "passed"] += 1
        print(f"skipped: {name}: {why}" if why else f"passed: {name}", flush=True)
    print(", ".join(f"{n} {word}" for word, n in count.items()))
    sys.exit(count["failed"] > 0)


def run_case(name, number_of_ranks, seconds):
    """Runs a function of this file on so many ranks, each `FILE NAME RANK PORT`, PORT being that of a store. True: one has
    failed."""
    import torch.distributed as dist

    host = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    ranks = [
        subprocess.Popen([sys.executable, sys.argv[0], name, str(rank), str(host.port)], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        for rank in range(number_of_ranks)
    ]
    limit, bad = time.monotonic() + seconds, []
    for number, rank in enumerate(ranks):
        try:
            out = rank.communicate(timeout=max(limit - time.monotonic(), 1))[0]
        except subprocess.TimeoutExpired:
            os.killpg(rank.pid, signal.SIGKILL)
            out = rank.communicate()[0] + "\n(killed: it took too long)"
        if rank.returncode != 0:
            bad.append(f"rank {number}, exit status {rank.returncode}:\n{out}")
    print(f"{'failed' if bad else 'passed'}: {name}", *bad, sep="\n  ", flush=True)
    return bool(bad)


def main_of_cases(cases, number_of_ranks, seconds, others=()):
    """What a file of such functions does: as a rank, or for all of them, or those that its arguments name. `others` are
    run by ranks alone."""
    import torch

    import meshcoll.torch  # noqa: F401

    torch.set_num_threads(1)
    by_name = {case.__name__: case for case in cases}
    of_ranks = by_name | {case.__name__: case for case in others}
    if sys.argv[2:] and sys.argv[2].isdigit():
        of_ranks[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(any([run_case(name, number_of_ranks, seconds) for name in by_name
                      if name in sys.argv[1:] or len(sys.argv) == 1]))
