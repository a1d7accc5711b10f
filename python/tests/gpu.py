"""CUDA tensors: streams, futures, memory, both devices in one group. torchrun --nproc-per-node 2 gpu.py [BACKEND]"""

import sys
import time

import torch
import torch.distributed as dist

import common
import device
from common import raises

CPU = torch.device("cpu")


def patiently(condition, what, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not so after {seconds} s: {what}"
        time.sleep(0.01)


def on_stream(stream, function, *arguments):
    was = device.double.current_stream()
    device.double.set_stream(stream)
    try:
        return function(*arguments)
    finally:
        device.double.set_stream(was)


def launches():
    return device.double.calls("cuLaunchKernel") + device.double.calls("cuStreamBatchMemOp_v2")


def both_devices(rank, size):
    """One group, one backend object."""
    group = dist.group.WORLD
    cuda = group._get_backend(torch.device("cuda"))
    assert group._get_backend(CPU) is cuda or device.BACKEND != "meshcoll"
    before = launches()
    host = torch.full((1000,), rank + 1.0, device=CPU)
    dist.all_reduce(host)
    assert launches() == before, "tensors on the CPU took the GPU"
    works = []
    for i in range(10):
        x, y = torch.full((5000,), float(rank + i)), torch.full((3000,), float(rank - i), device=CPU)
        works.append((i, x, y, dist.all_reduce(x, async_op=True), dist.all_reduce(y, async_op=True)))
    for i, x, y, of_x, of_y in works:
        of_x.wait()
        of_y.wait()
        assert x.device.type == "cuda" and bool((x == size * i + size * (size - 1) / 2).all()), x
        assert bool((y == -size * i + size * (size - 1) / 2).all()), y
    assert launches() > before or size == 1, "tensors on the GPU were summed elsewhere"


def behind_the_stream(rank, size):
    """A collective begins where the current stream is, and what follows wait() in the stream comes after it; the host
    waits for neither. Rank 0's stream is held up for longer."""
    x, y, given = torch.zeros(1000), torch.zeros(1000), torch.full((1000,), rank + 1.0)
    device.double.synchronize()
    begin = time.monotonic()
    device.double.hold()
    x.copy_(given)
    work = dist.all_reduce(x, async_op=True)
    work.wait()
    y.copy_(x)
    assert time.monotonic() - begin < 5, "the host has waited"
    assert not work.is_completed() and not device.double.is_idle()
    time.sleep(0.1 if rank else 0.5)
    device.double.let_go()
    device.double.synchronize()
    assert work.is_completed() and work.is_success()
    want = size * (size + 1) / 2
    assert bool((y == want).all()), f"what follows in the stream has {y[:3]}, want {want}"
    assert bool((x == want).all()), x[:3]


def behind_a_list(rank, size):
    """The same of a list that is gathered to one tensor and copied from there."""
    x, given = torch.zeros(100), torch.full((100,), rank + 1.0)
    outs, kept = [torch.zeros(100) for _ in range(size)], torch.zeros(100 * size)
    device.double.synchronize()
    device.double.hold()
    x.copy_(given)
    dist.all_gather(outs, x)
    for r in range(size):
        kept[100 * r : 100 * r + 100].copy_(outs[r])
    time.sleep(0.1 if rank else 0.4)
    device.double.let_go()
    device.double.synchronize()
    for r in range(size):
        assert bool((kept[100 * r : 100 * r + 100] == r + 1).all()), f"block of rank {r}: {kept[100 * r]}"


def in_other_streams(rank, size):
    """Posted in one stream, awaited in another."""
    x, y, given = torch.zeros(1000), torch.zeros(1000), torch.full((1000,), rank + 1.0)
    device.double.synchronize()
    one, other = device.double.new_stream(), device.double.new_stream()

    def post():
        device.double.hold()
        x.copy_(given)
        return dist.all_reduce(x, async_op=True)

    def take():
        work.wait()
        y.copy_(x)

    work = on_stream(one, post)
    on_stream(other, take)
    time.sleep(0.1)
    assert not on_stream(other, device.double.is_idle)
    device.double.let_go()
    on_stream(other, device.double.synchronize)
    assert bool((y == size * (size + 1) / 2).all()), y[:3]


def dropped_in_other_streams(rank, size):
    """wait() in another stream gives no memory back to the stream that it is of: the other rank has not come yet."""
    one, other = device.double.new_stream(), device.double.new_stream()

    def post():
        x = torch.ones(50000)
        return dist.all_reduce(x, async_op=True)

    on_stream(one, post).wait()
    dist.barrier()
    if rank:
        time.sleep(0.4)
    work = on_stream(one, post)
    on_stream(other, work.wait)
    del work
    on_stream(one, device.double.synchronize)
    on_stream(other, device.double.synchronize)


def messages(rank, size):
    """A message is written behind what the stream did when its receive was posted, wherever it is awaited."""
    left, right = (rank - 1) % size, (rank + 1) % size
    x, y = torch.full((100,), -1.0), torch.zeros(100)
    sent = dist.isend(torch.full((100,), float(rank)), right)
    device.double.synchronize()
    one, other = device.double.new_stream(), device.double.new_stream()

    def post():
        device.double.hold()
        y.copy_(x)
        return dist.irecv(x, left)

    work = on_stream(one, post)
    on_stream(other, work.wait)
    time.sleep(0.2)
    device.double.let_go()
    on_stream(one, device.double.synchronize)
    on_stream(other, device.double.synchronize)
    sent.wait()
    assert bool((y == -1).all()), f"what the stream did before has {y[:3]}"
    assert bool((x == left).all()), x[:3]


def futures(rank, size):
    """Complete at once; who takes the value does so behind the collective, which is not complete."""
    x, y, given = torch.zeros(1000), torch.zeros(1000), torch.full((1000,), rank + 1.0)
    out = torch.zeros(1000)
    device.double.synchronize()
    device.double.hold()
    x.copy_(given)
    work = dist.all_reduce(x, async_op=True)
    future = work.get_future()
    assert future.done() and not work.is_completed()

    def hook(f):
        return [out.copy_(f.value()[0])]

    got = future.then(hook).wait()[0]
    y.copy_(got)
    time.sleep(0.1 if rank else 0.4)
    device.double.let_go()
    device.double.synchronize()
    assert bool((y == size * (size + 1) / 2).all()), y[:3]
    source = (rank - 1) % size
    sent = dist.isend(torch.full((70,), float(rank)), (rank + 1) % size)
    z = torch.zeros(70)
    assert dist.irecv(z, source).get_future().wait()[0].data_ptr() == z.data_ptr()
    sent.wait()
    assert bool((z == source).all()), z


def dropped(rank, size):
    """Nobody keeps the tensor, and its memory is given back in its stream, before the other rank has come."""

    def drop():
        dist.all_reduce(torch.ones(100000), async_op=True)
        dist.all_gather([torch.zeros(5000) for _ in range(size)], torch.ones(5000), async_op=True)
        device.double.synchronize()

    drop()  # the library keeps programs of its calls
    dist.barrier()
    time.sleep(0.5)
    before = device.double.areas()
    if rank:
        time.sleep(0.5)
    drop()
    patiently(lambda: device.double.areas() <= before, "memory is given back")


def given_back(rank, size):
    """wait() gives back what the collective has used to the stream, and nothing has to wait for the watch."""
    x = torch.ones(1000)
    dist.all_reduce(x)
    device.double.synchronize()
    before = device.double.areas()
    for _ in range(20):
        y = torch.ones(1000)
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        del y, work
    device.double.synchronize()
    assert device.double.areas() <= before, f"{device.double.areas()} pieces of memory, before {before}"


def barriers(rank, size):
    device_ids = [torch.cuda.current_device()]
    dist.barrier(device_ids=device_ids)
    begin = time.monotonic()
    if rank == size - 1:
        time.sleep(0.6)
    dist.barrier(device_ids=device_ids)
    assert time.monotonic() - begin > 0.4, "a barrier did not wait for the last rank"


def refused(rank, size):
    group = dist.group.WORLD
    cuda = group._get_backend(torch.device("cuda"))
    other = torch.zeros(5, device=f"cuda:{torch.cuda.current_device() + 1}")
    raises(ValueError, ["one GPU", "cuda:"], cuda.allreduce, [other])
    raises(ValueError, ["cpu", "one device"], cuda._allgather_base, torch.zeros(5 * size), torch.zeros(5, device=CPU))
    raises(ValueError, ["one device"], cuda.allgather, [[torch.zeros(5, device=CPU)] * size], [torch.zeros(5)])


def one_sided(rank, size):
    """A rank that sends nothing, and one that receives nothing: a tensor without elements has no memory."""
    sends, receives = (0, 4) if rank == 0 else (4, 0) if rank == 1 else (0, 0)
    given, out = torch.full((sends, 3), 7.0), torch.zeros(receives, 3)
    ins, outs = [sends] + [0] * (size - 1), [0, receives] + [0] * (size - 2)
    dist.all_to_all_single(out, given, outs, ins)
    assert bool((out == 7).all()), out
    parts = [torch.zeros(4 * (r == 1)) for r in range(size)]
    dist.all_gather(parts, torch.ones(4 * (rank == 1)))
    assert bool((parts[1] == 1).all()), parts


def many(rank, size):
    """As many in flight as there are, of both kinds of waiting."""
    xs = [torch.full((100 + i,), float(rank)) for i in range(200)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    for i, work in enumerate(works):
        if i % 3 == 0:
            work.wait()
        elif i % 3 == 1:
            patiently(work.is_completed, "a collective ends")
    works[-1].wait()
    for x in xs:
        assert bool((x == size * (size - 1) / 2).all())


def main():
    device.BACKEND = sys.argv[1] if len(sys.argv) > 1 else "meshcoll"
    rank, size = common.begin(device.BACKEND)
    cases = common.Cases()
    for function in [
        both_devices, behind_the_stream, behind_a_list, in_other_streams, dropped_in_other_streams, messages, futures,
        dropped, given_back, barriers, refused, one_sided, many,
    ]:
        if function is both_devices and "cpu" not in {kind.type for kind in dist.group.WORLD._device_types}:
            continue
        cases.run(function.__name__, function, rank, size)
    cases.end()


main()
