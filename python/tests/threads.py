"""A process that gets no more threads: what needs one fails, and the group lives.
torchrun --nproc-per-node 2 threads.py"""

import contextlib
import ctypes
import os
import time

import torch
import torch.distributed as dist

import common
from common import raises


LIBC = ctypes.CDLL(None)


def set_stack(size):
    """Of threads that are made from now on. One that no machine has stands for a limit on threads: root has none."""
    attributes = ctypes.create_string_buffer(256)
    for status in (LIBC.pthread_attr_init(attributes),
                   LIBC.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size)),
                   LIBC.pthread_setattr_default_np(attributes)):
        assert status == 0, os.strerror(status)


@contextlib.contextmanager
def no_thread():
    set_stack(1 << 46)
    try:
        yield
    finally:
        set_stack(8 << 20)


def first_future(rank, size):
    """Rank 1 comes later, so that rank 0's future is not complete when it is made."""
    if rank == 1:
        time.sleep(2)
        dist.all_reduce(torch.ones(10))
        return
    x = torch.ones(10)
    with no_thread():
        work = dist.all_reduce(x, async_op=True)
        future = work.get_future()
        raises(RuntimeError, ["no thread could be made", "raise the limit"], future.wait)
        work.wait()  # its result is there
    assert x[9] == size


def later_futures(rank, size):
    for _ in range(3):
        x = torch.ones(10)
        dist.all_reduce(x, async_op=True).get_future().then(lambda _: None).wait()
        assert x[9] == size


def no_group(rank, size):
    """The rank that cannot make it is told at once, the others by it."""
    words = ["no thread could be made for a process group"]
    if rank == 0:
        with no_thread():
            raises(RuntimeError, words, dist.new_group)
    else:
        group = dist.new_group()
        raises(dist.DistBackendError, ["rank 0 could not make the group", *words], dist.all_reduce, torch.ones(1),
               dist.ReduceOp.SUM, group)


def main():
    rank, size = common.begin()
    assert size == 2
    cases = common.Cases()
    dist.all_reduce(torch.ones(10))  # which makes the group's own threads
    for case in (first_future, later_futures, no_group, later_futures):
        cases.run(case.__name__, case, rank, size)
    cases.end()


main()
