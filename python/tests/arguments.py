"""Arguments that programs for other backends pass. torchrun --nproc-per-node 4 arguments.py"""

import torch.distributed as dist

import common


def barrier_ids(rank, size):
    """As programs written for GPUs call it."""
    dist.barrier(device_ids=[0])
    dist.barrier(device_ids=[rank], async_op=True).wait()


def main():
    rank, size = common.begin()
    assert size >= 2
    cases = common.Cases()
    for case in (barrier_ids,):
        cases.run(case.__name__, case, rank, size)
    cases.end()


main()
