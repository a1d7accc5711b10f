"""Who is compared, and the command that starts each: meshcoll, and the peers with their best flags."""

import os
import shlex
import shutil

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LAB = os.path.join(ROOT, "bench", "lab", "lab")
OURS = "meshcoll"
SOURCES = [os.path.join(HERE, "peer.c"), *(os.path.join(ROOT, "bench", "common", f"gate.{c}") for c in "ch")]


class Contender:
    """In the lab `lab` are options of `lab run`; in one box `local` is the whole launcher."""

    def __init__(self, name, library, what, lab=None, local=None, env=None):
        self.name, self.library, self.what = name, library, what
        self.lab, self.local, self.env = lab, local, env or {}

    def command(self, cluster, lab_name, program):
        if cluster.in_lab:
            slots = ",".join(map(str, cluster.in_box))
            return [LAB, "run", "--name", lab_name, "--slots", slots, *self.lab, "--", *program]
        return [*self.local(cluster), *program]

    def describe(self, cluster):
        """For the report: the command, without paths of this machine."""
        line = shlex.join(self.command(cluster, "cmp", ["PROGRAM"]))
        extra = [f"{key}=…" for key in self.env]
        return " ".join(extra + [line.replace(ROOT + "/", "")])


def crowded(ranks):
    return ranks > (os.cpu_count() or 1)


def openmpi(mca, more=()):
    def launch(cluster):
        bound = ["--map-by", "core", "--bind-to", "core:overload-allowed"]
        bind = bound if cluster.bind == "core" else ["--bind-to", "none"]
        line = [shutil.which("mpirun.openmpi") or "mpirun", "-n", str(cluster.ranks), "--oversubscribe", *bind,
                "--mca", "mpi_yield_when_idle", "1" if crowded(cluster.ranks) else "0"]
        if os.geteuid() == 0:
            line.append("--allow-run-as-root")
        for key, value in mca.items():
            line += ["--mca", key, value]
        return line + list(more)
    return launch


VADER = {"pml": "ob1", "btl": "self,vader"}
UCX = {"pml": "ucx", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}
HAN = ["--mpirun-args", "--mca coll_han_priority 100"]


def ours(cluster, tune_file):
    """meshcoll on its own UCX; MPI only starts it and makes the barriers."""
    env = {"MESHCOLL_TUNE_FILE": tune_file}
    if cluster.in_lab:
        return Contender(OURS, "meshcoll", "the planner's choice", lab=[], env=env)
    return Contender(OURS, "meshcoll", "the planner's choice", local=openmpi(VADER), env=env)


class Peers:
    """The peers that are built, and why the others are not."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.missing = {name: self.why(name) for name in ("openmpi", "mpich") if self.why(name)}

    def why(self, name):
        program = os.path.join(self.folder, f"peer-{name}")
        if os.access(program, os.X_OK):
            old = [one for one in SOURCES if os.path.getmtime(one) > os.path.getmtime(program)]
            return f"{program} is older than {old[0]}; run bench/compare/peers.sh again" if old else None
        try:
            with open(os.path.join(self.folder, f"{name}.missing"), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return f"bench/compare/peers.sh has not built it in {self.folder}"

    def program(self, contender):
        return os.path.join(self.folder, "peer-mpich" if contender.library == "MPICH" else "peer-openmpi")

    def all(self, cluster):
        found = [] if "openmpi" in self.missing else self.openmpi(cluster)
        return found + ([] if "mpich" in self.missing else self.mpich(cluster))

    @staticmethod
    def openmpi(cluster):
        if not cluster.in_lab:          # HAN takes itself out where all ranks are in one box
            return [Contender("ompi-vader", "Open MPI", "tuned, ob1 over vader", local=openmpi(VADER)),
                    Contender("ompi-sm", "Open MPI", "coll/sm where it can, ob1 over vader",
                              local=openmpi({**VADER, "coll_sm_priority": "100"})),
                    Contender("ompi-ucx", "Open MPI", "tuned, over UCX",
                              local=openmpi(UCX, ["-x", "UCX_TLS=self,sm"]), env={"UCX_TLS": "self,sm"})]
        return [Contender("ompi-tcp", "Open MPI", "tuned, ob1 over TCP and vader", lab=["--over", "tcp"]),
                Contender("ompi-tcp-han", "Open MPI", "HAN, ob1 over TCP and vader", lab=["--over", "tcp", *HAN]),
                Contender("ompi-ucx", "Open MPI", "tuned, over UCX", lab=["--over", "ucx"]),
                Contender("ompi-ucx-han", "Open MPI", "HAN, over UCX", lab=["--over", "ucx", *HAN])]

    def mpich(self, cluster):
        """Spinning as it comes; and where ranks share cores, also with a yield in its wait: see yield.c."""
        root = os.path.join(self.folder, "mpich", "usr")
        start = os.path.join(root, "bin", "mpiexec.hydra")
        lib = os.path.join(root, "lib")
        path = ":".join(os.path.join(lib, one) for one in sorted(os.listdir(lib)) if one.endswith("-linux-gnu"))
        env = {"LD_LIBRARY_PATH": path}
        preload = os.path.join(self.folder, "yield.so")

        def local(settings):
            def launch(cluster):
                bind = ["-bind-to", "core", "-map-by", "core"] if cluster.bind == "core" else []
                return [start, "-n", str(cluster.ranks), *bind, "-genv", "UCX_TLS", "self,sm", *settings]
            return launch
        lab = ["--mpi", "mpich", "--mpirun", start]
        found = [Contender("mpich", "MPICH", "ch4:ucx", lab=lab, local=local([]), env=env)]
        if crowded(cluster.ranks):
            found.append(Contender("mpich-yield", "MPICH", "ch4:ucx, yields while it waits (yield.c)",
                                   lab=[*lab, "-x", f"LD_PRELOAD={preload}"],
                                   local=local(["-genv", "LD_PRELOAD", preload]), env=env))
        return found


def environment(contender):
    """Nobody's settings of the caller's shell get in."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("MESHCOLL_", "UCX_", "OMPI_", "PMIX_", "MPICH_", "MPIR_"))}
    return dict(kept, **contender.env)
