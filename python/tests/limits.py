"""Time limits: a rank is late, and the others are told which one. A group that fails ends all groups of its job, so
that each case is a job. torchrun --nproc-per-node 2 limits.py CASE"""

import datetime
import sys
import time

import torch
import torch.distributed as dist

import common
from common import raises


def late(rank, group):
    """The group's limit is 2 s."""
    if rank == 1:
        time.sleep(5)
        return
    begin = time.monotonic()
    raises(dist.DistBackendError, ["all_reduce", "rank 1", "time limit of 2"], dist.all_reduce, torch.ones(10),
           dist.ReduceOp.SUM, group)
    assert 1.5 < time.monotonic() - begin < 4.5, f"after {time.monotonic() - begin} s"
    raises(dist.DistBackendError, ["rank 1"], dist.all_reduce, torch.ones(10), dist.ReduceOp.SUM, group)


def impatient(rank, group):
    """The wait's limit is 1 s, the group's a minute."""
    work = dist.all_reduce(torch.ones(10), group=group, async_op=True) if rank == 0 else None
    if rank == 1:
        time.sleep(4)
        return
    begin = time.monotonic()
    raises(dist.DistBackendError, ["all_reduce", "rank 1"], work.wait, datetime.timedelta(seconds=1))
    assert 0.5 < time.monotonic() - begin < 3.5, f"after {time.monotonic() - begin} s"


def aborted(rank, group):
    backend = group._get_backend(torch.device("cpu"))
    x = torch.ones(10)
    dist.all_reduce(x, group=group)
    if rank == 1:
        time.sleep(1)
        group.abort() if hasattr(group, "abort") else backend.abort()
        return
    begin = time.monotonic()
    raises(dist.DistBackendError, ["rank 1 aborted"], dist.all_reduce, x, dist.ReduceOp.SUM, group)
    assert time.monotonic() - begin < 4, f"after {time.monotonic() - begin} s"


def main():
    rank, size = common.begin()
    assert size == 2
    dist.barrier()  # what is made at the same time would not be of one job
    case = sys.argv[1]
    group = dist.new_group(timeout=datetime.timedelta(seconds=2 if case == "late" else 60))
    dist.all_reduce(torch.ones(1), group=group)
    {"late": late, "impatient": impatient, "aborted": aborted}[case](rank, group)
    common.end_of(case, has_failed=True)


main()
