"""What one rank's arguments alone decide: outputs that overlap inputs, entries that overlap one another, refusals after
which the group lives, and ids of devices without a device. torchrun --nproc-per-node 4 arguments.py"""

import torch
import torch.distributed as dist

import common
from common import raises

SIZES = [1, 3, 1000, 300_000]  # elements of a block: eager, in slots, segmented


def part(rank, count):
    return torch.arange(count, dtype=torch.float32) + 1e6 * (rank + 1)


def shifts(size, count):
    """Where a block of `count` elements may lie in a buffer of `size` blocks, in elements."""
    return sorted({0, 1, count // 2, count, count * (size - 1), max(count * (size - 1) - 1, 0)})


def gathered(size, count):
    return torch.cat([part(r, count) for r in range(size)])


def all_gathers(rank, size):
    """The input is a part of the output, somewhere."""
    for count in SIZES:
        for at in shifts(size, count):
            for how in ("tensor", "list"):
                buffer = torch.zeros(size * count)
                mine = buffer[at:at + count]
                mine.copy_(part(rank, count))
                if how == "tensor":
                    dist.all_gather_into_tensor(buffer, mine)
                else:
                    dist.all_gather(list(buffer.chunk(size)), mine)
                assert torch.equal(buffer, gathered(size, count)), f"{how}, {count} elements, input at {at}"


def uneven(rank, size):
    counts = [1000 * (r + 1) for r in range(size)]
    whole = torch.cat([part(r, n) for r, n in enumerate(counts)])
    own = sum(counts[:rank])
    for at in (0, own, whole.numel() - counts[rank]):
        buffer = torch.zeros(whole.numel())
        mine = buffer[at:at + counts[rank]]
        mine.copy_(part(rank, counts[rank]))
        dist.all_gather(list(buffer.split(counts)), mine)
        assert torch.equal(buffer, whole), f"input at {at}"
        inputs = whole.clone()
        output = inputs[at:at + counts[rank]]
        dist.reduce_scatter(output, list(inputs.split(counts)))
        assert torch.equal(output, size * part(rank, counts[rank])), f"output at {at}"


def gathers(rank, size):
    for count in SIZES:
        for root in (0, size - 1):
            for at in shifts(size, count):
                buffer = torch.zeros(size * count)
                mine = buffer[at:at + count]
                mine.copy_(part(rank, count))
                dist.gather(mine, list(buffer.chunk(size)) if rank == root else None, root)
                if rank == root:
                    assert torch.equal(buffer, gathered(size, count)), f"gather, {count} elements, input at {at}"
                buffer = gathered(size, count)
                mine = buffer[at:at + count]
                dist.scatter(mine, list(buffer.chunk(size)) if rank == root else None, root)
                assert torch.equal(mine, part(rank, count)), f"scatter, {count} elements, output at {at}"


def reduce_scatters(rank, size):
    for count in SIZES:
        for at in shifts(size, count):
            for how in ("tensor", "list"):
                buffer = gathered(size, count)
                mine = buffer[at:at + count]
                if how == "tensor":
                    dist.reduce_scatter_tensor(mine, buffer)
                else:
                    dist.reduce_scatter(mine, list(buffer.chunk(size)))
                assert torch.equal(mine, size * part(rank, count)), f"{how}, {count} elements, output at {at}"


def all_to_alls(rank, size):
    for count in SIZES:
        want = torch.cat([part(r, count) + rank for r in range(size)])
        for at in (0, 1, count, size * count):  # the output begins behind the input
            for splits in (None, [count] * size):
                buffer = torch.zeros(2 * size * count)
                inputs, output = buffer[:size * count], buffer[at:at + size * count]
                inputs.copy_(torch.cat([part(rank, count) + r for r in range(size)]))
                dist.all_to_all_single(output, inputs, splits, splits)
                assert torch.equal(output, want), f"{count} elements, output at {at}, splits {splits}"


def layouts(rank, size):
    """Inputs and outputs that are strided views of one buffer."""
    for count in (4, 1000):
        makes = {
            "columns": lambda b: (b.view(size * count, 2)[:, 0], b.view(size * count, 2)[:count, 1]),
            "the same columns": lambda b: (b.view(size * count, 2)[:, 0], b.view(size * count, 2)[:count, 0]),
            "every second": lambda b: (b[:size * count], b[:2 * count:2]),
            "every second of both": lambda b: (b[::2], b[1:2 * count:2]),
            "transposed": lambda b: (b[:size * count], b[:count].view(2, -1).t()),
        }
        for name, views in makes.items():
            buffer = torch.zeros(2 * size * count)
            output, mine = views(buffer)
            want = part(rank, count).view(mine.shape)
            mine.copy_(want)
            everyone = torch.cat([part(r, count) for r in range(size)])
            dist.all_gather(list(output.chunk(size)), mine.reshape(-1) if mine.dim() > 1 else mine)
            assert torch.equal(output, everyone), f"{name}, {count} elements"


def views(buffer, count):
    """Of 4 times `count` elements: lists whose entries share memory."""
    return {
        "one tensor twice": [buffer, buffer],
        "parts that overlap": [buffer[:3 * count], buffer[count:]],
        "a whole and its parts": [buffer[:count], buffer, buffer[2 * count:]],
        "every second and all": [buffer[::2], buffer],
        "all and every second": [buffer, buffer[1::2]],
        "two columns and a row": [buffer.view(-1, 2)[:, 0], buffer.view(-1, 2)[:, 1], buffer[:2]],
        "apart": [buffer[:count], buffer[count:3 * count], buffer[3 * count:]],
    }


def shared_sums(rank, size):
    """Entries of a list are summed as they were before the call."""
    for count in SIZES:
        for name in views(torch.zeros(4 * count), count):
            for _ in range(3):
                buffer = part(rank, 4 * count)
                dist.group.WORLD.allreduce_coalesced(views(buffer, count)[name]).wait()
                assert torch.equal(buffer, sum(part(r, 4 * count) for r in range(size))), f"{name}, {count} elements"


def shared_blocks(rank, size):
    """The output of an entry is the input of another, before it and behind it."""
    pg = dist.group.WORLD
    for count in SIZES:
        def inputs_in(buffer):
            return [torch.empty(size * count), buffer, torch.empty(size * count)], \
                   [buffer[count:2 * count], part(rank, count), buffer[:count]]
        buffer = gathered(size, count) + rank
        outputs, inputs = inputs_in(buffer)
        want = [torch.cat([part(1, count) + r for r in range(size)]), gathered(size, count),
                torch.cat([part(0, count) + r for r in range(size)])]
        pg.allgather_into_tensor_coalesced(outputs, inputs).wait()
        assert all(map(torch.equal, outputs, want)), f"all-gather of {count} elements"
        buffer = gathered(size, count) + rank
        outputs, inputs = inputs_in(buffer)
        lists = [list(output.chunk(size)) for output in outputs]
        pg.allgather_coalesced([[of[r] for of in lists] for r in range(size)], inputs).wait()
        assert all(map(torch.equal, outputs, want)), f"all-gather of lists of {count} elements"
        buffer = gathered(size, count)
        first, second = buffer[:count], torch.empty(count)
        pg.reduce_scatter_tensor_coalesced([first, second], [buffer.clone(), buffer]).wait()
        for output in (first, second):
            assert torch.equal(output, size * part(rank, count)), f"reduce-scatter of {count} elements"


def one_rank_differs(rank, size):
    """In place on one rank, elsewhere on others."""
    for count in SIZES:
        buffer = torch.zeros(size * count)
        at = {0: 0, 1: 0}.get(rank)  # in place on rank 0
        mine = torch.zeros(count) if at is None else buffer[at:at + count]
        mine.copy_(part(rank, count))
        dist.all_gather_into_tensor(buffer, mine)
        assert torch.equal(buffer, gathered(size, count)), f"{count} elements"


def freed(tensor):
    tensor.untyped_storage().resize_(0)
    return tensor


def refusals(size):
    n = torch.ones
    four = [1] * size
    return {
        "memory that was given back": (["given back"], lambda: dist.all_reduce(freed(n(8)))),
        "output given back": (["given back"], lambda: dist.all_gather_into_tensor(freed(n(4 * size)), n(4))),
        "expanded": (["one place"], lambda: dist.all_reduce(n(1).expand(8))),
        "expanded output": (["one place"], lambda: dist.all_gather_into_tensor(n(1).expand(4 * size), n(4))),
        "expanded outputs": (["one place"], lambda: dist.all_gather([n(1).expand(4)] * size, n(4))),
        "expanded broadcast": (["one place"], lambda: dist.broadcast(n(1).expand(4), 0)),
        "own block": (["rank 1", "itself 2", "expects 1"], lambda: dist.all_to_all_single(
            n(size), n(size + 1), four, [1, 2] + four[2:])),
        "tag": (["tag"], lambda: dist.isend(n(1), 0, tag=-1)),
        "tag of a receive": (["tag"], lambda: dist.irecv(n(1), 0, tag=-1)),
    }


def refused_on_one(rank, size):
    """Each is an error on rank 1 alone, before anything was sent; then the group goes on."""
    for name, (words, call) in refusals(size).items():
        if rank == 1:
            try:
                raises(ValueError, words, call)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None
        x = torch.full((10,), float(rank))
        dist.all_reduce(x)
        assert x[9] == size * (size - 1) / 2, name


def barrier_ids(rank, size):
    """As programs written for GPUs call it."""
    dist.barrier(device_ids=[0])
    dist.barrier(device_ids=[rank], async_op=True).wait()


def main():
    rank, size = common.begin()
    assert size >= 2
    cases = common.Cases()
    for case in (all_gathers, uneven, gathers, reduce_scatters, all_to_alls, layouts, shared_sums, shared_blocks,
                 one_rank_differs, refused_on_one, barrier_ids):
        cases.run(case.__name__, case, rank, size)
    cases.end()


main()
