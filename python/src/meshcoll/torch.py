"""The backend "meshcoll" of torch.distributed, for tensors on the CPU and on CUDA devices.

``torch.distributed.init_process_group("meshcoll")`` finds it by itself where torch knows the entry points
``torch.distributed.backends``; elsewhere ``import meshcoll.torch`` comes first. docs/training.md says what it supports.
"""

import atexit
import datetime
import functools
import importlib
import itertools
import os
import sys
import threading

import torch
import torch.distributed as dist

from meshcoll import built, launch


def _module():
    """The compiled module, where this torch has the classes that it was compiled for."""
    if torch.__version__.split(".")[:2] != built.TORCH.split(".")[:2]:
        raise ImportError(f"meshcoll was compiled for torch {built.TORCH}, and this is torch {torch.__version__}: "
                          "compile it again, pip install --force-reinstall --no-deps ./python in its sources")
    try:
        return importlib.import_module("meshcoll._torch")
    except ImportError as error:
        if "libuc" not in str(error):
            raise
        try:
            import libucx  # the packages libucx-cu12 and libucx-cu13: for machines without UCX
        except ImportError:
            raise ImportError(f"meshcoll needs UCX 1.13 or later: {error}. Install the system's (Debian: libucx0), "
                              "or pip install libucx-cu13 (for CUDA 12: libucx-cu12)") from None
    libucx.load_library()
    return importlib.import_module("meshcoll._torch")


_torch = _module()

__all__ = ["init", "register", "version"]

NAME = "meshcoll"

# Seconds that a process waits at its end for the other ranks to end their groups as well.
_PATIENCE = 10.0


def version():
    """The version of libmeshcoll, as text."""
    return _torch.version()


class _Future(torch._C.Future):
    """torch runs a callback at once where the future is complete already, else in the thread that completes it, so that
    what it begins would have another place among the calls on each rank. Callbacks of this one, and of the futures that
    then() returns, run in the order of a group (order.h)."""

    def __init__(self, group, future):
        super().__init__([])
        _torch.same_as(self, future)
        self._group = group

    def then(self, callback):
        gate = torch._C.Future([])
        result = _Future(self._group, gate.then(callback))
        _torch.hang(self, self._group, gate)
        return result

    def add_done_callback(self, callback):
        gate = torch._C.Future([])
        gate.add_done_callback(callback)
        _torch.hang(self, self._group, gate)


def _get_future(work):
    """Of receives and sends torch's own: they have no order. Those of works on a GPU, too, are complete when they are
    made, and callbacks run in the program's order."""
    future = dist.Work.get_future(work)
    return _Future(work.group(), future) if work.is_collective() else future


_torch.Work.get_future = _get_future


def _extents(text):
    """The dimensions of "box=2,gpu=4" as (name, extent); None for unequal boxes, "box=4+3"."""
    dims = []
    for item in text.split(","):
        name, _, extent = item.strip().partition("=")
        if not extent.isdigit():
            return None
        dims.append((name, int(extent)))
    return dims


def mesh_of_group(ranks, world):
    """The text of the mesh of a group, of which `world` is MESHCOLL_MESH and `ranks` are the members in their order.

    Members that are all ranks at some coordinates, row by row, have the dimensions in which they differ. The mesh of
    others is "": found from the machines they run on.
    """
    dims = _extents(world)
    if dims is None:
        return ""
    steps = [1]
    for _, extent in reversed(dims[1:]):
        steps.insert(0, steps[0] * extent)
    used = [sorted({rank // step % extent for rank in ranks}) for step, (_, extent) in zip(steps, dims)]
    grid = [sum(c * step for c, step in zip(at, steps)) for at in itertools.product(*used)]
    if grid != list(ranks) or len(ranks) < 2:
        return ""
    return ",".join(f"{name}={len(at)}" for (name, _), at in zip(dims, used) if len(at) > 1)


def _base(store):
    """The store below the prefixes. One that is written in Python works as long as its object lives."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return store


def _gloo(_base_of_it, timeout, store, tag, rank, size, depth):
    """For sparse tensors: Gloo among the same ranks, another one for calls in callbacks (order.h)."""
    if not dist.is_gloo_available():
        raise ValueError("meshcoll takes sparse tensors where torch has Gloo, which this one lacks")
    return dist.ProcessGroupGloo(dist.PrefixStore(f"meshcoll/{tag}/gloo/{depth}", store), rank, size, timeout=timeout)


def _part(of, _base_of_it, store, rank, size, ranks, timeout):
    """A group of these ranks of another one, whose ranks in the job are `of`; of ranks that it does not know: none."""
    return _make(store, rank, size, datetime.timedelta(seconds=timeout), [of[r] for r in ranks] if of else [])


def _times_made(store, rank, size):
    """How often this rank's place in the group was taken over this store, also by processes before this one. It is the
    same on all ranks, as all make the group or are told that it failed, and tells the group from those before."""
    return store.add(f"meshcoll/made/{rank}", 1) if size > 1 else 1


def _mesh(ranks, size):
    """The text of a group's mesh: None is MESHCOLL_MESH, which is of the launcher's world; "" is found. A program may
    also make groups with other processes, of which torch names no ranks."""
    is_first = not dist.is_initialized()
    all_ranks = size if is_first else dist.get_world_size()
    if int(os.environ.get("WORLD_SIZE") or all_ranks) != all_ranks or not (ranks or is_first):
        return ""
    is_all = not ranks or ranks == list(range(all_ranks))
    return None if is_all else mesh_of_group(ranks, os.environ.get("MESHCOLL_MESH", ""))


def _make(store, rank, size, timeout, ranks, begins=True):
    base = _base(store)
    is_part = ranks and len(ranks) < dist.get_world_size()
    name = f"the group of ranks {', '.join(map(str, ranks))}, here numbered from 0 on" if is_part else ""
    is_world = not ranks and not dist.is_initialized()
    # nothing here may keep the process group, which has the backend
    return _torch.create(
        store=store,
        rank=rank,
        size=size,
        timeout=timeout.total_seconds(),
        mesh=_mesh(ranks, size),
        name=name,
        tag=_times_made(store, rank, size),
        gloo=functools.partial(_gloo, base, timeout),
        part=functools.partial(_part, list(range(size)) if is_world else ranks, base),
        begins=begins,
    )


def _create(options, _backend_options=None):
    return _make(options.store, options.group_rank, options.group_size, options.timeout,
                 list(options.global_ranks_in_group), not getattr(options, "enable_reconfigure", False))


def _abort_if_failed():
    """At the end of the process: one that ends by an exception says so to the other ranks, and waits for none. What a
    prompt printed does not end the process."""
    error = getattr(sys, "last_value", None)
    if error is not None and not sys.flags.interactive and not hasattr(sys, "ps1"):
        lines = str(error).splitlines()
        _torch.abort_all(f"its process ends by {type(error).__name__}" + (f": {lines[0]}" if lines else ""))


def register():
    """Makes the backend known to torch.distributed. Calling it again changes nothing."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu", "cuda"])
    atexit.register(_torch.close_all, _PATIENCE)
    atexit.register(_abort_if_failed)
    if hasattr(threading, "_register_atexit"):
        threading._register_atexit(_abort_if_failed)  # before threads are joined, which may wait for other ranks


def init(**arguments):
    """init_process_group("meshcoll", …) in a job of any launcher that docs/launch.md lists."""
    launch.set_environment()
    dist.init_process_group(NAME, **arguments)


register()
