"""Runs the tests of the backend with this Python, and counts them.

usage: run.py [--suite] [NAME…]    only tests whose name has one of these texts; with --suite also those of PyTorch
The last line is "N passed, N failed, N skipped". A test prints lines "passed: …", "failed: …" and "skipped: …"; one
that ends otherwise, or takes longer than its limit, has failed.
"""

import os
import pathlib
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
LIMIT, SUITE_LIMIT = 300, 1200  # seconds

# of a process on the fake of libcuda, with a library that has the fake's kernels; scripts/test-torch.sh names both
DOUBLE = {} if "MESHCOLL_DOUBLE" not in os.environ else {
    "MESHCOLL_TEST_DOUBLE": os.environ["MESHCOLL_DOUBLE"],
    "MESHCOLL_LIBCUDA": os.environ["MESHCOLL_FAKECUDA"],
    "LD_LIBRARY_PATH": os.environ["MESHCOLL_ON_DOUBLE"],
}
SHARED, OWN = {"FAKE_GPUS": "1"}, {"FAKE_GPUS": "4"}  # all ranks on one GPU, or each on its own

# name, file and arguments, ranks (0: starts its own), environment
TESTS = [
    ("texts", "texts.py", 0, {}),
    ("ops, 4 ranks", "ops.py", 4, {}),
    ("ops, 2 boxes of 2 ranks", "ops.py", 4, {"MESHCOLL_MESH": "box=2,gpu=2"}),
    ("ops, 3 ranks over TCP", "ops.py", 3, {"MESHCOLL_MESH": "gpu=3", "MESHCOLL_TRANSPORTS": "gpu=tcp,self"}),
    ("ops, 1 rank", "ops.py", 1, {}),
    ("ops, 8 ranks", "ops.py", 8, {}),
    ("arguments, 4 ranks", "arguments.py", 4, {}),
    ("arguments, 3 ranks", "arguments.py", 3, {}),
    ("training, 2 ranks", "training.py", 2, {}),
    ("training, 4 ranks", "training.py", 4, {}),
    *[(f"callbacks, {ranks} ranks", "callbacks.py", ranks, {}) for ranks in (2, 4)],
    ("groups", "groups.py", 3, {}),
    ("regroup", "regroup.py", 4, {}),
    *[(f"limits, {case}", f"limits.py {case}", 2, {}) for case in ("late", "impatient", "aborted")],
    ("leaves", "leaves.py", 2, {}),
    ("stores", "stores.py", 0, {}),
    ("forked", "forked.py", 0, {}),
    ("threads", "threads.py", 2, {}),
    ("killed", "killed.py", 0, {}),
    ("many groups", "many.py", 2, {}),
    ("polls", "polls.py", 0, {}),
    ("wheel", "wheel.py", 0, {}),
]
ON_GPUS = [
    ("GPUs, ops, 4 ranks", "ops.py", 4, OWN),
    ("GPUs, ops, 4 ranks on one", "ops.py", 4, SHARED),
    ("GPUs, ops, 2 ranks", "ops.py", 2, OWN),
    ("GPUs, ops, 1 rank", "ops.py", 1, OWN),
    ("GPUs, streams, 2 ranks", "gpu.py", 2, OWN),
    ("GPUs, streams, 4 ranks on one", "gpu.py", 4, SHARED),
    ("GPUs, streams, cuda:meshcoll", "gpu.py cuda:meshcoll", 2, OWN),
    ("GPUs, streams, beside Gloo", "gpu.py cpu:gloo,cuda:meshcoll", 2, OWN),
    ("GPUs, streams, cuda:meshcoll,cpu:meshcoll", "gpu.py cuda:meshcoll,cpu:meshcoll", 2, OWN),
    *[(f"GPUs, limits, {case}, {where}", f"gpu_limits.py {case}", 2, gpus)
      for case in ("late", "unwatched", "first", "impatient", "barrier", "aborted")
      for where, gpus in (("each its own", OWN), ("2 ranks on one", SHARED))],
    ("GPUs, no libcuda", "gpu_limits.py without_libcuda", 2, {"MESHCOLL_LIBCUDA": "off"}),
    ("GPUs, killed", "killed.py", 0, OWN),
    ("GPUs, killed, ranks on one", "killed.py", 0, SHARED),
]
SUITE = [(f"PyTorch's tests, {ranks} ranks", f"suite.py {ranks}", 0, {}) for ranks in (4, 8)]
SUITE.append(("PyTorch's tests of Gloo", "gloo_suite.py", 0, {"DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "60"}))


def command(file, ranks):
    name, *arguments = file.split()
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks else []
    return [sys.executable, *launcher, str(HERE / name), *arguments]


def output_of(file, ranks, environment, limit):
    """Its output and exit status; None where it took too long."""
    job = subprocess.Popen(command(file, ranks), env={**os.environ, "OMP_NUM_THREADS": "1", "MESHCOLL_CALIBRATE": "off",
                                                         **environment}, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        return job.communicate(timeout=limit)[0], job.returncode
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        return job.communicate()[0], None


def main():
    count = {"passed": 0, "failed": 0, "skipped": 0}
    names = [text for text in sys.argv[1:] if text != "--suite"]
    on_gpus = [(name, file, ranks, {**DOUBLE, **more}) for name, file, ranks, more in ON_GPUS if DOUBLE]
    if not DOUBLE:
        print("skipped: GPUs: " + os.environ.get("MESHCOLL_NO_DOUBLE", "run them by scripts/test-torch.sh"))
        count["skipped"] += 1
    for name, file, ranks, environment in TESTS + on_gpus + (SUITE if "--suite" in sys.argv else []):
        if names and not any(text in name for text in names):
            continue
        limit = SUITE_LIMIT if file.startswith(("suite.py", "gloo_suite.py", "wheel.py")) else LIMIT
        out, status = output_of(file, ranks, environment, limit)
        words = [line.split(":")[0] for line in out.splitlines()]
        found = {word: words.count(word) for word in count}
        if found["failed"] == 0 and (status != 0 or sum(found.values()) == 0):
            found["failed"] = 1
        for word in count:
            count[word] += found[word]
        print(f"{name}: " + ", ".join(f"{n} {word}" for word, n in found.items() if n), flush=True)
        for line in out.splitlines():
            if line.startswith("skipped:"):
                print(line)
        if found["failed"]:
            print(out)
            print(f"{name}: " + (f"was ended after {limit} s" if status is None else f"exit status {status}"))
    print(", ".join(f"{n} {word}" for word, n in count.items()))
    sys.exit(count["failed"] > 0)


main()
