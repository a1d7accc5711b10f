"""The environment that torch.distributed reads, from the variables of other launchers than torchrun.

Needs no torch. docs/launch.md has the rules, which are those of libmeshcoll's meshcoll_create_env.
"""

import dataclasses
import hashlib
import os
import re

__all__ = ["environment", "set_environment"]

_MOST_RANKS = 1 << 20  # as a job has
# As libmeshcoll's: below the range of outgoing connections.
_PORT_FIRST, _PORTS = 20000, 8000


@dataclasses.dataclass(frozen=True)
class _Launcher:
    name: str  # as MESHCOLL_LAUNCHER has it
    rank: str
    size: str
    local_rank: tuple = ()
    job: tuple = ()  # what tells this job from another; the first is needed to derive a port from


# The innermost launcher first: mpirun may run in a Slurm job, and torchrun in either.
_LAUNCHERS = (
    _Launcher("torchrun", "RANK", "WORLD_SIZE"),
    _Launcher("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("OMPI_COMM_WORLD_LOCAL_RANK",),
              ("PMIX_NAMESPACE",)),
    _Launcher("pmi", "PMI_RANK", "PMI_SIZE", ("MPI_LOCALRANKID", "PMI_LOCAL_RANK"), ("PMI_JOBID",)),
    _Launcher("slurm", "SLURM_PROCID", "SLURM_NTASKS", ("SLURM_LOCALID",), ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)


def _number(env, name, least, most):
    text = env[name]
    if not re.fullmatch(r"[0-9]+", text) or not least <= int(text) <= most:
        raise ValueError(f"meshcoll: {name} is a number from {least} to {most}; got '{text}'")
    return int(text)


def _first_host(nodes):
    """The first host of Slurm's "n[01-04,7]-ib,m3"; None if it is no such list."""
    match = re.match(r"([A-Za-z0-9._:%-]|\[[0-9]+[0-9,-]*\])+(?=,|$)", nodes)
    return re.sub(r"\[([0-9]+)[0-9,-]*\]", r"\1", match[0]) if match else None


def _address(env, launcher):
    size = env[launcher.size]
    if launcher.name == "openmpi":
        return "127.0.0.1" if env.get("OMPI_COMM_WORLD_LOCAL_SIZE") == size else None
    return _first_host(env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or "")


def _port(env, launcher):
    if not env.get(launcher.job[0]):
        return None
    text = "\0".join([launcher.rank] + [env.get(name, "") for name in launcher.job])
    return str(_PORT_FIRST + int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") % _PORTS)


def _told(env, launcher):
    """Does it tell a rank? srun alone turns an allocation's variables into ranks; Slurm numbers its own steps from
    0xfffffff0 on."""
    if launcher.name == "slurm":
        step = env.get("SLURM_STEP_ID") or ""
        return bool(env.get(launcher.rank) and re.fullmatch(r"[0-9]+", step) and int(step) < 0xfffffff0)
    return bool(env.get(launcher.rank) or env.get(launcher.size))


def _claim(env, launcher):
    for have, lacks in ((launcher.rank, launcher.size), (launcher.size, launcher.rank)):
        if not env.get(lacks):
            raise ValueError(f"meshcoll: {have} is set, but {lacks} is not: set both, or neither")
    size = _number(env, launcher.size, 1, _MOST_RANKS)
    return _number(env, launcher.rank, 0, size - 1), size


def _inside(env, inner, size, outer, outer_size):
    """May the outer launcher have started the processes that started the inner one's ranks?"""
    agents = (env.get("TORCHELASTIC_RUN_ID") or env.get("LOCAL_RANK") if inner.name == "torchrun"
              else outer.name == "slurm")
    return size >= outer_size and (agents or outer_size == 1)


def _launcher(env):
    """The launcher that holds; None: there is none."""
    named = env.get("MESHCOLL_LAUNCHER")
    told = [one for one in _LAUNCHERS if _told(env, one) and named in (None, "", one.name)]
    if named and not told:
        raise ValueError(f"meshcoll: MESHCOLL_LAUNCHER is '{named}': expected torchrun, openmpi, pmi or slurm, and its "
                         "variables")
    claims = [_claim(env, one) for one in told]
    for other, (rank, size) in zip(told[1:], claims[1:]):
        if (rank, size) != claims[0] and not _inside(env, told[0], claims[0][1], other, size):
            raise ValueError(f"meshcoll: two launchers disagree: rank {claims[0][0]} of {claims[0][1]} by {told[0].rank} "
                             f"and {told[0].size}, rank {rank} of {size} by {other.rank} and {other.size}; set "
                             f"MESHCOLL_LAUNCHER={told[0].name} or {other.name}, or unset what does not hold")
    return told[0] if told else None


def _ranks(env, launcher):
    size = _number(env, launcher.size, 1, _MOST_RANKS)
    found = {"RANK": _number(env, launcher.rank, 0, size - 1), "WORLD_SIZE": size}
    for name in launcher.local_rank:
        if env.get(name):
            found["LOCAL_RANK"] = _number(env, name, 0, size - 1)
    return {name: str(number) for name, number in found.items()}


def environment(env=os.environ):
    """What torch's init_process_group reads, as a dict: RANK, WORLD_SIZE, LOCAL_RANK (where the launcher tells it),
    MASTER_ADDR and MASTER_PORT. Empty under torchrun, which sets them itself. Without a launcher the job has one rank.

    Raises ValueError where a variable is missing or no number, two launchers disagree, or nothing says where rank 0
    listens.
    """
    launcher = _launcher(env)
    if launcher and launcher.name == "torchrun":
        return {}
    found = _ranks(env, launcher) if launcher else {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    if found["WORLD_SIZE"] == "1":
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    else:
        where = {"MASTER_ADDR": _address(env, launcher), "MASTER_PORT": _port(env, launcher)}
    for name, derived in where.items():
        found[name] = env.get(name) or derived
        if not found[name]:
            raise ValueError(f"meshcoll: {launcher.rank} and {launcher.size} are set ({launcher.name}), but not where "
                             f"rank 0 listens: set {name} on all ranks")
    return found


def set_environment():
    """Sets in os.environ what environment() finds. Call it before init_process_group."""
    os.environ.update(environment())
