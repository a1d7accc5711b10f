"""A job that ends without destroy_process_group. torchrun --nproc-per-node 2 leaves.py"""

import torch
import torch.distributed as dist

import common

rank, size = common.begin()
x = torch.ones(1000)
dist.all_reduce(x)
assert x[0] == size
if rank == 0:
    print("passed: without destroy_process_group", flush=True)
