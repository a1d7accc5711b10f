"""Failures of calls on CUDA tensors: a rank is late, a wait is shorter, a group is aborted, there is no libcuda.
A group that fails ends all groups of its job, so that each case is a job. torchrun --nproc-per-node 2 gpu_limits.py
CASE"""

import datetime
import sys
import time

import torch
import torch.distributed as dist

import common
import device
from common import raises


def summed(group):
    """Enqueued, and the stream is complete."""
    dist.all_reduce(torch.ones(10), group=group)
    device.double.synchronize()


def late(rank, group):
    """The group's limit is 2 s. The stream ends then, and the next call says why."""
    summed(group)
    if rank == 1:
        time.sleep(6)
        return
    begin = time.monotonic()
    summed(group)
    assert 1.5 < time.monotonic() - begin < 5, f"after {time.monotonic() - begin} s"
    raises(dist.DistBackendError, ["all_reduce", "2 s"], dist.all_reduce, torch.ones(10), dist.ReduceOp.SUM, group)


def unwatched(rank, group):
    """A work whose end nobody asks for learns of the failure."""
    summed(group)
    if rank == 1:
        time.sleep(5)
        return
    work = dist.all_reduce(torch.ones(10), group=group, async_op=True)
    time.sleep(3.5)
    raises(dist.DistBackendError, ["all_reduce", "2 s"], work.wait)
    assert work.is_completed()
    raises(dist.DistBackendError, ["all_reduce"], work.get_future().wait)


def impatient(rank, group):
    """The wait's limit is 1 s, the group's a minute."""
    summed(group)
    work = dist.all_reduce(torch.ones(10), group=group, async_op=True) if rank == 0 else None
    if rank == 1:
        time.sleep(4)
        raises(dist.DistBackendError, ["rank 0 aborted", "1 s"], summed, group)
        return
    begin = time.monotonic()
    raises(dist.DistBackendError, ["all_reduce", "1 s"], work.wait, datetime.timedelta(seconds=1))
    assert 0.5 < time.monotonic() - begin < 3.5, f"after {time.monotonic() - begin} s"


def barrier(rank, group):
    """A barrier's own limit is 1 s: the host waits, and raises."""
    device_ids = [torch.cuda.current_device()]
    dist.barrier(group=group, device_ids=device_ids)
    if rank == 1:
        time.sleep(4)
        return
    begin = time.monotonic()
    raises(dist.DistBackendError, ["barrier", "1 s"], dist.barrier, group, False, device_ids,
           datetime.timedelta(seconds=1))
    assert 0.5 < time.monotonic() - begin < 3.5, f"after {time.monotonic() - begin} s"


def aborted(rank, group):
    summed(group)
    if rank == 1:
        time.sleep(1)
        group.abort() if hasattr(group, "abort") else group._get_backend(torch.device("cuda")).abort()
        return
    begin = time.monotonic()
    device_ids = [torch.cuda.current_device()]
    raises(dist.DistBackendError, ["rank 1 aborted"], dist.barrier, group, False, device_ids)
    assert time.monotonic() - begin < 4, f"after {time.monotonic() - begin} s"


def first(rank, group):
    """The first call waits for all ranks; one that does not come is noticed at the end of the limit of 2 s."""
    if rank == 1:
        time.sleep(6)
        return
    begin = time.monotonic()
    raises(dist.DistBackendError, ["all_reduce", "rank 1"], summed, group)
    assert 1.5 < time.monotonic() - begin < 5, f"after {time.monotonic() - begin} s"


def without_libcuda(rank, group):
    raises(dist.DistBackendError, ["all_reduce", "no CUDA driver"], summed, group)


def main():
    rank, size = common.begin()
    assert size == 2
    case, cases = sys.argv[1], (late, unwatched, first, impatient, barrier, aborted, without_libcuda)
    is_short = case in ("late", "unwatched", "first")
    if case != "without_libcuda":
        dist.barrier()  # what is made at the same time would not be of one job
    group = dist.new_group(timeout=datetime.timedelta(seconds=2)) if is_short else dist.new_group()
    {one.__name__: one for one in cases}[case](rank, group)
    common.end_of(case, has_failed=case != "without_libcuda")


main()
