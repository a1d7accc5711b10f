"""Groups that are made and destroyed leave nothing behind, and idle ones take no time.
torchrun --nproc-per-node 2 many.py"""

import contextlib
import functools
import gc
import os
import resource
import time

import torch
import torch.distributed as dist

import common
import meshcoll.torch
from meshcoll import _torch

GROUPS, WARM = 1000, 100
ALIVE, AT_ONCE = 20, 20
OF_TORCH = 6 << 10  # bytes: torch itself keeps 2 KiB of each group, also of Gloo's, and arenas move
OF_NONE = 256 << 10  # bytes by which the allocator's arenas move, whatever the number of groups
IDLE_SECONDS, IDLE_SHARE = 4.0, 0.02


def held():
    """Descriptors, threads, backends, files in shared memory, and bytes of memory of this process."""
    gc.collect()
    backends = sum(type(o) is functools.partial and o.func is meshcoll.torch._gloo for o in gc.get_objects())
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    maps = open("/proc/self/maps").read()
    kilobytes = int(lines["RssAnon"].split()[0])
    return {"descriptors": len(os.listdir("/proc/self/fd")), "threads": int(lines["Threads"]),
            "backends": backends, "shared maps": maps.count("/dev/shm/"), "bytes": kilobytes << 10}


def by_torch(times, x):
    for _ in range(times):
        group = dist.new_group()
        dist.all_reduce(x, op=dist.ReduceOp.MAX, group=group)
        dist.destroy_process_group(group)


def alone(times, x):
    """Backends without a process group of torch."""
    store = dist.distributed_c10d._get_default_store()
    for _ in range(times):
        alone.made += 1
        backend = _torch.create(store=dist.PrefixStore(f"alone/{alone.made}", store), rank=dist.get_rank(),
                                size=dist.get_world_size(), timeout=60.0, mesh=None, name="", tag=0)
        backend.allreduce([x]).wait()
        backend.shutdown()


alone.made = 0


def settled(want, seconds=10):
    """What is held once the threads that make or close groups have ended."""
    end = time.monotonic() + seconds
    while (now := held())["threads"] > want["threads"] and time.monotonic() < end:
        time.sleep(0.1)
    return now


def nothing_left(rank, make_and_destroy, may_grow):
    x = torch.zeros(10000)
    make_and_destroy(WARM, x)
    time.sleep(1)
    before = held()
    make_and_destroy(GROUPS, x)
    after = settled(before)
    print(f"rank {rank}: {before} before, {after} after {GROUPS} groups", flush=True)
    grown = {what: after[what] - before[what] for what in before}
    assert grown.pop("bytes") < may_grow and all(n <= 0 for n in grown.values()), f"{before} before, {after} after"


def no_thread_each():
    """Groups that are alive and idle."""
    x = torch.zeros(1000)
    dist.all_reduce(x)
    before = settled({"threads": 0}, 1)["threads"]
    groups = [dist.new_group() for _ in range(ALIVE)]
    for group in groups:
        dist.all_reduce(x, group=group)
    after = settled({"threads": before})["threads"]
    for group in groups:
        dist.destroy_process_group(group)
    assert after <= before, f"{before} threads before {ALIVE} groups, {after} with them"


def connections():
    """Of this process to torch's store."""
    port, inodes, targets = int(os.environ["MASTER_PORT"]), set(), []
    for kind in ("tcp", "tcp6"):
        with open(f"/proc/self/net/{kind}") as table:
            rows = [line.split() for line in table.readlines()[1:]]
        inodes |= {f"socket:[{row[9]}]" for row in rows if int(row[2].rpartition(":")[2], 16) == port}
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the folder itself
            targets.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sum(target in inodes for target in targets)


def one_connection(rank):
    """Groups that wait for a rank, all at once, ask the store by one connection."""
    store = dist.distributed_c10d._get_default_store()
    if rank == 1:
        store.wait(["connections/counted"])
    groups = [dist.new_group() for _ in range(AT_ONCE)]
    if rank == 0:
        time.sleep(0.5)
        count = connections()
        store.set("connections/counted", "")
        assert count <= 2, f"{count} connections: expected the program's and one for {AT_ONCE} groups"
    for group in groups:
        dist.all_reduce(torch.ones(1), group=group)
        dist.destroy_process_group(group)


def ended_together(rank):
    """Groups that end one after the other wait for a late rank together."""
    store = dist.distributed_c10d._get_default_store()
    groups = [dist.new_group() for _ in range(12)]
    for group in groups:
        dist.all_reduce(torch.ones(1), group=group)
    if rank == 1:
        store.wait(["ended/all"])
    began = time.monotonic()
    for group in groups:
        dist.destroy_process_group(group)
    took = time.monotonic() - began
    store.set("ended/all", "")
    assert took < 4, f"12 groups took {took:.1f} s to end"


def nothing_busy(rank):
    groups = [dist.new_group() for _ in range(4)]
    for group in groups:
        dist.all_reduce(torch.ones(1000), group=group)
    dist.barrier()
    time.sleep(0.5)
    began = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(IDLE_SECONDS)
    ended = resource.getrusage(resource.RUSAGE_SELF)
    spent = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    print(f"rank {rank}: {spent:.3f} s of CPU in {IDLE_SECONDS} s with {len(groups) + 1} idle groups", flush=True)
    assert spent < IDLE_SHARE * IDLE_SECONDS, f"{spent} s of CPU"


def main():
    rank, _ = common.begin()
    cases = common.Cases()
    cases.run("idle groups take no time", nothing_busy, rank)
    cases.run(f"{ALIVE} idle groups have no threads", no_thread_each)
    cases.run(f"{AT_ONCE} groups that wait use one connection", one_connection, rank)
    cases.run("groups that end together", ended_together, rank)
    cases.run(f"{GROUPS} groups made and destroyed", nothing_left, rank, by_torch, GROUPS * OF_TORCH)
    cases.run(f"{GROUPS} backends made and destroyed", nothing_left, rank, alone, OF_NONE)
    cases.end()


main()
