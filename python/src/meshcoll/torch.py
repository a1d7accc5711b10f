"""The backend "meshcoll" of torch.distributed, for tensors on the CPU and on CUDA devices.

``torch.distributed.init_process_group("meshcoll")`` finds it by itself where torch knows the entry points
``torch.distributed.backends``; elsewhere ``import meshcoll.torch`` comes first. docs/training.md says what it supports.
"""

import atexit
import collections
import functools
import itertools
import os

import torch.distributed as dist

from meshcoll import _torch, launch

__all__ = ["init", "register", "version"]

NAME = "meshcoll"

# Seconds that a process waits at its end for the other ranks to end their groups as well.
_PATIENCE = 10.0

# How often a group was made under its name, the same on all its ranks.
_made = collections.Counter()


def version():
    """The version of libmeshcoll, as text."""
    return _torch.version()


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


def _gloo(store, tag, rank, size, timeout):
    """For sparse tensors: Gloo among the same ranks."""
    return dist.ProcessGroupGloo(dist.PrefixStore(f"meshcoll/{tag}/gloo", store), rank, size, timeout=timeout)


def _create(options, _backend_options=None):
    ranks = list(options.global_ranks_in_group)
    is_all = not ranks or ranks == list(range(dist.get_world_size() if dist.is_initialized() else len(ranks)))
    mesh = None if is_all else mesh_of_group(ranks, os.environ.get("MESHCOLL_MESH", ""))
    group = (options.group_id, *ranks)
    _made[group] += 1
    gloo = None
    if dist.is_gloo_available():  # without `options`, which has the process group, which has the backend
        gloo = functools.partial(_gloo, options.store, _made[group], options.group_rank, options.group_size,
                                 options.timeout)
    name = "" if is_all else f"the group of ranks {', '.join(map(str, ranks))}, here numbered from 0 on"
    return _torch.create(
        store=options.store,
        rank=options.group_rank,
        size=options.group_size,
        timeout=options.timeout.total_seconds(),
        mesh=mesh,
        name=name,
        tag=_made[group],
        make_gloo=gloo,
    )


def register():
    """Makes the backend known to torch.distributed. Calling it again changes nothing."""
    if hasattr(dist.Backend, NAME.upper()):
        return
    dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu", "cuda"])
    atexit.register(_torch.close_all, _PATIENCE)


def init(**arguments):
    """init_process_group("meshcoll", …) in a job of any launcher that docs/launch.md lists."""
    launch.set_environment()
    dist.init_process_group(NAME, **arguments)


register()
