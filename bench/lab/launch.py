"""Running programs in the boxes: where ranks go, what mpirun is told, and what is left afterwards."""

import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import time

import boxes
import cores
import procs
from boxes import LabError

EXEC_MARK = "MESHCOLL_LAB_EXEC"     # what `lab exec` started is not swept with a run
AGENT = os.path.join(boxes.HERE, "agent")
GRACE = 3.0                         # seconds mpirun has to end its ranks itself


# --- where ranks go ------------------------------------------------------------------------------

def place(count, box_count, ppn=None, slots=None):
    """Ranks per box, box by box. count may be None when ppn or slots says it."""
    if slots is not None:
        return place_by_slots(count, box_count, slots)
    if ppn is not None:
        return place_by_ppn(count, box_count, ppn)
    if count is None:
        raise LabError("expected the number of ranks, -n N (or --ppn, or --slots); got none", 2)
    if count < 1:
        raise LabError(f"expected -n of 1 or more, got {count}", 2)
    each, more = divmod(count, box_count)
    return [each + (i < more) for i in range(box_count)]


def place_by_slots(count, box_count, slots):
    try:
        placed = [int(s) for s in slots.split(",")]
    except ValueError:
        raise LabError(f"expected --slots like 4,3,1, got '{slots}'", 2) from None
    if min(placed) < 0 or sum(placed) < 1:
        raise LabError(f"expected --slots of 0 or more ranks each, and at least 1 in all, got '{slots}'", 2)
    if len(placed) > box_count:
        raise LabError(f"expected --slots for at most {box_count} boxes, got {len(placed)} numbers", 2)
    if count is not None and sum(placed) != count:
        raise LabError(f"expected --slots to add up to -n {count}, got {sum(placed)}; leave -n out", 2)
    return placed + [0] * (box_count - len(placed))


def place_by_ppn(count, box_count, ppn):
    if ppn < 1:
        raise LabError(f"expected --ppn of 1 or more, got {ppn}", 2)
    count = ppn * box_count if count is None else count
    if not 1 <= count <= ppn * box_count:
        raise LabError(f"expected -n of 1 to {ppn * box_count} ({box_count} boxes of {ppn}), got {count}", 2)
    return [max(0, min(ppn, count - i * ppn)) for i in range(box_count)]


# --- what mpirun is told -------------------------------------------------------------------------

def split_environment(settings):
    """-x NAME or -x NAME=VALUE, as a dict; a bare NAME takes our own value."""
    found = {}
    for one in settings:
        name, equals, value = one.partition("=")
        if not name:
            raise LabError(f"expected -x NAME or -x NAME=VALUE, got '{one}'", 2)
        if equals:
            found[name] = value
        elif name in os.environ:
            found[name] = os.environ[name]
        else:
            raise LabError(f"expected -x {name} to be set in the environment, it is not; "
                           f"say -x {name}=VALUE", 2)
    return found


def program_environment(lab, placed, mpi, settings):
    """What every rank gets: the lab's own network for UCX, where rank 0 is for programs without MPI, and -x on top. Beside
    bridges a program finds the network."""
    first = next(i for i, n in enumerate(placed) if n)
    own = {"UCX_TLS": "self,sm,tcp", "MASTER_ADDR": f"box{first}", "MESHCOLL_SECRET": secrets.token_hex(16)}
    if not lab.config.get("bridges"):
        own["UCX_NET_DEVICES"] = "eth0"
    if mpi == "mpich":      # from whose variables no port can be derived
        own["MASTER_PORT"] = "29500"
    return dict(own, **split_environment(settings))


def mpi_command(mpi, path, lab, placed, over, env, extra, program):
    path = path or find_mpi(mpi)
    extra = shlex.split(extra)
    hosts = ",".join(f"box{i}:{n}" for i, n in enumerate(placed) if n)
    build = {"openmpi": openmpi_command, "openmpi5": openmpi5_command, "mpich": mpich_command}[mpi]
    return build(path, lab, hosts, sum(placed), over, env, extra) + list(program)


def find_mpi(mpi):
    names = {"openmpi": ("mpirun.openmpi", "mpirun"), "openmpi5": ("mpirun",),
             "mpich": ("mpiexec.mpich", "mpiexec.hydra")}[mpi]
    for name in names:
        if shutil.which(name):
            return shutil.which(name)
    raise LabError(f"expected {' or '.join(names)} in PATH for --mpi {mpi}, found none; "
                   "install it, or say where with --mpirun PATH")


def openmpi_command(path, lab, hosts, count, over, env, extra):
    own = {"plm_rsh_agent": AGENT,
           "plm_rsh_no_tree_spawn": "1",        # a box has no way into another: the head starts all
           "oob_tcp_if_include": boxes.SUBNET,
           "orte_tmpdir_base": os.path.join(lab.dir, "tmp")}
    line = openmpi_line(path, hosts, count, extra)
    return line + mca_words({**own, **openmpi_transport("vader", over)}, env, extra)


def openmpi5_command(path, lab, hosts, count, over, env, extra):
    """Open MPI 5 starts its ranks by PRRTE, whose parameters have an option of their own."""
    own = {"plm_ssh_agent": AGENT, "plm_ssh_no_tree_spawn": "1", "prte_if_include": boxes.SUBNET,
           "prte_tmpdir_base": os.path.join(lab.dir, "tmp")}
    line = openmpi_line(path, hosts, count, extra)
    for key, value in own.items():
        line += ["--prtemca", key, value]
    return line + mca_words(openmpi_transport("sm", over), env, extra)


def openmpi_line(path, hosts, count, extra):
    if " " in AGENT:
        raise LabError(f"expected a path without blanks, since Open MPI splits it there, got '{AGENT}'; "
                       "move the project")
    line = [path, "--allow-run-as-root", "--oversubscribe"]
    if not {"--map-by", "-map-by"} & set(extra):
        line += ["--map-by", "slot"]
    if not {"--bind-to", "-bind-to"} & set(extra):
        line += ["--bind-to", "none"]
    return line + ["--host", hosts, "-np", str(count)]


def openmpi_transport(inside, over):
    """`inside`: what Open MPI calls its shared memory."""
    mca = {"mpi_yield_when_idle": "1"}
    if over == "tcp":
        return {**mca, "pml": "ob1", "btl": f"self,{inside},tcp", "btl_tcp_if_include": boxes.SUBNET}
    return {**mca, "pml": "ucx", "opal_common_ucx_tls": "any", "opal_common_ucx_devices": "any"}


def mca_words(mca, env, extra):
    # Open MPI does not settle one parameter given twice: what the user says, we do not.
    told = {extra[i + 1] for i, word in enumerate(extra[:-1]) if word in ("--mca", "-mca")}
    words = []
    for key, value in mca.items():
        words += [] if key in told else ["--mca", key, value]
    for name in env:
        words += ["-x", name]
    return words + extra


def mpich_command(path, _lab, hosts, count, _over, env, extra):
    line = [path, "-launcher", "ssh", "-launcher-exec", AGENT,
            "-hosts", hosts, "-n", str(count)]
    for name, value in env.items():
        line += ["-genv", name, value]
    return line + extra


# --- going in ------------------------------------------------------------------------------------

libc = ctypes.CDLL(None, use_errno=True)


def set_namespace(fd):
    if libc.setns(fd, 0):
        raise OSError(ctypes.get_errno(), "setns")


def start(lab, box, program, env, **options):
    """Start a program in a box or the head, in our working directory and the lab's group, as a child of ours.

    Not through nsenter: that would stand between us and the program, die of a Ctrl-C that the
    program handles, pass no signals on, and leave us without the program's own status.
    """
    here = os.getcwd()
    holder, door = lab.holders[box], cores.door(lab.name)
    spaces = [os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY) for kind in ("ipc", "uts", "net", "mnt")]
    pid_space = os.open(f"/proc/{holder}/ns/pid", os.O_RDONLY)

    def enter():
        if door is not None:
            os.write(door, b"0")
        for fd in spaces:
            set_namespace(fd)
        os.chdir(here)

    set_namespace(pid_space)        # counts for our children only, and from here on for all of them
    try:
        return subprocess.Popen(program, env=env, preexec_fn=enter, **options)
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(f"expected to start '{program[0]}' in {here}, got: {error}", 127) from None
    finally:
        for fd in spaces + [pid_space] + ([door] if door is not None else []):
            os.close(fd)


def exec_in(lab, box, program):
    box = f"box{box}" if box.isdigit() else box
    if box not in lab.holders:
        raise LabError(f"expected a box of lab '{lab.name}' (head, {', '.join(lab.box_names())}), got '{box}'", 2)
    env = dict(os.environ, **{EXEC_MARK: "1", "TMPDIR": os.path.join(lab.dir, "tmp")})
    child = start(lab, box, program, env)
    with signals_to(child, tty=os.isatty(0)):
        return as_status(child.wait())


def as_status(returncode):
    return 128 - returncode if returncode < 0 else returncode


@contextlib.contextmanager
def signals_to(child, tty):
    """Pass our signals to the program. A terminal sends it SIGINT itself."""
    def forward(signum, _frame):
        if signum != signal.SIGINT or not tty:
            child.send_signal(signum)
    before = {n: signal.signal(n, forward) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


# --- a run ---------------------------------------------------------------------------------------

class Stopped(Exception):
    def __init__(self, signum):
        super().__init__(signum)
        self.signum = signum


def run(name, command, env, timeout):
    """Run mpirun in the head to its end, and leave nothing behind; its exit status."""
    with run_lock(name) as lab:
        write_run(lab, command)
        guard = Guard(lab)
        try:
            status = supervise(lab, command, env, timeout, guard)
        finally:
            left = guard.finish()
        if not os.path.isdir(lab.dir):
            raise LabError(f"lab '{name}' was taken down during the run")
        if left and status == 0:
            boxes.say(f"the program ended but left {left} processes in the boxes; they were killed")
        return status


@contextlib.contextmanager
def run_lock(name):
    """One run at a time in a lab, or neither would measure anything."""
    lab = boxes.require_up(name)
    path = os.path.join(lab.dir, "run.lock")
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            now = boxes.read_json(os.path.join(lab.dir, "run.json")) or {}
            boxes.say(f"waiting for the run of process {now.get('pid', '?')} in lab '{name}' to end")
            fcntl.flock(fd, fcntl.LOCK_EX)
        if not os.path.exists(path) or os.fstat(fd).st_ino != os.stat(path).st_ino:
            raise LabError(f"lab '{name}' was taken down while this run waited")
        yield boxes.require_up(name)
    finally:
        os.close(fd)


def write_run(lab, command):
    boxes.write_file(os.path.join(lab.dir, "run.json"),
                     json.dumps({"pid": os.getpid(), "since": time.time(), "command": shlex.join(command)}))


def current_run(lab):
    """The run in progress, or None."""
    try:
        fd = os.open(os.path.join(lab.dir, "run.lock"), os.O_RDWR)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return boxes.read_json(os.path.join(lab.dir, "run.json"))
    finally:
        os.close(fd)


def supervise(lab, command, env, timeout, guard):
    def stop(signum, _frame):
        raise Stopped(signum)
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM):
        signal.signal(signum, stop)
    # No terminal for it: in a session of its own it could not read from one.
    child = None
    try:
        signal.setitimer(signal.ITIMER_REAL, timeout or 0)
        child = start(lab, "head", command, env, start_new_session=True,
                      stdin=subprocess.DEVNULL if os.isatty(0) else None)
        return as_status(child.wait())
    except Stopped as stopped:
        return stop_run(child, stopped.signum, timeout, guard)


def stop_run(child, signum, timeout, guard):
    if signum == signal.SIGALRM:
        boxes.say(f"the program took longer than --timeout {timeout:g} s; stopped")
    if child:
        try:
            child.send_signal(signal.SIGTERM if signum == signal.SIGALRM else signum)
            child.wait(GRACE)
        except (Stopped, subprocess.TimeoutExpired):    # a second Ctrl-C: no more patience
            pass
        guard.finish()
        child.wait()
    return 124 if signum == signal.SIGALRM else 128 + signum


class Guard:
    """A process that waits for the end of this one, even by kill -9, and then clears the boxes."""

    def __init__(self, lab):
        theirs, self.pipe = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.pipe)
            self.watch(lab, theirs)
        os.close(theirs)

    def finish(self):
        """Clear the boxes now; how many processes had been left there."""
        if self.pid:
            with boxes.undisturbed():
                os.close(self.pipe)
                _, status = os.waitpid(self.pid, 0)
                self.left, self.pid = os.waitstatus_to_exitcode(status), 0
        return self.left

    @staticmethod
    def watch(lab, pipe):
        """In the guard. It keeps the run's lock, so that the next run starts in clean boxes."""
        killed = 0
        try:
            os.setsid()
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(signum, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)       # or a reader of our output would wait for the guard
            spaces = lab.spaces()
            os.read(pipe, 1)
            killed = sweep(boxes.Lab(lab.name), spaces)
        finally:
            os._exit(min(killed, 100))


def sweep(lab, spaces):
    """Kill what a run left in the boxes and empty their /dev/shm; how many were killed."""
    if lab.state == "down" or not lab.spaces() <= spaces:
        return 0                        # taken down, perhaps made again: not ours any more

    def left():
        return [p for p in lab.guests() if EXEC_MARK not in procs.environ(p)]

    end = time.monotonic() + 1.0        # mpirun's daemons end a little after mpirun
    while left() and time.monotonic() < end:
        time.sleep(0.02)
    killed, _ = procs.kill_until_none(left)
    for holder in lab.holders.values():
        if procs.foreign_namespaces([holder]):
            clear_shared_memory(holder, os.path.join(lab.dir, "tmp"))
    return len(killed)


def clear_shared_memory(holder, tmp):
    subprocess.run(["nsenter", "-t", str(holder), "-m", "-i", "-p", "sh", "-c",
                    'find /dev/shm/ "$0" -xdev -mindepth 1 -delete; ipcrm --all', tmp],
                   stdin=subprocess.DEVNULL, capture_output=True)
