"""The boxes: namespaces, links, and what is known about them.

The head is a holder process in namespaces of its own; every box is one too, inside the head's pid
namespace. So killing one process, the head's holder, ends everything that ever ran in the lab.
Holders are found by a mark in their environment, not by remembered pids: that stays right after
any crash, and never hits a stranger that got an old pid.
"""

import contextlib
import fcntl
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import cores
import procs
import torus

ROOT = "/run/meshcoll-lab"
MARK = "MESHCOLL_LAB_HOLDER"
HERE = os.path.dirname(os.path.realpath(__file__))
NET = "10.77.0"            # every lab has it: no lab can see another, or the machine's own network
SUBNET = f"{NET}.0/24"
HEAD_ADDRESS = f"{NET}.254"
MAX_BOXES = 200
MAX_BRIDGES = 14           # 172.17.0.0/16 to 172.30.0.0/16
QUEUE = "20ms"
TOOLS = ("ip", "tc", "nsenter", "unshare", "mount", "env", "ipcrm", "find")


class LabError(Exception):
    """Said to a person in one line; status is the exit status."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


class CannotHere(LabError):
    """This machine does not allow a lab."""

    def __init__(self, message):
        super().__init__(message, 3)


def directory(name):
    return os.path.join(ROOT, name)


def address(index):
    return f"{NET}.{index + 1}"


def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


# --- what is there -------------------------------------------------------------------------------

def marked():
    """{lab: {box: holder pid}} and {lab: [pids that carry the mark but are no first process]}."""
    holders, wrappers = {}, {}
    for pid in procs.pids():
        mark = procs.environ(pid).get(MARK)
        if not mark or "/" not in mark or not procs.is_running(pid):
            continue
        lab, box = mark.split("/", 1)
        if procs.nspid(pid)[-1:] == [1]:
            holders.setdefault(lab, {})[box] = pid
        else:
            wrappers.setdefault(lab, []).append(pid)
    return holders, wrappers


class Lab:
    """One lab as it is now."""

    def __init__(self, name):
        self.name = name
        self.dir = directory(name)
        holders, wrappers = marked()
        self.holders = holders.get(name, {})
        self.wrappers = wrappers.get(name, [])
        self.config = read_json(os.path.join(self.dir, "config.json"))

    def box_names(self):
        return [f"box{i}" for i in range(self.config["boxes"])] if self.config else []

    def missing(self):
        return [b for b in ["head"] + self.box_names() if b not in self.holders]

    @property
    def state(self):
        if not self.config and not self.holders and not self.wrappers:
            return "down" if not os.path.isdir(self.dir) else "half-made"
        if not self.config or not self.config.get("complete"):
            return "half-made"
        return "broken" if self.missing() else "up"

    def spaces(self):
        return procs.foreign_namespaces(self.holders.values())

    def guests(self):
        """Processes in the lab that are not its own."""
        own = set(self.holders.values()) | set(self.wrappers)
        return [p for p in procs.inside(self.spaces()) if p not in own]


def require_up(name):
    lab = Lab(name)
    hint = "" if name == "lab" else f" --name {name}"
    if lab.state == "up":
        return lab
    if lab.state == "down":
        raise LabError(f"expected lab '{name}' to be up, it is down; run 'lab up{hint}' first")
    what = f"{', '.join(lab.missing())} gone" if lab.state == "broken" else lab.state
    raise LabError(f"expected lab '{name}' to be up, found it broken ({what}); "
                   f"run 'lab down{hint}', then 'lab up'")


def lab_names():
    holders, wrappers = marked()
    names = set(holders) | set(wrappers)
    if os.path.isdir(ROOT):
        names |= set(os.listdir(ROOT))
    return sorted(names)


def read_json(path):
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError):
        return None


def write_file(path, text):
    """Whole or not at all, so that a crash leaves no half file."""
    with open(path + ".new", "w") as f:
        f.write(text)
    os.replace(path + ".new", path)


@contextlib.contextmanager
def locked():
    """One `up` or `down` at a time; the kernel drops the lock when its owner dies."""
    os.makedirs(ROOT, exist_ok=True)
    fd = os.open(ROOT, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def undisturbed():
    """Taking down is not to be interrupted halfway by an impatient Ctrl-C."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(n, signal.SIG_IGN) for n in numbers]
    try:
        yield
    finally:
        for n, handler in zip(numbers, before):
            signal.signal(n, handler)


def uninterrupted_from_here():
    """A lab that is complete stays: no signal may make its maker end as if it had failed."""
    for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(n, signal.SIG_IGN)


# --- can this machine do it? ---------------------------------------------------------------------

def require_machine():
    """What can be told at once; the rest shows when it is tried."""
    if not sys.platform.startswith("linux"):
        raise CannotHere(f"a lab needs Linux namespaces, this is {sys.platform}")
    if os.geteuid() != 0:
        raise CannotHere(f"a lab needs root, this is user id {os.geteuid()}; run it with sudo")
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        raise CannotHere(f"a lab needs the commands {', '.join(missing)}, not found in PATH; "
                         "install iproute2 and util-linux")


# --- up ------------------------------------------------------------------------------------------

def settings_text(config):
    rates = config["rates"]
    rate = rates[0] if len(set(rates)) == 1 else ",".join(rates)
    shaped = "unshaped" if rate == "none" else f"{rate} each way"
    burst = "" if rate == "none" else f", burst {config['burst']}"
    if rate != "none" and config.get("queue", QUEUE) != QUEUE:
        burst += f", queues of {config['queue']}"
    last = config["boxes"] - 1
    grid = "x".join(map(str, config.get("torus") or []))
    nics = f", a torus of {grid} with a NIC for each dimension" if grid else ""
    docker = f", {config['bridges']} bridges in each" if config.get("bridges") else ""
    return f"{config['boxes']} boxes (box0…box{last}, {address(0)}…{address(last)}){nics}{docker}, {shaped}{burst}"


def up(config):
    """Make the lab; True if it was made, False if it was there already."""
    require_machine()
    with locked():
        lab = Lab(config["name"])
        if lab.state == "up":
            if all(lab.config.get(k) == config[k] for k in ("boxes", "torus", "bridges", "rates", "burst", "queue")):
                return False
            raise LabError(f"lab '{lab.name}' is up already with other settings: "
                           f"{settings_text(lab.config)}; run 'lab down' first, or give another --name")
        if lab.state != "down":
            say(f"lab '{lab.name}' was {lab.state}; clearing it away first")
            teardown(lab)
        try:
            build(config)
            uninterrupted_from_here()
            write_config(config, complete=True)
        except BaseException:
            teardown(Lab(config["name"]))
            raise
    return True


def build(config):
    base = directory(config["name"])
    os.makedirs(os.path.join(base, "tmp"))
    write_config(config)
    cores.make(config["name"])
    write_file(os.path.join(base, "hosts"), hosts_text(config["boxes"]))
    head = start_holder(config["name"], "head", None)
    switches = [switch(config, dim, number) for dim, number in lines(config)]
    in_net(head, "\n".join(f"ip link add {lan} type bridge stp_state 0 forward_delay 0\n"
                           f"ip link set {lan} up" for lan in switches)
           + f"\nip addr add {HEAD_ADDRESS}/24 dev {switches[0]}", "bridge")
    for index in range(config["boxes"]):
        box = start_holder(config["name"], f"box{index}", head)
        write_file(os.path.join(base, f"pid.box{index}"), f"{procs.nspid(box)[-2]}\n")
        for number in range(config["bridges"]):
            add_bridge(box, number)
        for dim in range(dimensions(config)):
            plug_in(config, head, box, index, dim)
        give_address(config, head, box, index)


def dimensions(config):
    """NICs of a box."""
    return len(config["torus"]) if config["torus"] else 1


def lines(config):
    """Every switch, as (NIC of the boxes, number)."""
    return torus.lines(config["torus"]) if config["torus"] else [(0, 0)]


def switch(config, dim, number):
    return f"lan{dim}-{number}" if config["torus"] else "lan"


def write_config(config, **more):
    write_file(os.path.join(directory(config["name"]), "config.json"), json.dumps(dict(config, **more)))


def hosts_text(boxes):
    lines = ["127.0.0.1 localhost", f"{HEAD_ADDRESS} head"]
    return "\n".join(lines + [f"{address(i)} box{i}" for i in range(boxes)]) + "\n"


def start_holder(name, box, head):
    """Start a holder (inside the head's namespaces, if a head is given); its pid as we see it."""
    unshare = ["unshare", "--net", "--uts", "--ipc", "--pid", "--fork", "--mount",
               "--propagation", "slave", "--mount-proc",
               "sh", os.path.join(HERE, "holder.sh"), box, directory(name)]
    if head:
        # In the background, so that nsenter ends and the lab is one tree below the head.
        unshare = ["nsenter", "-t", str(head), "-m", "-u", "-i", "-n", "-p",
                   "sh", "-c", '"$@" &', "sh"] + unshare
    child = subprocess.Popen(unshare, start_new_session=True, cwd="/", stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env=dict(os.environ, **{MARK: f"{name}/{box}"}))
    said = []
    for line in child.stdout:
        if line.strip() == "ready":
            break
        said.append(line.strip())
    else:
        raise CannotHere("this machine allows no namespaces of one's own: "
                         + ("; ".join(said) or "unshare failed without a word"))
    if head:
        child.wait()
    return find_holder(name, box)


def find_holder(name, box):
    end = time.monotonic() + 2.0
    while time.monotonic() < end:       # while it execs, its environment cannot be read
        pid = marked()[0].get(name, {}).get(box)
        if pid:
            return pid
        time.sleep(0.005)
    raise LabError(f"{box} of lab '{name}' died while it was made; try again")


def plug_in(config, head, box, index, dim):
    """A cable from a NIC of the box to its switch. Its two ends send, so both are shaped."""
    rate, shape = config["rates"][index], f"burst {config['burst']} latency {config['queue']}"
    port = f"port{index}-{dim}" if config["torus"] else f"port{index}"
    lan = switch(config, dim, torus.line(config["torus"], dim, index) if config["torus"] else 0)
    in_net(head, f"""
        ip link add {port} type veth peer name eth{dim} netns {box}
        ip link set {port} master {lan} up""", "veth pair")
    in_net(box, f"ip link set eth{dim} up", "link")
    if rate != "none":
        for pid, dev in ((box, f"eth{dim}"), (head, port)):
            in_net(pid, f"tc qdisc add dev {dev} root tbf rate {rate} {shape}",
                   "shaping with tbf")


def add_bridge(box, number):
    """A bridge as Docker makes them: in use, and with the same address on every machine. It comes before the NIC."""
    in_net(box, f"""
        ip link add docker{number} type bridge
        ip addr add 172.{17 + number}.0.1/16 dev docker{number}
        ip link add guest{number} type veth peer name inside{number}
        ip link set guest{number} master docker{number} up
        ip link set inside{number} up
        ip link set docker{number} up""", "bridge")


def give_address(config, head, box, index):
    in_net(box, f"ip addr add {address(index)}/24 dev eth0", "address")
    if config["torus"]:
        lan = switch(config, 0, torus.line(config["torus"], 0, index))
        in_net(head, f"ip route add {address(index)}/32 dev {lan} src {HEAD_ADDRESS}", "route")
        in_net(box, "\n".join([torus.FORWARD] + torus.box_routes(config["torus"], index, address)), "route")


def in_net(pid, script, what):
    done = subprocess.run(["nsenter", "-t", str(pid), "-n", "sh", "-ec", script],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        said = "; ".join(done.stderr.split("\n")).strip("; ")
        raise CannotHere(f"this machine allows no {what} in a namespace: {said}")
    return done.stdout


# --- down ----------------------------------------------------------------------------------------

def down(name):
    """Take the lab down, whatever is left of it; True if there was something."""
    if os.geteuid() != 0:
        raise CannotHere("a lab needs root; nothing was done")
    with locked():
        lab = Lab(name)
        if lab.state == "down":
            return False
        teardown(lab)
    return True


def teardown(lab):
    with undisturbed():
        spaces = lab.spaces()
        procs.kill_until_none(lab.guests)     # first: their sockets then close over live links
        remove_links(lab)
        if "head" in lab.holders:
            procs.kill([lab.holders["head"]])  # the kernel kills all that is below it

        def left():
            now = Lab(lab.name)
            return list(now.holders.values()) + now.wrappers + procs.inside(spaces)

        _, stayed = procs.kill_until_none(left)
        cores.remove(lab.name)
        shutil.rmtree(lab.dir, ignore_errors=True)
    if stayed:
        raise LabError(f"these processes do not die: {', '.join(map(str, stayed))}; "
                       "look at them with 'ps', then 'lab down' again")


def remove_links(lab):
    """By hand, since a lingering socket can keep a network namespace and its links for minutes."""
    head = lab.holders.get("head")
    if not head or not procs.foreign_namespaces([head]):
        return
    subprocess.run(["nsenter", "-t", str(head), "-n", "sh", "-c",
                    "for kind in veth bridge; do ip -o link show type $kind; done | "
                    "sed 's/^[0-9]*: //; s/[@:].*//' | while read dev; do ip link del $dev; done"],
                   stdin=subprocess.DEVNULL, capture_output=True)


# --- check ---------------------------------------------------------------------------------------

def check():
    """Try all of it for real, small: two shaped boxes, a name, a command in each, and away again."""
    require_machine()
    name = f"check-{os.getpid()}"
    config = make_config(name, 2, None, "200mbit", "64k", QUEUE)
    up(config)
    try:
        lab = require_up(name)
        for box in lab.box_names():
            done = subprocess.run(["nsenter", "-t", str(lab.holders[box]), "-m", "-u", "-i", "-n", "-p",
                                   "sh", "-c", "cat /proc/sys/kernel/hostname; getent hosts box1"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            got = done.stdout.split()
            if got[:2] != [box, address(1)]:
                raise CannotHere(f"expected {box} to know itself and box1, got {got} {done.stderr.strip()}")
    finally:
        down(name)


RATE = re.compile(r"\d+(\.\d+)?([kmgt]?bit|[kmgt]?bps)")
TIME = re.compile(r"\d+[mu]s")
BURST = re.compile(r"\d+[km]?b?")
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")


def make_config(name, boxes, grid, rate, burst, queue, bridges=0):
    """The settings, or a usage error that says what is wrong. boxes, grid: None where not said."""
    extents = torus.parse(grid) if grid else None
    if grid and not extents:
        raise LabError(f"expected --torus of two dimensions or more, each of 2 boxes or more, like 4x4, got '{grid}'", 2)
    if grid and boxes is not None:
        raise LabError(f"expected --boxes or --torus, which says how many, got both ({boxes} and {grid})", 2)
    boxes = math.prod(extents) if extents else 4 if boxes is None else boxes
    rates = rate.lower().split(",")
    if len(rates) == 1:
        rates *= max(boxes, 1)
    check_name(name)
    if not 1 <= boxes <= MAX_BOXES:
        raise LabError(f"expected {'a --torus' if grid else '--boxes'} of 1 to {MAX_BOXES} boxes, got {boxes}", 2)
    for one in rates:
        if one != "none" and not RATE.fullmatch(one):
            raise LabError(f"expected --rate like 200mbit, 1gbit or none, got '{one}'", 2)
    if not 0 <= bridges <= MAX_BRIDGES:
        raise LabError(f"expected --bridges of 0 to {MAX_BRIDGES}, got {bridges}", 2)
    if len(rates) != boxes:
        raise LabError(f"expected --rate with one value or one per box ({boxes}), got {len(rates)}", 2)
    if not BURST.fullmatch(burst):
        raise LabError(f"expected --burst in bytes, like 64k, got '{burst}'", 2)
    if not TIME.fullmatch(queue):
        raise LabError(f"expected --queue as a time, like 20ms, got '{queue}'", 2)
    return {"name": name, "boxes": boxes, "torus": extents, "bridges": bridges, "rates": rates, "burst": burst,
            "queue": queue}


def check_name(name):
    if not NAME.fullmatch(name):
        raise LabError("expected --name of up to 24 lower-case letters, digits and '-', "
                       f"got '{name}'", 2)
