#!/usr/bin/env python3
"""Times meshcoll beside Gloo under PyTorch: steps of training, or single collectives, in turns in the same processes.

  torchrun --nproc-per-node 2 bench/torch/turns.py ddp fsdp2                 # on one machine
  torchrun --nproc-per-node 2 bench/torch/turns.py all_reduce --sizes 4,1M,16M
  bench/lab/lab run -n 4 -x MASTER_ADDR=box0 -x GLOO_SOCKET_IFNAME=eth0 -- \\
      build/torch/venv/bin/python $PWD/bench/torch/turns.py ddp fsdp2 --rate 200mbit

A time is that of the slowest rank, from a barrier on. A line has the median and the quartiles of all rounds, and the
median of the ratios of each round. docs/benchmarks.md has more.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "train"))

import meshcoll.torch  # noqa: E402,F401  (the backend, where torch does not find it by itself)
from gpt import GPT, loss_of  # noqa: E402
from meshcoll.launch import set_environment  # noqa: E402

BACKENDS = ("gloo", "meshcoll")
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
RATES = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
CHARACTERS = 100
VECTORS_ON_THE_WIRE = {"ddp": 2, "fsdp2": 3}  # reduced and gathered; gathered twice and reduced


def size_of(text):
    digits = text.rstrip("".join(UNITS))
    return int(digits) * UNITS[text[len(digits):]]


def rate_of(text):
    unit = text[-4:]
    return float(text[:-4]) * RATES[unit] / 8


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("what", nargs="+", choices=("ddp", "fsdp2", "all_reduce", "all_gather", "reduce_scatter"))
    parser.add_argument("--rounds", type=int, default=15, help="timed rounds; 2 more come first (15)")
    parser.add_argument("--sizes", default="4,1M,16M", help="of the collectives: bytes of the whole vector")
    parser.add_argument("--rate", type=rate_of, help="of a rank's link, as 200mbit, for the bound of its transfers")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--context", type=int, default=128)
    parser.add_argument("--batch", type=int, default=2, help="of each rank (2)")
    parser.add_argument("--bucket-mb", type=float, default=5, help="of ddp (5)")
    parser.add_argument("--threads", type=int, default=1, help="that a rank computes with (1)")
    parser.add_argument("--out", help="all times, as JSON")
    args = parser.parse_args()
    args.sizes = [size_of(text) for text in args.sizes.split(",")]
    return args


# Taking turns --------------------------------------------------------------------------------------------------------


def slowest(seconds, group):
    """Of each round, the time of the slowest rank."""
    mine = torch.tensor(seconds, dtype=torch.float64)
    dist.all_reduce(mine, dist.ReduceOp.MAX, group=group)
    return mine.tolist()


def take_turns(ways, rounds, group):
    """Runs each of `ways`, functions by name, once a round, and every round in another order."""
    names = list(ways)
    seconds = {name: [] for name in names}
    for i in range(rounds + 2):
        for name in names[i % len(names):] + names[:i % len(names)]:
            dist.barrier(group)
            begin = time.perf_counter()
            ways[name]()
            if i >= 2:
                seconds[name].append(time.perf_counter() - begin)
    return {name: slowest(times, group) for name, times in seconds.items()}


def ratio(seconds):
    return statistics.median(m / g for g, m in zip(seconds["gloo"], seconds["meshcoll"]))


def show(name, seconds):
    low, middle, high = (1e3 * q for q in statistics.quantiles(seconds, n=4, method="inclusive"))
    print(f"  {name:12} {middle:10.3f} ms   {low:10.3f} to {high:.3f}")


# Training ------------------------------------------------------------------------------------------------------------


class Training:
    """A model, its optimizer, and a step of both; `kind`: None for a rank that computes alone."""

    def __init__(self, kind, group, args):
        torch.manual_seed(1)
        self.model = GPT(CHARACTERS, args.layers, max(1, args.width // 64), args.width, args.context)
        self.bytes = sum(p.numel() * p.element_size() for p in self.model.parameters())
        if kind == "ddp":
            self.model = DistributedDataParallel(self.model, process_group=group, bucket_cap_mb=args.bucket_mb,
                                                 gradient_as_bucket_view=True)
        elif kind == "fsdp2":
            mesh = DeviceMesh.from_group(group, "cpu")
            for block in self.model.blocks:
                fully_shard(block, mesh=mesh)
            fully_shard(self.model, mesh=mesh)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        generator = torch.Generator().manual_seed(dist.get_rank())
        text = torch.randint(CHARACTERS, (args.batch, args.context + 1), generator=generator)
        self.x, self.y = text[:, :-1].contiguous(), text[:, 1:].contiguous()

    def forward(self):
        self.loss = loss_of(self.model, self.x, self.y)

    def backward(self):
        self.loss.backward()

    def end(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def step(self):
        self.forward()
        self.backward()
        self.end()
        return float(self.loss.detach())


def time_parts(alone, rounds, group):
    """The median time of a step's forward pass, backward pass and optimizer, without communication."""
    parts = {}
    for part in ("forward", "backward", "end"):
        parts[part] = []
    for _ in range(rounds + 2):
        for part, times in parts.items():
            dist.barrier(group)
            begin = time.perf_counter()
            getattr(alone, part)()
            times.append(time.perf_counter() - begin)
    return {part: statistics.median(slowest(times[2:], group)) for part, times in parts.items()}


def bound_of(kind, parts, size, args):
    """The transfers of a step at the rate of the link, and what must be computed before or after them."""
    ranks = dist.get_world_size()
    wire = VECTORS_ON_THE_WIRE[kind] * (ranks - 1) / ranks * size / args.rate
    return wire, parts["forward"] + parts["end"]


def train(kind, groups, args):
    alone = Training(None, None, args)
    parts = time_parts(alone, args.rounds, groups["gloo"])
    ways = {name: Training(kind, group, args) for name, group in groups.items()}
    seconds = take_turns({name: way.step for name, way in ways.items()}, args.rounds, groups["gloo"])
    if dist.get_rank() == 0:
        computing = sum(parts.values())
        print(f"{kind}, {alone.bytes / 4e6:.1f} M parameters, {dist.get_world_size()} ranks: "
              f"meshcoll at {ratio(seconds):.2f} of Gloo's step")
        for name, times in seconds.items():
            show(name, times)
        print(f"  computation alone {1e3 * computing:.1f} ms: forward {1e3 * parts['forward']:.1f}, backward "
              f"{1e3 * parts['backward']:.1f}, optimizer {1e3 * parts['end']:.1f}")
        if args.rate:
            wire, apart = bound_of(kind, parts, alone.bytes, args)
            mine = statistics.median(seconds["meshcoll"])
            print(f"  transfers at the link's rate {1e3 * wire:.1f} ms: meshcoll's step is {mine / max(wire, computing):.2f} "
                  f"of the longer of both, and {mine / (wire + apart):.2f} of transfers + forward + optimizer")
        sys.stdout.flush()
    return {"parts": parts, "seconds": seconds}


# Collectives ---------------------------------------------------------------------------------------------------------


def call_of(name, size, group):
    """The collective on float32 tensors that stay the same, as gradients do."""
    ranks = dist.get_world_size()
    count = max(1, size // 4)
    part = max(1, count // ranks)
    vector = torch.zeros(count if name == "all_reduce" else part * ranks)
    if name == "all_reduce":
        return lambda: dist.all_reduce(vector, group=group)
    block = torch.zeros(part)
    if name == "all_gather":
        return lambda: dist.all_gather_into_tensor(vector, block, group=group)
    return lambda: dist.reduce_scatter_tensor(block, vector, group=group)


def repeated(function, times):
    def run():
        for _ in range(times):
            function()
    return run


def call(name, groups, args):
    results = {}
    for size in args.sizes:
        calls = min(100, max(1, (1 << 20) // size))  # of a turn: so that the barrier before it counts little
        ways = {backend: repeated(call_of(name, size, group), calls) for backend, group in groups.items()}
        seconds = {backend: [t / calls for t in times]
                   for backend, times in take_turns(ways, args.rounds, groups["gloo"]).items()}
        results[size] = seconds
        if dist.get_rank() == 0:
            print(f"{name} of {size} bytes, {dist.get_world_size()} ranks: meshcoll at {ratio(seconds):.2f} of Gloo's time")
            for backend, times in seconds.items():
                show(backend, times)
            sys.stdout.flush()
    return results


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    set_environment()
    dist.init_process_group("gloo")
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    results = {}
    for what in args.what:
        run = train if what in VECTORS_ON_THE_WIRE else call
        results[what] = run(what, groups, args)
    if args.out and dist.get_rank() == 0:
        pathlib.Path(args.out).write_text(json.dumps(results, indent=1) + "\n")
    dist.barrier(groups["gloo"])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
