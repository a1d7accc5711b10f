"""Groups of two of three ranks, made and used in a circle: no rank's order suits the others.
torchrun --nproc-per-node 3 groups.py"""

import torch
import torch.distributed as dist

import common
from meshcoll import _torch

PAIRS = {"a": (0, 1), "b": (1, 2), "c": (0, 2)}
ORDER = {0: "ac", 1: "ba", 2: "cb"}  # rank 0 waits for 1 in a, 1 for 2 in b, 2 for 0 in c


def operations_in_a_circle(rank):
    pair = {name: dist.new_group(ranks) for name, ranks in PAIRS.items()}
    for _ in range(20):
        x = {name: torch.full((1000,), float(rank)) for name in ORDER[rank]}
        works = [dist.all_reduce(x[name], group=pair[name], async_op=True) for name in ORDER[rank]]
        for work in works:
            work.wait()
        for name in ORDER[rank]:
            assert x[name][999] == sum(PAIRS[name]), f"{name}: {x[name][999]}"


def creation_in_a_circle(rank):
    store = dist.distributed_c10d._get_default_store()
    backends, tensors, works = [], [], []
    for name in ORDER[rank]:
        ranks = PAIRS[name]
        backends.append(_torch.create(store=dist.PrefixStore(f"circle/{name}", store), rank=ranks.index(rank), size=2,
                                      timeout=30.0, mesh=None, name=name, tag=0))
        tensors.append(torch.full((1000,), float(rank)))
        works.append(backends[-1].allreduce([tensors[-1]]))
    for work in works:
        work.wait()
    for name, x in zip(ORDER[rank], tensors):
        assert x[999] == sum(PAIRS[name]), f"{name}: {x[999]}"
    for backend in backends:  # in a circle, too
        backend.shutdown()


def main():
    rank, size = common.begin(seconds=30)
    assert size == 3
    cases = common.Cases()
    cases.run("operations begun in a circle", operations_in_a_circle, rank)
    cases.run("groups made in a circle", creation_in_a_circle, rank)
    cases.end()


main()
