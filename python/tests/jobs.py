"""What the tests share that start jobs themselves: how their tests are chosen, run and counted."""

import os
import signal
import subprocess
import sys


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
