"""The environment that torch.distributed reads, from the variables of other launchers than torchrun.

Needs no torch. docs/launch.md has the rules, which are those of libmeshcoll's meshcoll_create_env.
"""

import dataclasses
import hashlib
import ipaddress
import os
import re
import socket
import struct

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
    job: tuple = ()  # what tells this job from another; one of them suffices to derive a port
    here: tuple = ()  # with the number of this host's ranks
    hosts: str = ""  # with the number of hosts


# The innermost launcher first: mpirun may run in a Slurm job, and torchrun in either.
_LAUNCHERS = (
    _Launcher("torchrun", "RANK", "WORLD_SIZE"),
    _Launcher("horovod", "HOROVOD_RANK", "HOROVOD_SIZE", ("HOROVOD_LOCAL_RANK",),
              ("HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT"), ("HOROVOD_LOCAL_SIZE",)),
    _Launcher("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("OMPI_COMM_WORLD_LOCAL_RANK",),
              ("PMIX_NAMESPACE",), ("OMPI_COMM_WORLD_LOCAL_SIZE",)),
    _Launcher("mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", ("MV2_COMM_WORLD_LOCAL_RANK",), ("MPIRUN_ID",),
              ("MV2_COMM_WORLD_LOCAL_SIZE",)),
    _Launcher("jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", ("JSM_NAMESPACE_LOCAL_RANK",), ("PMIX_NAMESPACE",),
              ("JSM_NAMESPACE_LOCAL_SIZE",)),
    _Launcher("flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", ("FLUX_TASK_LOCAL_ID",), ("FLUX_JOB_ID",),
              hosts="FLUX_JOB_NNODES"),
    _Launcher("pmi", "PMI_RANK", "PMI_SIZE", ("MPI_LOCALRANKID", "PMI_LOCAL_RANK"), ("PMI_JOBID", "I_MPI_HYDRA_UUID"),
              ("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE")),
    _Launcher("slurm", "SLURM_PROCID", "SLURM_NTASKS", ("SLURM_LOCALID",), ("SLURM_JOB_ID", "SLURM_STEP_ID"),
              hosts="SLURM_STEP_NUM_NODES"),
)
_SLURM = _LAUNCHERS[-1]
_NAMES = ", ".join(one.name for one in _LAUNCHERS[:-1]) + f" or {_SLURM.name}"
# They tell a rank, but no number of ranks; and where that is to be had.
_HALF_TOLD = {"PMIX_RANK": " (Open MPI's mpirun and srun tell it, prterun does not)",
              "PMI_ID": " (mpiexec without -pmi-port tells it)", "PALS_RANKID": " (mpiexec with its PMI tells it)",
              "ALPS_APP_PE": ""}


def _number(env, name, least, most):
    text = env[name]
    if not re.fullmatch(r"[0-9]+", text) or not least <= int(text) <= most:
        raise ValueError(f"meshcoll: {name} is a number from {least} to {most}; got '{text}'")
    return int(text)


def _first_host(nodes):
    """The first host of Slurm's "n[01-04,7]-ib,m3"; None if it is no such list."""
    match = re.match(r"([A-Za-z0-9._:%-]|\[[0-9]+[0-9,-]*\])+(?=,|$)", nodes)
    return re.sub(r"\[([0-9]+)[0-9,-]*\]", r"\1", match[0]) if match else None


def _local(env, launcher):
    size = env.get(launcher.size)
    return env.get(launcher.hosts) == "1" or bool(size) and any(env.get(name) == size for name in launcher.here)


def _in_step(env):
    """Slurm numbers its own steps from 0xfffffff0 on."""
    step = env.get("SLURM_STEP_ID") or ""
    return bool(env.get("SLURM_PROCID") and re.fullmatch(r"[0-9]+", step) and int(step) < 0xfffffff0)


def _address(env, launcher):
    if _local(env, launcher):
        return "127.0.0.1"
    by_srun = launcher.name == "slurm" or launcher.name == "pmi" and not env.get("MPI_LOCALNRANKS")
    first = _first_host(by_srun and env.get("SLURM_STEP_NODELIST") or env.get("SLURM_JOB_NODELIST") or "")
    if by_srun and env[launcher.rank] == "0" and env.get("SLURM_NODEID", "0") != "0":
        raise ValueError(f"meshcoll: rank 0 is not on the step's first host ({first}): set MASTER_ADDR to its name, "
                         f"{env.get('SLURMD_NODENAME') or socket.gethostname()}, on all ranks")
    return first


def _starter(env):
    """The process at the other end of PMI_FD, which has started all ranks of this host."""
    try:
        with socket.socket(fileno=os.dup(int(env["PMI_FD"]))) as end:
            return struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0] or None
    except (KeyError, ValueError, OSError):
        return None


def _job(env, launcher):
    """What tells the job from others; None: nothing does. MPICH's mpiexec tells nothing itself; on several hosts it has
    a step of its own for its agents."""
    if any(env.get(name) for name in launcher.job):
        return [env.get(name, "") for name in launcher.job]
    if launcher.name == "pmi" and _local(env, launcher):
        return _starter(env) and [str(_starter(env))]
    if launcher.name == "pmi" and _in_step(env) and not _local(env, _SLURM):
        return [env.get(name, "") for name in _SLURM.job]
    return None


def _port(env, launcher):
    job = _job(env, launcher)
    if not job:
        return None
    text = "\0".join([launcher.rank] + job)
    return str(_PORT_FIRST + int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") % _PORTS)


def _told(env, launcher):
    """Does it tell a rank? srun alone turns an allocation's variables into ranks."""
    return _in_step(env) if launcher.name == "slurm" else bool(env.get(launcher.rank) or env.get(launcher.size))


def _claim(env, launcher):
    for have, lacks in ((launcher.rank, launcher.size), (launcher.size, launcher.rank)):
        if not env.get(lacks):
            raise ValueError(f"meshcoll: {have} is set, but {lacks} is not: set both, or neither")
    size = _number(env, launcher.size, 1, _MOST_RANKS)
    return _number(env, launcher.rank, 0, size - 1), size


def _agents(env):
    return env.get("TORCHELASTIC_RUN_ID") or env.get("LOCAL_RANK")


def _check_half_told(env, told, claims):
    """A rank of which no launcher's two variables tell; torchrun's agents have one of their own."""
    if told and told[0].name == "torchrun" and _agents(env):
        return
    for name, advice in _HALF_TOLD.items():
        rank = env.get(name)
        singleton = name == "PMIX_RANK" and env.get("OMPI_COMMAND") and not env.get("PRTE_LAUNCHED")  # by MPI_Init
        if rank and not singleton and rank not in [str(known) for known, _ in claims]:
            raise ValueError(f"meshcoll: {name} is {rank}, so this is one of several processes, but no variable says of "
                             f"how many{advice}: set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in each, or unset "
                             f"{name} for a job of one rank")


def _inside(env, inner, size, outer, outer_size):
    """May the outer launcher have started the processes that started the inner one's ranks?"""
    agents = _agents(env) if inner.name == "torchrun" else outer.name == "slurm"
    return size >= outer_size and (agents or outer_size == 1)


def _launcher(env):
    """The launcher that holds; None: there is none."""
    named = env.get("MESHCOLL_LAUNCHER")
    told = [one for one in _LAUNCHERS if _told(env, one) and named in (None, "", one.name)]
    if named and not told:
        raise ValueError(f"meshcoll: MESHCOLL_LAUNCHER is '{named}': expected {_NAMES}, and its variables")
    claims = [_claim(env, one) for one in told]
    for other, (rank, size) in zip(told[1:], claims[1:]):
        if (rank, size) != claims[0] and not _inside(env, told[0], claims[0][1], other, size):
            raise ValueError(f"meshcoll: two launchers disagree: rank {claims[0][0]} of {claims[0][1]} by {told[0].rank} "
                             f"and {told[0].size}, rank {rank} of {size} by {other.rank} and {other.size}; set "
                             f"MESHCOLL_LAUNCHER={told[0].name} or {other.name}, or unset what does not hold")
    if not named:
        _check_half_told(env, told, claims)
    return told[0] if told else None


def _ranks(env, launcher):
    size = _number(env, launcher.size, 1, _MOST_RANKS)
    found = {"RANK": _number(env, launcher.rank, 0, size - 1), "WORLD_SIZE": size}
    for name in launcher.local_rank:
        if env.get(name):
            found["LOCAL_RANK"] = _number(env, name, 0, size - 1)
    return {name: str(number) for name, number in found.items()}


def _check_host(text):
    """A name has no colon: with one it is an address, or has a port."""
    host = text[1:-1] if re.fullmatch(r"\[.*\]", text) else text
    if re.fullmatch(r"[A-Za-z0-9._%-]+", host):
        return
    try:
        ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        raise ValueError("meshcoll: MASTER_ADDR is a name or an address, without a scheme and a port, which MASTER_PORT "
                         f"tells; got '{text}'") from None


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
    _check_host(found["MASTER_ADDR"])
    return found


def set_environment():
    """Sets in os.environ what environment() finds. Call it before init_process_group."""
    os.environ.update(environment())
