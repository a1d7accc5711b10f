"""What the tests of the backend share: a job's begin and end, and how cases are counted."""

import datetime
import os
import sys
import traceback

import torch
import torch.distributed as dist

import device
import meshcoll.torch  # noqa: F401  (registers the backend where torch does not look for it)


class Cases:
    """Runs cases on all ranks; rank 0 prints a line for each: `passed: NAME` or `failed: NAME`."""

    def __init__(self):
        self.failed = 0

    def run(self, name, function, *arguments):
        why = ""
        try:
            function(*arguments)
        except Exception:
            why = traceback.format_exc()
        told = [None] * dist.get_world_size()
        dist.all_gather_object(told, why)
        bad = [rank for rank, text in enumerate(told) if text]
        if dist.get_rank() == 0:
            print(f"{'failed' if bad else 'passed'}: {name}", flush=True)
            if bad:
                print(f"rank {bad[0]}: {told[bad[0]]}", flush=True)
        self.failed += bool(bad)

    def end(self):
        dist.destroy_process_group()
        sys.exit(self.failed > 0)


def begin(backend="meshcoll", seconds=60):
    """Joins the job that torchrun has started; returns rank and size."""
    torch.set_num_threads(1)
    if device.TYPE != "cpu":
        device.install(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=seconds))
    return dist.get_rank(), dist.get_world_size()


def end_of(case, has_failed):
    """Where a group has failed the others of the job have, too."""
    if has_failed:
        raises(dist.DistBackendError, ["mesh"], dist.barrier)
    if dist.get_rank() == 0:
        print(f"passed: {case}", flush=True)
    if not has_failed:
        dist.destroy_process_group()


def raises(kind, words, function, *arguments):
    """The function raises an error of this kind that says all of these words."""
    try:
        function(*arguments)
    except kind as error:
        missing = [word for word in words if word not in str(error)]
        assert not missing, f"the error does not say {missing}: {error}"
        return
    raise AssertionError(f"no {kind.__name__} was raised; expected one that says {words}")


def same(got, want, what):
    """Equal, bit by bit: torch cannot compare all types. Complex zeros may differ in sign."""
    assert got.dtype == want.dtype and got.shape == want.shape, f"{what}: {got.dtype} {got.shape}"
    a = torch.clone(got, memory_format=torch.contiguous_format).reshape(-1)
    b = torch.clone(want, memory_format=torch.contiguous_format).reshape(-1)
    if got.is_complex() or a.numel() == 0:
        equal = torch.equal(a, b)
    else:
        equal = torch.equal(a.view(torch.uint8), b.view(torch.uint8))
    assert equal, f"{what}: got {a[:8]}, want {b[:8]}"
