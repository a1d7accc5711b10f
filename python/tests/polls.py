"""A poll of a work that is not complete yields: where ranks share cores, those that it waits for have no other. Starts its
ranks itself, with a library preloaded that counts the calls of sched_yield."""

import ctypes
import datetime
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import jobs

RANKS, LIMIT, POLLS = 2, 60, 1000

COUNTER = """
#include <sys/syscall.h>
#include <unistd.h>
static _Thread_local long n;
int sched_yield(void) { n++; return (int)syscall(SYS_sched_yield); }
long yields_of_this_thread(void) { return n; }
"""


def is_completed(rank, port):
    import torch
    import torch.distributed as dist

    yields = ctypes.CDLL(None).yields_of_this_thread
    yields.restype = ctypes.c_long
    store = dist.TCPStore("127.0.0.1", port, None, False)
    dist.init_process_group("meshcoll", store=store, rank=rank, world_size=RANKS,
                            timeout=datetime.timedelta(seconds=LIMIT))
    x = torch.ones(10)
    dist.all_reduce(x)
    if rank == 1:  # the other one has polled in vain
        store.wait(["polled"])
    work = dist.all_reduce(x, async_op=True)
    if rank == 0:
        before = yields()
        assert not any(work.is_completed() for _ in range(POLLS))
        assert yields() - before == POLLS, f"{yields() - before} yields in {POLLS} polls"
        store.set("polled", "")
    while not work.is_completed():
        time.sleep(0.001)
    before = yields()
    assert work.is_completed() and yields() == before
    assert x[9] == RANKS * RANKS
    dist.destroy_process_group()


def main():
    if not shutil.which("cc"):
        print("skipped: is_completed: there is no cc")
        return
    if "yields.so" in os.environ.get("LD_PRELOAD", ""):
        jobs.main_of_cases([is_completed], RANKS, LIMIT - 10)
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = pathlib.Path(folder, "yields.c"), pathlib.Path(folder, "yields.so")
        source.write_text(COUNTER)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        sys.exit(subprocess.run([sys.executable, *sys.argv], env={**os.environ, "LD_PRELOAD": str(library)},
                                check=False).returncode)


main()
