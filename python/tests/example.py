"""examples/train: the same training over Gloo and over meshcoll, as torchrun starts it, and its pictures.

usage: example.py [NAME…]    only tests whose name has one of these texts
2 ranks sum with each other (hsdp: 2 in each dimension), so sums have one order, and losses are equal bit by bit.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jobs

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "train"
STEPS, LIMIT = 5, 300


def start(ranks, *options, mesh=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if mesh:
        environment["MESHCOLL_MESH"] = mesh
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks),
               EXAMPLE / "train.py", "--small", "--steps", str(STEPS), "--batch", "2", "--samples", "1", *options]
    return jobs.outputs([(command, environment)], LIMIT)[0]


def train(out, ranks, *options, mesh=None):
    """What train.py writes; its text is the documentation of this repository."""
    said, status = start(ranks, "--text", str(ROOT / "docs"), "--out", str(out), *options, mesh=mesh)
    assert status == 0, said
    return json.loads(out.read_text())


def same_over_gloo(folder, parallel, ranks, *options, mesh=None):
    over = {backend: train(folder / f"{backend}.json", ranks, "--parallel", parallel, "--backend", backend, *options,
                           mesh=mesh if backend == "meshcoll" else None) for backend in ("gloo", "meshcoll")}
    gloo, meshcoll = over["gloo"], over["meshcoll"]
    assert len(meshcoll["losses"]) == len(meshcoll["seconds"]) == STEPS, meshcoll
    assert meshcoll["losses"][-1] < meshcoll["losses"][0], f"the loss does not fall: {meshcoll['losses']}"
    for what in ("losses", "unseen_loss", "samples"):
        assert meshcoll[what] == gloo[what], f"{what}: {meshcoll[what]} over meshcoll, {gloo[what]} over Gloo"
    assert len(meshcoll["samples"][0]) == 200, meshcoll["samples"]


def ddp(folder):
    same_over_gloo(folder, "ddp", 2)


def fsdp2(folder):
    same_over_gloo(folder, "fsdp2", 2)


def hsdp(folder):
    same_over_gloo(folder, "hsdp", 4, "--boxes", "2", mesh="box=2,gpu=2")


def zero1(folder):
    same_over_gloo(folder, "zero1", 2)


def pictures(folder):
    run = train(folder / "meshcoll.json", 2, "--timeline", "--bucket-mb", "0.1")
    kinds = {span["kind"] for span in run["timeline"]}
    assert kinds == {"forward", "backward", "optimizer", "bucket"}, kinds
    buckets = [span for span in run["timeline"] if span["kind"] == "bucket"]
    assert len(buckets) > 1 and all(0 <= span["begin"] < span["end"] for span in run["timeline"]), run["timeline"]
    python = next((one for one in (sys.executable, "python3", "/usr/bin/python3")
                   if subprocess.run([one, "-c", "import matplotlib"], capture_output=True).returncode == 0), None)
    if not python:
        return "matplotlib is not installed (Debian: python3-matplotlib)"
    file, svg, png = folder / "meshcoll.json", folder / "a.svg", folder / "a.png"
    drawn = subprocess.run([python, EXAMPLE / "draw.py", file, file, "-o", svg, "-o", png], text=True,
                           capture_output=True)
    assert drawn.returncode == 0, drawn.stderr
    assert "</svg>" in svg.read_text() and png.read_bytes().startswith(b"\x89PNG")


def no_text(folder):
    said, status = start(1, "--text", str(folder / "missing"))
    assert status != 0 and "missing is not there" in said, said


def in_a_folder(test):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            return test(pathlib.Path(folder))
    return run


TESTS = {"example: DDP as over Gloo": ddp, "example: FSDP2 as over Gloo": fsdp2, "example: HSDP as over Gloo": hsdp,
         "example: ZeRO-1 as over Gloo": zero1, "example: pictures": pictures, "example: no text": no_text}
jobs.main({name: in_a_folder(test) for name, test in TESTS.items()})
