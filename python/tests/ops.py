"""All operations of the backend against values that are computed directly. torchrun --nproc-per-node N ops.py"""

import datetime

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp
from torch.nn.parallel import DistributedDataParallel

import common
import device
from common import raises, same

COUNTS = [0, 1, 3, 7, 1000, 4097, 100003]

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
OPS = {
    "SUM": ReduceOp.SUM, "AVG": ReduceOp.AVG, "PRODUCT": ReduceOp.PRODUCT, "MIN": ReduceOp.MIN, "MAX": ReduceOp.MAX,
    "BAND": ReduceOp.BAND, "BOR": ReduceOp.BOR, "BXOR": ReduceOp.BXOR,
}
ARITHMETIC = {"SUM", "AVG", "PRODUCT"}
ORDER = {"MIN", "MAX"}
BITS = {"BAND", "BOR", "BXOR"}


def supported(dtype):
    if dtype in COMPLEX:
        return ARITHMETIC
    if dtype is torch.bool:
        return (ARITHMETIC | ORDER | BITS) - {"AVG"}
    return ARITHMETIC | ORDER | (BITS if dtype in INTS else set())


def wide(dtype):
    """A type in which small values are exact, and that torch can compute with."""
    if dtype in COMPLEX:
        return torch.complex128
    return torch.float64 if dtype in FLOATS else torch.int64


def values(rank, n, dtype):
    """What a rank contributes: 0, 1 and 2, so that sums and products are exact in every type."""
    index = torch.arange(n, dtype=torch.int64)
    small = (index * 7 + rank * 5 + index // 3) % 3
    if dtype is torch.bool:
        small = small % 2
    x = small.to(wide(dtype))
    if dtype in COMPLEX:
        x = x + 1j * ((index + rank) % 2).to(torch.float64)
    return x


def reduced(op, dtype, parts):
    """The result in `dtype` of `parts`, which are wide."""
    n = len(parts)
    x = torch.stack(parts)
    if op == "SUM":
        y = (x.sum(0) > 0).to(torch.int64) if dtype is torch.bool else x.sum(0)
    elif op == "AVG":
        y = torch.div(x.sum(0), n, rounding_mode="trunc") if dtype in INTS else x.sum(0) / n
        if dtype in FLOATS and dtype is not torch.float64:
            y = (x.sum(0).float() / n)
        if dtype is torch.complex64:
            y = x.sum(0).to(torch.complex64) / n
    elif op == "PRODUCT":
        y = x[0].clone()
        for part in x[1:]:
            y = y * part
    elif op in ORDER:
        y = x.amin(0) if op == "MIN" else x.amax(0)
    else:
        y = x[0].clone()
        for part in x[1:]:
            y = {"BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor}[op](y, part)
    return y.to(dtype)


def tensor(n, dtype, rank):
    return values(rank, n, dtype).to(dtype)


def options(op, kind=dist.AllreduceOptions):
    o = kind()
    o.reduceOp = op
    return o


# Reductions of every type ------------------------------------------------------------------------------------------


def each_type(rank, size, dtype):
    pg = dist.group.WORLD
    for name, op in OPS.items():
        for n in COUNTS[:5]:
            x = tensor(n, dtype, rank)
            if name not in supported(dtype):
                raises(ValueError, ["meshcoll"], pg.allreduce, [x], options(op))
                break
            pg.allreduce([x], options(op)).wait()
            same(x, reduced(name, dtype, [values(r, n, dtype) for r in range(size)]), f"{name} of {n} {dtype}")
    moved = [torch.zeros(5, dtype=dtype) for _ in range(size)]
    dist.all_gather(moved, tensor(5, dtype, rank))
    for r in range(size):
        same(moved[r], tensor(5, dtype, r), "all_gather")


def premul(rank, size):
    pg = dist.group.WORLD
    for dtype in [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.complex64]:
        x = tensor(1000, dtype, rank)
        pg.allreduce([x], options(dist._make_nccl_premul_sum(2.0))).wait()
        same(x, (2 * sum(values(r, 1000, dtype) for r in range(size))).to(dtype), f"PREMUL_SUM of {dtype}")
    factor = torch.tensor([0.5])
    x = tensor(100, torch.float32, rank)
    pg.allreduce([x], options(dist._make_nccl_premul_sum(factor))).wait()
    same(x, (0.5 * sum(values(r, 100, torch.float32) for r in range(size))).float(), "PREMUL_SUM by a tensor")


def counts(rank, size):
    for n in COUNTS:
        x = tensor(n, torch.float32, rank)
        dist.all_reduce(x)
        same(x, reduced("SUM", torch.float32, [values(r, n, torch.float32) for r in range(size)]), f"{n}")
    big = torch.full((3 << 20,), float(rank + 1))
    dist.all_reduce(big, op=ReduceOp.MAX)
    assert bool((big == size).all())


def coalesced(rank, size):
    pg = dist.group.WORLD
    xs = [tensor(n, torch.float32, rank) for n in COUNTS]
    o = dist.AllreduceCoalescedOptions()
    o.reduceOp = ReduceOp.SUM
    pg.allreduce_coalesced(xs, o).wait()
    for x, n in zip(xs, COUNTS):
        same(x, reduced("SUM", torch.float32, [values(r, n, torch.float32) for r in range(size)]), f"{n}")


def sparse(rank, size):
    """Two times: the first one makes a group of Gloo's."""
    torch.sparse.check_sparse_tensor_invariants.enable()  # else torch warns
    for step in range(2):
        x = torch.sparse_coo_tensor([[rank, size]], [1.0 + step, rank], (size + 1,))
        dist.all_reduce(x)
        want = [1.0 + step] * size + [size * (size - 1) / 2]
        same(x.to_dense(), torch.tensor(want), f"the sum of sparse tensors, {x}")


def sparse_gradients(rank, size):
    torch.manual_seed(1)
    net = DistributedDataParallel(torch.nn.Embedding(2 * size, 3, sparse=True))
    net(torch.tensor([rank, size])).sum().backward()
    want = torch.zeros(2 * size, 3)
    want[:size] = 1 / size
    want[size] = 1
    same(net.module.weight.grad.to_dense(), want, "the mean of sparse gradients")


def monitored(rank, size):
    pg = dist.group.WORLD
    for _ in range(3):
        pg.monitored_barrier(datetime.timedelta(seconds=30))
    short = datetime.timedelta(seconds=0.3)
    if rank == 0 and size > 1:
        words = [f"Ranks {every_but_0(size)} failed to pass monitoredBarrier"]
        raises(RuntimeError, words, pg.monitored_barrier, short, True)
    dist.barrier()
    if rank > 0:  # too late
        raises(RuntimeError, [f"Rank {rank} successfully reached", f"Ranks {every_but_0(size)} failed"],
               pg.monitored_barrier, short)
    dist.all_reduce(torch.ones(3))  # the group is as it was
    pg.monitored_barrier(datetime.timedelta(seconds=30))


def every_but_0(size):
    return ", ".join(map(str, range(1, size)))


def refused(rank, size):
    pg = dist.group.WORLD
    raises(ValueError, ["elements", "expected"], pg._allgather_base, torch.zeros(7), torch.zeros(5))
    raises(ValueError, ["types"], pg._allgather_base, torch.zeros(5 * size), torch.zeros(5).double())


# One root ----------------------------------------------------------------------------------------------------------


def broadcast(rank, size):
    for root in range(size):
        for n in COUNTS:
            x = tensor(n, torch.float32, rank)
            dist.broadcast(x, root)
            same(x, tensor(n, torch.float32, root), f"{n} from {root}")


def reduce(rank, size):
    for root in range(size):
        for n in COUNTS:
            x = tensor(n, torch.float64, rank)
            dist.reduce(x, root)
            if rank == root:
                same(x, reduced("SUM", torch.float64, [values(r, n, torch.float64) for r in range(size)]), f"{n}")


def gather_scatter(rank, size):
    for root in range(size):
        for n in COUNTS:
            x = tensor(n, torch.int32, rank)
            parts = [torch.zeros(n, dtype=torch.int32) for _ in range(size)] if rank == root else None
            dist.gather(x, parts, dst=root)
            for r in range(size if rank == root else 0):
                same(parts[r], tensor(n, torch.int32, r), f"gather of {n}")
            if hasattr(dist, "gather_into_tensor"):
                whole_of = torch.zeros(n * size if rank == root else 0, dtype=torch.int32)
                gather_options = dist.GatherOptions()
                gather_options.rootRank = root
                backend = dist.group.WORLD._get_backend(torch.device("cpu"))
                backend.gather_into_tensor(whole_of, x, gather_options).wait()
                want = torch.cat([tensor(n, torch.int32, r) for r in range(size)])
                same(whole_of, want if rank == root else want[:0], f"gather of {n} into a tensor")
            given = [tensor(n, torch.int32, 10 * root + r) for r in range(size)] if rank == root else None
            y = torch.zeros(n, dtype=torch.int32)
            dist.scatter(y, given, src=root)
            same(y, tensor(n, torch.int32, 10 * root + rank), f"scatter of {n}")


# Blocks ------------------------------------------------------------------------------------------------------------


def allgather(rank, size):
    for n in COUNTS:
        out = torch.zeros(n * size)
        dist.all_gather_into_tensor(out, tensor(n, torch.float32, rank))
        for r in range(size):
            same(out[r * n : (r + 1) * n], tensor(n, torch.float32, r), f"into a tensor, {n}")
        out = torch.zeros(n * size)
        mine = out[rank * n : (rank + 1) * n]
        mine.copy_(tensor(n, torch.float32, rank))
        dist.all_gather_into_tensor(out, mine)
        for r in range(size):
            same(out[r * n : (r + 1) * n], tensor(n, torch.float32, r), f"in place, {n}")
    uneven = [torch.zeros(3 * r + 1) for r in range(size)]
    dist.all_gather(uneven, tensor(3 * rank + 1, torch.float32, rank))
    for r in range(size):
        same(uneven[r], tensor(3 * r + 1, torch.float32, r), "blocks of unequal sizes")
    views = torch.zeros(size * 6)
    dist.all_gather(list(views.chunk(size)), tensor(6, torch.float32, rank))
    for r in range(size):
        same(views[6 * r : 6 * r + 6], tensor(6, torch.float32, r), "views of one tensor")
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * (100 * rank)})
    assert [o["rank"] for o in objects] == list(range(size))


def allgather_coalesced(rank, size):
    pg = dist.group.WORLD
    inputs = [tensor(n, torch.float32, rank) for n in COUNTS]
    outputs = [torch.zeros(n * size) for n in COUNTS]
    pg.allgather_into_tensor_coalesced(outputs, inputs).wait()
    lists = [[torch.zeros(n) for n in COUNTS] for _ in range(size)]
    pg.allgather_coalesced(lists, inputs).wait()
    for out, n, i in zip(outputs, COUNTS, range(len(COUNTS))):
        for r in range(size):
            same(out[r * n : (r + 1) * n], tensor(n, torch.float32, r), f"tensors of {n}")
            same(lists[r][i], tensor(n, torch.float32, r), f"lists of {n}")


def whole(n, size, r, dtype=torch.float32):
    return values(r, n * size, dtype)


def reduce_scatter(rank, size):
    pg = dist.group.WORLD
    for n in COUNTS:
        for name in ["SUM", "AVG", "MAX"]:
            want = reduced(name, torch.float32, [whole(n, size, r) for r in range(size)])[rank * n : (rank + 1) * n]
            out = torch.zeros(n)
            dist.reduce_scatter_tensor(out, whole(n, size, rank).float(), op=OPS[name])
            same(out, want, f"{name} of {n}")
            out = torch.zeros(n)
            parts = [p.clone() for p in whole(n, size, rank).float().split(n)] if n else [torch.zeros(0)] * size
            dist.reduce_scatter(out, parts, op=OPS[name])
            same(out, want, f"{name} of {n}, a list")
    lengths = [2 * r + 1 for r in range(size)]
    parts = list(values(rank, sum(lengths), torch.float32).float().split(lengths))
    out = torch.zeros(lengths[rank])
    dist.reduce_scatter(out, parts)
    all_parts = reduced("SUM", torch.float32, [values(r, sum(lengths), torch.float32) for r in range(size)])
    same(out, all_parts.split(lengths)[rank], "blocks of unequal sizes")
    outs = [torch.zeros(n) for n in COUNTS]
    pg.reduce_scatter_tensor_coalesced(
        outs, [whole(n, size, rank).float() for n in COUNTS], options(ReduceOp.SUM, dist.ReduceScatterOptions)
    ).wait()
    for out, n in zip(outs, COUNTS):
        want = reduced("SUM", torch.float32, [whole(n, size, r) for r in range(size)])[rank * n : (rank + 1) * n]
        same(out, want, f"coalesced, {n}")


def alltoall(rank, size):
    for n in COUNTS:
        out = torch.zeros(n * size, dtype=torch.int64)
        given = torch.cat([tensor(n, torch.int64, 10 * rank + r) for r in range(size)])
        dist.all_to_all_single(out, given)
        for r in range(size):
            same(out[r * n : (r + 1) * n], tensor(n, torch.int64, 10 * r + rank), f"{n}")
    ins = [(rank + r) % 3 for r in range(size)]
    outs = [(r + rank) % 3 for r in range(size)]
    given = torch.cat([tensor(4 * k, torch.float32, 10 * rank + r) for r, k in enumerate(ins)]).view(-1, 4)
    out = torch.zeros(sum(outs), 4)
    dist.all_to_all_single(out, given, outs, ins)
    want = torch.cat([tensor(4 * k, torch.float32, 10 * r + rank) for r, k in enumerate(outs)]).view(-1, 4)
    same(out, want, "by splits")
    received = [torch.zeros(5 * r + rank) for r in range(size)]
    dist.all_to_all(received, [tensor(5 * rank + r, torch.float32, 10 * rank + r) for r in range(size)])
    for r in range(size):
        same(received[r], tensor(5 * r + rank, torch.float32, 10 * r + rank), "a list")


# Layouts -----------------------------------------------------------------------------------------------------------


def layouts(rank, size):
    want = reduced("SUM", torch.float32, [values(r, 60, torch.float32) for r in range(size)])
    for name, make in {
        "every second": lambda: torch.zeros(120)[::2],
        "transposed": lambda: torch.zeros(6, 10).t(),
        "channels last": lambda: torch.zeros(1, 3, 4, 5).to(memory_format=torch.channels_last),
        "part of rows": lambda: torch.zeros(6, 20)[:, 3:13],
    }.items():
        x = make()
        x.copy_(tensor(60, torch.float32, rank).view(x.shape))
        dist.all_reduce(x)
        same(x, want.view(x.shape), name)
        x.copy_(tensor(60, torch.float32, rank).view(x.shape))
        dist.broadcast(x, size - 1)
        same(x, tensor(60, torch.float32, size - 1).view(x.shape), f"broadcast, {name}")
        outs = [make() for _ in range(size)]
        x.copy_(tensor(60, torch.float32, rank).view(x.shape))
        dist.all_gather(outs, x)
        for r in range(size):
            same(outs[r], tensor(60, torch.float32, r).view(x.shape), f"all_gather, {name}")
    scalar = torch.tensor(float(rank))
    dist.all_reduce(scalar)
    assert scalar.item() == size * (size - 1) / 2
    z = torch.full((4,), 1 + 1j).conj()
    dist.group.WORLD.broadcast([z], dist.BroadcastOptions()).wait()
    same(z.resolve_conj(), torch.full((4,), 1 - 1j), "conjugated")
    p = torch.nn.Parameter(torch.full((4, 4), float(rank)).t())
    dist.broadcast(p.data, 1 % size)
    leaf = torch.zeros(8, requires_grad=True)
    dist.all_reduce(leaf.view(2, 4).t().detach())
    with torch.inference_mode():
        y = torch.full((4, 4), 1.0).t()
        dist.all_reduce(y)
        assert bool((y == size).all())


# Messages ----------------------------------------------------------------------------------------------------------


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    for n in COUNTS:
        x, y = tensor(n, torch.float32, rank), torch.zeros(n)
        sent = dist.isend(x, right, tag=n % 7)
        dist.recv(y, left, tag=n % 7)
        sent.wait()
        same(y, tensor(n, torch.float32, left), f"{n}")
    strided = torch.zeros(40)[::2]
    sent = dist.isend(tensor(20, torch.float32, rank), right)
    dist.recv(strided, left)
    sent.wait()
    same(strided, tensor(20, torch.float32, left), "into a strided tensor")
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            x = torch.zeros(9)
            source = dist.recv(x)
            same(x, tensor(9, torch.float32, source), f"of rank {source}")
            seen.add(source)
        assert seen == set(range(1, size))
    else:
        dist.send(tensor(9, torch.float32, rank), 0)
    dist.barrier()  # what follows would match, too
    operations = [
        dist.P2POp(dist.isend, tensor(11, torch.float32, rank), right),
        dist.P2POp(dist.irecv, got := torch.zeros(11), left),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    same(got, tensor(11, torch.float32, left), "in a batch")


def wrong_length(rank, size):
    if rank == 0:
        raises(RuntimeError, ["rank 1 sent 8 bytes", "16"], dist.recv, torch.zeros(4), 1, None, 5)
        raises(RuntimeError, ["recv"], dist.recv, torch.zeros(1), 1, None, 6)
    elif rank == 1:
        dist.send(torch.zeros(2), 0, tag=5)
        dist.send(torch.zeros(4), 0, tag=6)
    dist.barrier()


# Works and futures -------------------------------------------------------------------------------------------------


def works(rank, size):
    xs = [torch.full((5000,), float(rank + i)) for i in range(20)]
    handles = [dist.all_reduce(x, async_op=True) for x in xs]
    for i in reversed(range(20)):
        handles[i].wait()
        handles[i].wait()
        assert xs[i][4999] == size * i + size * (size - 1) / 2
        assert handles[i].is_completed() and handles[i].is_success()
        assert handles[i].result()[0].data_ptr() == xs[i].data_ptr()
    for _ in range(50):  # nobody waits for these, and their tensors are dropped
        dist.all_reduce(torch.ones(1000), async_op=True)
    dist.barrier()


def futures(rank, size):
    x = torch.full((1000,), float(rank))
    future = dist.all_reduce(x, async_op=True).get_future()

    def nested(f):  # waits for another collective, as PowerSGD's hook does
        y = f.value()[0] / size
        dist.all_reduce(y, async_op=True).get_future().wait()
        dist.all_reduce(y, async_op=True).wait()
        return y

    y = future.then(nested).wait()
    assert torch.allclose(y, torch.full((1000,), size * size * (size - 1) / 2)), y[:3]
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    assert work.get_future().wait()[0].data_ptr() == x.data_ptr()


def sequence(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    before = backend._get_sequence_number_for_group()
    for _ in range(5):
        dist.barrier()
    assert backend._get_sequence_number_for_group() == before + 5


def groups(rank, size):
    evens = dist.new_group([r for r in range(size) if r % 2 == 0])
    backwards = dist.new_group(list(range(size)))
    one = dist.new_group([size - 1])
    x = torch.ones(10)
    if rank % 2 == 0:
        dist.all_reduce(x, group=evens)
        assert x[0] == (size + 1) // 2
        dist.destroy_process_group(evens)
    y = torch.ones(10)
    dist.all_reduce(y, group=backwards)
    assert y[0] == size
    if rank == size - 1:
        dist.all_reduce(y, group=one)
        dist.broadcast(y, size - 1, group=one)
        dist.barrier(group=one)
        assert y[0] == size


def main():
    rank, size = common.begin()
    cases = common.Cases()
    for dtype in [*FLOATS, *INTS, *COMPLEX, torch.bool]:
        cases.run(f"every operation on {dtype}", each_type, rank, size, dtype)
    if hasattr(dist, "_make_nccl_premul_sum"):
        cases.run("PREMUL_SUM", premul, rank, size)
    elif rank == 0:
        print("skipped: PREMUL_SUM: this torch cannot make it", flush=True)
    if device.TYPE == "cpu":
        cases.run("sparse", sparse, rank, size)
        cases.run("sparse_gradients", sparse_gradients, rank, size)
    for function in [
        counts, coalesced, monitored, refused, broadcast, reduce, gather_scatter, allgather,
        allgather_coalesced, reduce_scatter, alltoall, layouts, messages, works, futures, sequence, groups,
    ]:
        cases.run(function.__name__, function, rank, size)
    if size > 1:
        cases.run("wrong_length", wrong_length, rank, size)
    cases.end()


main()
