"""Collectives that callbacks of futures begin, while the program begins others: they have the same values on all ranks,
whichever rank's callbacks run late, at once or in another thread. torchrun --nproc-per-node N callbacks.py [BACKEND]"""

import functools
import random
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks, powerSGD_hook, quantization_hooks
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import common

ROUNDS, WIDTH, LAYERS, STEPS = 60, 60, 6, 6


def pause(chance):
    """So that a future is complete before its callback is hung, or long after it, on each rank otherwise."""
    if chance.random() < 0.4:
        time.sleep(chance.random() * 3e-3)


def total(size, value):
    return sum(value + rank for rank in range(size))


def begun(value, group=None):
    x = torch.full((37,), float(value))
    return x, dist.all_reduce(x, group=group, async_op=True)


def second_sums(rank, size):
    """A callback sums again what was summed."""
    chance = random.Random(rank)
    chains = []
    for i in range(ROUNDS):
        x, work = begun(i + rank)
        pause(chance)
        future = work.get_future()
        pause(chance)

        def again(future):
            pause(chance)
            return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

        chains.append(future.then(again))
    for i, chain in enumerate(chains):
        assert chain.wait()[36] == size * total(size, i), f"round {i}: {chain.wait()[0]}"


def chains_of_three(rank, size):
    """Callbacks of the futures that then() returns, among calls of the program."""
    chance = random.Random(100 + rank)
    ends, others = [], []
    for i in range(ROUNDS):
        x, work = begun(i + rank)

        def first(future):
            pause(chance)
            y = future.value()[0].clone()
            dist.all_reduce(y)
            return y

        def second(future):
            y = future.value().clone()
            dist.broadcast(y, 1 % size)
            dist.all_reduce(y)
            return y

        future = work.get_future().then(first)
        pause(chance)
        ends.append(future.then(second))
        others.append((i, *begun(1000 * i + rank)))
    for i, x, work in others:
        work.wait()
        assert x[0] == total(size, 1000 * i), f"call {i} of the program: {x[0]}"
    for i, end in enumerate(ends):
        assert end.wait()[0] == size * size * total(size, i), f"round {i}: {end.wait()[0]}"


def nested(rank, size):
    """Callbacks that hang callbacks, which begin calls."""
    chance = random.Random(200 + rank)
    got = {}

    def at(depth, i, value, future):
        pause(chance)
        assert future.value()[0][0] == total(size, value), f"round {i}, depth {depth}: {future.value()[0][0]}"
        got[i, depth] = True
        if depth < 3:
            x, work = begun(10 * value + rank)
            work.get_future().add_done_callback(functools.partial(at, depth + 1, i, 10 * value))

    for i in range(ROUNDS // 3):
        x, work = begun(i + rank)
        pause(chance)
        work.get_future().add_done_callback(functools.partial(at, 0, i, i))
    end = time.monotonic() + 30
    while len(got) < ROUNDS // 3 * 4 and time.monotonic() < end:
        time.sleep(1e-3)
    assert len(got) == ROUNDS // 3 * 4, f"{len(got)} callbacks had the right value"


def two_groups(rank, size):
    """Callbacks of two groups begin calls on a third one."""
    chance = random.Random(300 + rank)
    a, b, c = (dist.new_group() for _ in range(3))
    ends = []
    for i in range(ROUNDS // 2):
        for group, factor in ((a, 1), (b, 7)):
            x, work = begun(factor * i + rank, group)
            pause(chance)

            def again(future):
                y = future.value()[0]
                return dist.all_reduce(y, group=c, async_op=True)

            ends.append((x, factor * i, work.get_future().then(again)))
    for x, value, end in ends:
        end.wait().wait()
        assert x[0] == size * total(size, value), f"{x[0]}, expected {size * total(size, value)}"
    for group in (a, b, c):
        dist.destroy_process_group(group)


def two_threads(rank, size):
    """Each with a group of its own, and callbacks that wait: none waits for the other thread's."""
    groups, wrong = [dist.new_group() for _ in range(2)], []

    def one(group, seed):
        chance = random.Random(seed)
        for i in range(ROUNDS // 2):
            x, work = begun(i + rank, group)
            pause(chance)

            def again(future):
                y = future.value()[0]
                dist.all_reduce(y, group=group)
                return y

            y = work.get_future().then(again).wait()
            if y[0] != size * total(size, i):
                wrong.append(float(y[0]))

    threads = [threading.Thread(target=one, args=(group, 2 * rank + i)) for i, group in enumerate(groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, f"{wrong}"
    for group in groups:
        dist.destroy_process_group(group)


def complete_before(rank, size):
    """As torch says, a callback of a complete future runs before then() returns, where none is to run before it."""
    for i in range(5):
        x, work = begun(i + rank)
        work.wait()
        future = work.get_future()
        future.wait()
        ran = []
        result = future.then(lambda f: ran.append(f.value()[0][0]))
        assert ran == [total(size, i)] and result.done(), f"{ran}"


def raising(rank, size):
    """An error of a callback, as torch tells it; what hangs on it runs."""
    x, work = begun(rank)

    def wrong(future):
        raise KeyError("of the callback")

    future = work.get_future().then(wrong)
    after = []
    end = future.then(lambda f: after.append(1))
    common.raises(RuntimeError, ["of the callback"], future.wait)
    end.wait()
    assert after == [1]


# Hooks of DistributedDataParallel -----------------------------------------------------------------------------------


def network():
    torch.manual_seed(1)
    layers = [layer for _ in range(LAYERS) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())]
    return torch.nn.Sequential(*layers)


def trained(rank, hook):
    """The parameters after some steps of DDP with several buckets, whose ranks are not in step."""
    chance = random.Random(400 + rank)
    net = DistributedDataParallel(network(), bucket_cap_mb=0.02)
    optimizer = hook(net) or torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(100 * step + rank)
        x = torch.randn(8, WIDTH, generator=generator)
        optimizer.zero_grad()
        loss = net(x).square().mean()
        pause(chance)
        loss.backward()
        if not isinstance(optimizer, ZeroRedundancyOptimizer):  # which has made its step
            optimizer.step()
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def alike(x, size, what):
    every = [torch.empty_like(x) for _ in range(size)]
    dist.all_gather(every, x)
    for r, other in enumerate(every):
        assert torch.equal(other, every[0]), f"{what}: parameters differ on ranks 0 and {r}"


def with_hook(hook, state=None):
    def register(net):
        net.register_comm_hook(state() if state else None, hook)
    return register


def twice_summed(rank, size):
    """A hook whose callback begins a second sum, against one without."""
    chance = random.Random(500 + rank)

    def hook(_, bucket):
        work = dist.all_reduce(bucket.buffer() / size / size, async_op=True)
        pause(chance)

        def again(future):
            pause(chance)
            y = future.value()[0]
            dist.all_reduce(y)
            return y

        return work.get_future().then(again)

    got = trained(rank, with_hook(hook))
    alike(got, size, "twice summed")
    want = trained(rank, lambda net: None)
    assert torch.allclose(got, want, rtol=1e-4, atol=1e-6), f"differs from DDP's by {(got - want).abs().max()}"


def hooks(rank, size):
    power = functools.partial(powerSGD_hook.PowerSGDState, None, matrix_approximation_rank=2, start_powerSGD_iter=2)
    world = functools.partial(getattr, dist.group, "WORLD")
    for name, hook, state in [
        ("fp16", default_hooks.fp16_compress_hook, None),
        ("powerSGD", powerSGD_hook.powerSGD_hook, power),
        ("quantization per tensor", quantization_hooks.quantization_pertensor_hook, world),
        ("quantization per channel", quantization_hooks.quantization_perchannel_hook, world),
    ]:
        alike(trained(rank, with_hook(hook, state)), size, name)


def zero_overlapped(rank, size, wrap):
    """Each rank updates its parameters in a callback and sends them to the others."""
    def register(net):
        zero = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
        net.register_comm_hook(None, wrap(default_hooks.allreduce_hook, net, zero))
        return zero

    got = trained(rank, register)
    alike(got, size, wrap.__name__)
    assert not torch.equal(got, torch.cat([p.detach().flatten() for p in network().parameters()]))


def main():
    rank, size = common.begin(*sys.argv[1:])
    cases = common.Cases()
    for case in (complete_before, second_sums, chains_of_three, nested, two_groups, two_threads, raising, twice_summed,
                 hooks):
        cases.run(case.__name__, case, rank, size)
    for wrap in (ddp_zero_hook.hook_with_zero_step, ddp_zero_hook.hook_with_zero_step_interleaved):
        cases.run(f"ZeRO, {wrap.__name__}", zero_overlapped, rank, size, wrap)
    cases.end()


main()
