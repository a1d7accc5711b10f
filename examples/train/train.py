#!/usr/bin/env python3
"""Trains a GPT on characters, by many ranks over meshcoll or Gloo.

  torchrun --nproc-per-node 4 train.py                              # 11 M parameters, DistributedDataParallel
  torchrun --nproc-per-node 4 train.py --parallel fsdp2 --small     # parameters sharded; a model for trying out
  mpirun -n 8 python train.py --parallel hsdp --boxes 2             # sharded in each box, replicated over boxes
  torchrun --nproc-per-node 4 train.py --backend gloo --out gloo.json

Losses, times and samples go to --out as JSON; draw.py makes pictures of it. docs/training.md has more.
"""

import argparse
import json
import math
import pathlib
import socket
import sys
import time

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

import meshcoll.torch  # noqa: F401  (the backend, where torch does not find it by itself)
from gpt import GPT, loss_of, write
from meshcoll.launch import set_environment
from timeline import Timeline

# Debian's package fortunes where it is, as it was for the numbers of docs/training.md; else this project's own pages
FORTUNES = pathlib.Path("/usr/share/games/fortunes")
TEXT = FORTUNES if FORTUNES.exists() else pathlib.Path(__file__).resolve().parents[2] / "docs"


def arguments():
    parser = argparse.ArgumentParser(description="Trains a GPT on characters.", allow_abbrev=False)
    parser.add_argument("--parallel", choices=("ddp", "fsdp2", "hsdp", "zero1"), default="ddp")
    parser.add_argument("--backend", choices=("meshcoll", "gloo"), default="meshcoll")
    parser.add_argument("--boxes", type=int, help="of hsdp: rows of the mesh (as many as there are host names)")
    parser.add_argument("--text", default=TEXT, help=f"a file, or a folder of them ({TEXT})")
    parser.add_argument("--small", action="store_true", help="2 layers of width 64, context 64: for trying out")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--heads", type=int)
    parser.add_argument("--width", type=int)
    parser.add_argument("--context", type=int, help="characters that the model sees")
    parser.add_argument("--batch", type=int, default=8, help="of each rank (8)")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=1e-3, help="highest learning rate (1e-3)")
    parser.add_argument("--bucket-mb", type=float, default=25, help="of ddp and zero1: gradients summed at once (25)")
    parser.add_argument("--threads", type=int, default=1, help="that a rank computes with (1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=3, help="texts written at the end (3)")
    parser.add_argument("--out", help="losses, times and samples, as JSON")
    parser.add_argument("--timeline", action="store_true", help="of ddp and zero1: --out gets what one step does when")
    args = parser.parse_args()
    if args.timeline and args.parallel not in ("ddp", "zero1"):
        parser.error("--timeline shows the buckets of ddp and zero1 only")
    shape = {"layers": 2, "heads": 2, "width": 64, "context": 64} if args.small else \
            {"layers": 6, "heads": 6, "width": 384, "context": 256}
    for name, value in shape.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    return args


# The text ------------------------------------------------------------------------------------------------------------


def read(path):
    """The characters of the text, in ASCII, and their numbers as a tensor."""
    path = pathlib.Path(path)
    if not path.exists():
        sys.exit(f"train.py: {path} is not there")
    files = [path] if path.is_file() else sorted(
        file for file in path.iterdir()
        if file.is_file() and not file.is_symlink() and file.suffix not in (".dat", ".u8"))
    text = "".join(file.read_text("utf-8", "replace") for file in files).encode("ascii", "replace").decode()
    characters = sorted(set(text))
    number = {c: i for i, c in enumerate(characters)}
    return characters, torch.tensor([number[c] for c in text])


def batch(data, args, generator):
    """Pieces of the text, and the same pieces one character on."""
    at = torch.randint(len(data) - args.context - 1, (args.batch,), generator=generator).tolist()
    x = torch.stack([data[i:i + args.context] for i in at])
    y = torch.stack([data[i + 1:i + 1 + args.context] for i in at])
    return x, y


# Ways to be parallel -------------------------------------------------------------------------------------------------


def count_boxes():
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, socket.gethostname())
    return len(set(names))


def device_mesh(args):
    size = dist.get_world_size()
    if args.parallel == "fsdp2":
        return init_device_mesh("cpu", (size,), mesh_dim_names=("gpu",))
    boxes = args.boxes or count_boxes()
    if size % boxes:
        sys.exit(f"train.py: {size} ranks do not fill {boxes} boxes evenly: give another number by --boxes")
    return init_device_mesh("cpu", (boxes, size // boxes), mesh_dim_names=("box", "gpu"))


def parallelize(model, args):
    """The model as all ranks train it together, and its optimizer."""
    if args.parallel in ("fsdp2", "hsdp"):
        mesh = device_mesh(args)
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model, torch.optim.AdamW(model.parameters(), lr=args.rate)
    model = DistributedDataParallel(model, bucket_cap_mb=args.bucket_mb, gradient_as_bucket_view=True)
    if args.parallel == "zero1":
        return model, ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=args.rate)
    return model, torch.optim.AdamW(model.parameters(), lr=args.rate)


# Training ------------------------------------------------------------------------------------------------------------


def rate_at(step, args):
    """Rises for the first tenth of the steps, then falls to a tenth along a cosine."""
    rising = max(1, args.steps // 10)
    if step < rising:
        return args.rate * (step + 1) / rising
    return args.rate * (0.55 + 0.45 * math.cos(math.pi * (step - rising) / max(1, args.steps - rising)))


def show_progress(step, args, loss, seconds):
    if dist.get_rank() != 0:
        return
    done = (step + 1) * 30 // args.steps
    line = f"{'#' * done:30} {step + 1}/{args.steps}  loss {loss:.3f}  {1e3 * seconds:.0f} ms a step"
    if sys.stderr.isatty():
        print(f"\r{line} ", end="\n" if step + 1 == args.steps else "", file=sys.stderr, flush=True)
    elif done > step * 30 // args.steps:
        print(line, file=sys.stderr, flush=True)


def train(model, optimizer, data, args, timeline):
    """The loss of this rank and the time of each step."""
    losses, times = [], []
    for step in range(args.steps):
        generator = torch.Generator().manual_seed((args.seed * args.steps + step) * dist.get_world_size()
                                                  + dist.get_rank())
        x, y = batch(data, args, generator)
        begin = time.perf_counter()
        timeline.begin_step(step)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, args)
        loss = loss_of(model, x, y)
        loss.backward()
        with timeline.span("optimizer"):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(float(loss.detach()))
        times.append(time.perf_counter() - begin)
        timeline.end_step()
        show_progress(step, args, losses[-1], times[-1])
    return losses, times


def mean_of_ranks(losses):
    """Step by step. Gathered and added here, so that the sum has one order over every backend."""
    everyone = [torch.zeros(len(losses), dtype=torch.float64) for _ in range(dist.get_world_size())]
    dist.all_gather(everyone, torch.tensor(losses, dtype=torch.float64))
    return (sum(everyone) / len(everyone)).tolist()


# The end -------------------------------------------------------------------------------------------------------------


def whole(model, characters, args):
    """The trained model as one that needs no other ranks, on rank 0; None on the others."""
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    if dist.get_rank() != 0:
        return None
    alone = new_model(characters, args)
    alone.load_state_dict(state)
    return alone.eval()


def new_model(characters, args):
    return GPT(len(characters), args.layers, args.heads, args.width, args.context)


@torch.no_grad()
def loss_on(model, data, args):
    generator = torch.Generator().manual_seed(args.seed)
    return sum(float(loss_of(model, *batch(data, args, generator))) for _ in range(8)) / 8


def texts_of(model, characters, args):
    generator = torch.Generator().manual_seed(args.seed)
    start = [characters.index("\n")] if "\n" in characters else [0]
    return ["".join(characters[i] for i in write(model, start, 200, generator)[1:]) for _ in range(args.samples)]


def report(model, characters, unseen, args, result):
    result["unseen_loss"] = loss_on(model, unseen, args)
    result["samples"] = texts_of(model, characters, args)
    usual = sorted(result["seconds"])[len(result["seconds"]) // 2]
    print(f"loss {result['losses'][-1]:.3f}, {result['unseen_loss']:.3f} on text not seen; "
          f"{1e3 * usual:.0f} ms a step (median)")
    for text in result["samples"]:
        print(f"----\n{text}")
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(result, indent=1) + "\n")


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    set_environment()  # torchrun's, mpirun's or Slurm's
    dist.init_process_group(args.backend)
    characters, data = read(args.text)
    seen = len(data) * 9 // 10
    if len(data) - seen <= args.context + 1:
        sys.exit(f"train.py: {args.text} has {len(data)} characters: too few for a context of {args.context}")
    torch.manual_seed(args.seed)  # the same first parameters on all ranks
    model = new_model(characters, args)
    size = sum(p.numel() for p in model.parameters())
    if dist.get_rank() == 0:
        print(f"{args.parallel} over {args.backend}, {dist.get_world_size()} ranks: {size / 1e6:.1f} M parameters, "
              f"{len(data) / 1e6:.1f} M characters of {len(characters)} kinds", flush=True)
    timeline = Timeline(args.steps // 2 if args.timeline else None)
    timeline.watch(model)
    model, optimizer = parallelize(model, args)
    timeline.watch_buckets(model)
    losses, times = train(model, optimizer, data[:seen], args, timeline)
    result = {"parallel": args.parallel, "backend": args.backend, "ranks": dist.get_world_size(), "parameters": size,
              "losses": mean_of_ranks(losses), "seconds": times, "timeline": timeline.spans}
    alone = whole(model, characters, args)
    if alone:
        report(alone, characters, data[seen:], args, result)
    dist.barrier()  # the others wait for rank 0
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
