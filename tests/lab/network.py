"""Jobs in networks as they are: firewalls, bridges, namespaces. usage: network.py [SCENARIO…], or all but those that
measure, of which each has a script of its own."""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "faults"))
sys.dont_write_bytecode = True
os.environ["PATH"] += ":/usr/sbin:/sbin"

import places    # noqa: E402  (after the path is set)

BUILD = os.environ.get("MESHCOLL_BUILD_DIR", os.path.join(HERE, "..", "..", "build", "release"))
JOB = os.path.join(BUILD, "tests", "faults", "fault_job")
PORT = 30507
BRIDGES = 9
ENDS_WITHIN = 60.0
AT_ONCE = 3           # scenarios, most of which wait; each has a lab of its own


class Wrong(Exception):
    """Something is not as it should be."""


class Skipped(Exception):
    """This machine cannot."""


class Job:
    """Ranks that meet in a barrier and destroy their mesh, one in each room."""

    def __init__(self, rooms, prefix=(), job=JOB, scenario="none", **env):
        self.rooms, self.env, self.said, self.seconds = rooms, env, [], 0.0
        self.own = {}   # variables of one rank
        self.meanwhile = None   # called with the ranks' processes and their output files
        self.command = [*prefix, job, scenario, "0"]

    def run(self):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            ranks = [self.start(rank, os.path.join(folder, str(rank))) for rank in range(len(self.rooms))]
            try:
                if self.meanwhile:
                    self.meanwhile(ranks, [os.path.join(folder, str(r)) for r in range(len(ranks))])
                for rank in ranks:
                    rank.wait(max(0.0, begin + ENDS_WITHIN - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            self.seconds = time.monotonic() - begin
            late = [number for number, rank in enumerate(ranks) if rank.poll() is None]
            for rank in ranks:
                rank.kill()
                rank.wait()
            self.said = [open(os.path.join(folder, str(r)), encoding="utf-8", errors="replace").read()
                         for r in range(len(ranks))]
        if late:
            self.fail(f"ranks {late} did not end in {ENDS_WITHIN:g} s")
        return self

    def start(self, rank, path):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("UCX_", "MESHCOLL_"))}
        env.update(RANK=str(rank), WORLD_SIZE=str(len(self.rooms)), MASTER_ADDR=self.rooms[0].address,
                   MASTER_PORT=str(PORT), MESHCOLL_MASTER_ADDR=self.rooms[0].address,
                   MESHCOLL_MASTER_PORT=str(PORT), MESHCOLL_LINKS="uniform", MESHCOLL_TIMEOUT="5")
        env.update(self.env)
        env.update(self.own.get(rank, {}))
        with open(path, "wb") as out:
            return subprocess.Popen(self.rooms[rank].enter() + self.command, stdout=out, stderr=out, env=env,
                                    stdin=subprocess.PIPE if self.meanwhile else subprocess.DEVNULL)

    def fail(self, what):
        raise Wrong(f"{what}\n" + "".join(f"--- rank {r}\n{text}" for r, text in enumerate(self.said)))

    def expect(self, pattern, ranks=None):
        for rank in range(len(self.rooms)) if ranks is None else ranks:
            if not re.search(pattern, self.said[rank], re.MULTILINE):
                self.fail(f"rank {rank} did not say '{pattern}'")

    def expect_not(self, pattern):
        for rank, text in enumerate(self.said):
            if re.search(pattern, text, re.MULTILINE):
                self.fail(f"rank {rank} said '{pattern}'")

    def expect_destroyed(self, seconds):
        self.expect("^destroyed")
        slowest = max(float(re.search(r"^destroyed (\S+)", text, re.MULTILINE).group(1)) for text in self.said)
        if slowest > seconds:
            self.fail(f"meshcoll_destroy took {slowest:g} s, expected {seconds:g} at most")

    def expect_good(self):
        self.expect(r"^ended 0 ")
        self.expect_destroyed(5)


def in_room(room, *command):
    done = subprocess.run(room.enter() + list(command), capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"'{' '.join(command)}' does not work here: {done.stderr.strip()}")
    return done.stdout


def drop(room, but):
    """Connections to other ports vanish without a word."""
    in_room(room, "nft", f"add table inet wall; add chain inet wall in {{ type filter hook input priority 0; }}; "
            f"add rule inet wall in iif != lo tcp flags & (syn | ack) == syn tcp dport != {but} drop")


# --- scenarios -----------------------------------------------------------------------------------

def firewall(lab):
    """All ports but the bootstrap's are closed: the call fails within its limit, and says with whom."""
    for box in lab.boxes:
        drop(box, PORT)
    job = Job(lab.boxes, UCX_NET_DEVICES="eth0").run()
    job.expect(r"^ended -\d+ .*rank")
    job.expect(r"the monitor of rank 1 cannot reach that of rank 0 on box0 \(10.77.0.1:[0-9]+: ", [1])
    job.expect_destroyed(3)
    if job.seconds > 40:
        job.fail(f"it took {job.seconds:.0f} s with MESHCOLL_TIMEOUT=5")


def data(lab):
    """A firewall that lets all but UCX pass: ranks that cannot connect say so after 5 s, and where they look."""
    for box in lab.boxes:
        drop(box, f"{{ {PORT}, 43000-43199 }}")
    job = Job(lab.boxes, MESHCOLL_PORTS="43000-43199", UCX_TCP_PORT_RANGE="45000-45099", MESHCOLL_TIMEOUT="8").run()
    job.expect(r"has waited [5-7] s to connect to rank [01].*, at 10.77.0.[12], eth0, which is in the same call: packets seem")
    job.expect(r"^ended -\d+ .*connects to rank [01].* at 10.77.0.[12], eth0")
    job.expect_not("cannot reach that of rank")


def parents(lab):
    """The same with 16 ranks: who waits for its children says so, and names the variable; rank 0 blames nobody."""
    for box in lab.boxes:
        drop(box, PORT)
    job = Job(lab.boxes * 8, UCX_NET_DEVICES="eth0", MESHCOLL_BOOTSTRAP_TIMEOUT="6").run()
    job.expect("has tried for [5-9] s to reach rank [0-9]+, its parent, at 10.77.0.*MESHCOLL_PORTS says which",
               [rank for rank, text in enumerate(job.said) if "did not reach" in text])
    job.expect("^refused .*(waited 6 s for [1-4] ranks? to connect to it, at 10.77.0|did not reach rank [0-9]+, its parent)"
               ".*MESHCOLL_PORTS says which")
    job.expect("^refused .*waited 6 s for", [0])


def few_ports(lab):
    """A host with fewer free ports than ranks need: who has none says so."""
    in_room(lab.boxes[0], "sysctl", "-qw", "net.ipv4.ip_local_port_range=43000 43001", "net.ipv6.conf.all.disable_ipv6=1")
    job = Job(lab.boxes * 6, MESHCOLL_BOOTSTRAP_TIMEOUT="6").run()
    late = [rank for rank, text in enumerate(job.said) if "did not reach" in text]
    if not late:
        job.fail("expected that some ranks find no port")
    job.expect("has tried for [5-9] s .*: no port is free on this host .MESHCOLL_PORTS, or else sysctl", late)


def ports(lab):
    """A firewall that opens MESHCOLL_PORTS, and nothing else: 16 ranks find, reach and watch each other."""
    pinned = "43000-43199"
    for box in lab.boxes:
        drop(box, pinned)
    job = Job(lab.boxes * 8, UCX_NET_DEVICES="eth0", MESHCOLL_PORTS=pinned, MESHCOLL_MASTER_ADDR="",
              MESHCOLL_MASTER_PORT="", MESHCOLL_BOOTSTRAP_TIMEOUT="20").run()
    job.expect_good()
    job.expect_not("monitor")


def hidepid(lab):
    """Ranks of two users whose /proc hides the other: a process that is not seen lives."""
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "rank.sh")
        with open(script, "w", encoding="utf-8") as text:
            text.write("mount -t proc -o hidepid=2 proc /proc && "
                       "exec setpriv --reuid 6553$RANK --regid 6553$RANK --clear-groups \"$@\"")
        job = Job(lab.boxes * 2, ["unshare", "-m", "sh", script], MESHCOLL_SECRET="of both users").run()
    if "unshare: " in job.said[0] or "setpriv: " in job.said[0] or "mount: " in job.said[0]:
        raise Skipped(job.said[0].strip())
    job.expect_good()


def name_hosts(lab, *addresses):
    """The name `master` has these addresses."""
    lines = "127.0.0.1 localhost\\n" + "".join(f"{address} master\\n" for address in addresses)
    for box in lab.boxes:
        in_room(box, "sh", "-c", f"printf '{lines}' >/tmp/hosts && mount --bind /tmp/hosts /etc/hosts")


def families(lab):
    """A name of both families where one host has no IPv6: rank 0's, or that of half of the others."""
    boxes = lab.boxes
    for number, box in enumerate(boxes):
        in_room(box, "sysctl", "-qw", f"net.ipv6.conf.all.disable_ipv6={number // 2}",
                f"net.ipv6.conf.default.disable_ipv6={number // 2}")
        if number < 2:
            in_room(box, "ip", "-6", "addr", "add", f"fd77::{number + 1}/64", "dev", "eth0", "nodad")
    for master, six in (boxes[0], "fd77::1"), (boxes[2], "fd77::3"):
        name_hosts(lab, six, master.address)
        rest = [box for box in boxes if box is not master]
        job = Job([master] + 4 * rest, UCX_NET_DEVICES="eth0", MESHCOLL_MASTER_ADDR="", MASTER_ADDR="master",
                  MESHCOLL_BOOTSTRAP_TIMEOUT="20").run()
        job.expect_good()
        if len(re.findall("without a secret", job.said[0])) != 1:
            job.fail("rank 0 does not warn once that it has no secret")


def operator(lab):
    """An operator's master knows itself as localhost; so does a rank beside it, which is the others' parent."""
    job = Job([lab.boxes[0]] * 2 + [lab.boxes[1]] * 12, UCX_NET_DEVICES="eth0", MESHCOLL_MASTER_ADDR="",
              MESHCOLL_BOOTSTRAP_TIMEOUT="20")
    job.own = {rank: {"MASTER_ADDR": "localhost"} for rank in (0, 1)}
    job.run().expect_good()


def silence(lab):
    """Packets that vanish, all with the name server's or those that are large: who waits says so, and ends."""
    seconds = 6
    boxes = [lab.boxes[0], lab.boxes[1], lab.boxes[1]]
    rules = {"all": "meta l4proto { tcp, udp } drop", "large": "meta length > 1000 drop"}
    in_room(boxes[1], "sh", "-c", f"echo nameserver {boxes[0].address} >/tmp/resolv && "
            "mount --bind /tmp/resolv /etc/resolv.conf")
    for what, rule in rules.items():
        for box in lab.boxes:
            in_room(box, "nft", "add table inet hole; flush table inet hole; add chain inet hole in { type filter hook "
                    f"input priority 0; }}; add rule inet hole in iif != lo {rule}")
        job = Job(boxes, MESHCOLL_MASTER_ADDR="", MESHCOLL_BOOTSTRAP_TIMEOUT=str(seconds))
        job.own = {1: {"MASTER_ADDR": "nowhere.example"}} if what == "all" else {}
        job.run().expect("^refused")
        if what == "large":
            job.expect("has waited [5-9] s for rank [12] .* while a mesh is created.*it was sent a message, but none of the "
                       "[0-9]+ bytes at its end has arrived: packets of full size seem to be lost.* MTU", [0])
            job.expect("has waited [5-9] s for rank 0 .*its message has begun, but none of the [0-9]+ bytes that follow "
                       "has come: packets of full size .* MTU", [1, 2])
            job.expect("^refused .*rank [012] was waited for too long.* MTU")
        else:
            job.expect("has waited [5-9] s for 2 of 3 ranks: 1-2; it listens on 10.77.0.1:", [0])
            job.expect("rank [12] has tried for [5-9] s to reach rank 0 .*MESHCOLL_BOOTSTRAP_TIMEOUT", [1, 2])
            job.expect("the last attempt at its address: ", [1])
            job.expect("the last attempt at 10.77.0.1:", [2])
        if job.seconds > 3 * seconds + 2:
            job.fail(f"it took {job.seconds:.0f} s with MESHCOLL_BOOTSTRAP_TIMEOUT={seconds}")


def monitors(lab):
    """A firewall that lets all but the monitors pass: they are off for that pair, and nobody waits for them."""
    for box in lab.boxes:
        drop(box, f"{{ {PORT}, 45000-45099 }}")
    job = Job(lab.boxes, UCX_NET_DEVICES="eth0", UCX_TCP_PORT_RANGE="45000-45099").run()
    job.expect_good()
    job.expect(r"the monitor of rank 1 cannot reach that of rank 0 on box0 \(10.77.0.1:[0-9]+: ", [1])
    if job.seconds > 25:
        job.fail(f"it took {job.seconds:.0f} s")


def bridges(lab):
    """Machines with Docker's bridges, more of them than a monitor tells addresses: nobody says what leads to the others."""
    for env in ({}, {"MESHCOLL_MASTER_ADDR": "box0"}, {"MESHCOLL_TRANSPORTS": "box=tcp,self;gpu=tcp,self"}):
        job = Job(lab.boxes * 2, **env).run()
        job.expect_good()
        job.expect_not("monitor|UCX")
    Job(lab.boxes, MESHCOLL_NET_DEVICES="eth0").run().expect_good()
    Job(lab.boxes, MESHCOLL_NET_DEVICES="eth0", UCX_NET_DEVICES="docker0").run().expect_good()
    Job(lab.boxes, MESHCOLL_NET_DEVICES="nosuch0").run().expect("^refused .*no network device 'nosuch0'")
    mpi_among_bridges(lab)


def mpi_among_bridges(lab):
    """The same where no bootstrap tells addresses."""
    bench = os.path.join(BUILD, "meshcoll-bench")
    if not os.path.exists(bench):
        print("skipped: bridges under mpirun: no meshcoll-bench was built")
        return
    done = lab.call("run", "-n", "4", "--timeout", "30", "--", bench, "--collective", "allreduce", "--sizes", "8",
                    "--strategies", "best", "-n", "2")
    if "every result was right" not in done.stdout:
        raise Wrong(f"under mpirun: {done.stdout}{done.stderr}")


def hypervisors(lab):
    """The network card is a port of a bridge, beside Docker's; mpirun tells no addresses."""
    for number, box in enumerate(lab.boxes):
        address = f"10.77.0.{number + 1}/24"
        in_room(box, "sh", "-ec", f"ip link add br0 type bridge; ip addr del {address} dev eth0; "
                f"ip link set eth0 master br0; ip addr add {address} dev br0; ip link set br0 up; "
                f"ip route add default via 10.77.0.254; "
                f"until ip -br link show br0 | grep -q ' UP '; do sleep 0.05; done")  # the kernel tells it late
    mpi_among_bridges(lab)
    Job(lab.boxes).run().expect_good()


class Pod(places.Room):
    """A network namespace of its own on the first box's machine."""

    def __init__(self, machine, network):
        super().__init__(machine.holder, network.address)
        self.network = network.holder

    def enter(self, *spaces):
        return ["nsenter", "-t", str(self.holder), "-m", "-u", "-i", "-p", f"--net=/proc/{self.network}/ns/net"]


def namespaces(lab):
    """Ranks of one machine in network namespaces of their own: they share memory, and their monitors meet."""
    job = Job([Pod(lab.boxes[0], box) for box in lab.boxes for _ in range(2)], MESHCOLL_MESH="gpu=4").run()
    job.expect_good()
    job.expect_not("monitor|UCX")


def add_card(box, number, subnet):
    """A second network card with an address, whose other end is in the box itself: it leads nowhere."""
    in_room(box, "sh", "-ec", f"ip link add eth1 type veth peer name far1; ip link set far1 up; ip link set eth1 up; "
            f"ip addr add {subnet}.{number + 1}/24 dev eth1; until ip -br link show eth1 | grep -q ' UP '; do sleep 0.05; done")


def cards(lab):
    """Second cards in one subnet are used where they lead to each other; those of 169.254/16 are not even tried."""
    first, second = lab.boxes
    env = {"MESHCOLL_EXPLAIN": "1", "MESHCOLL_LOG": "info"}
    for subnet, what in ("169.254.7", None), ("10.88.0", "unreachable"), ("10.88.0", "lost"):
        for number, box in enumerate(lab.boxes):
            in_room(box, "sh", "-c", "ip link del eth1 2>/dev/null; true")
            add_card(box, number, subnet)
            if what == "lost":      # not even the question for its neighbour fails
                in_room(box, "ip", "neigh", "add", f"{subnet}.{2 - number}", "lladdr", "02:00:00:00:00:07", "dev", "eth1")
        job = Job(lab.boxes * 2, **env).run()
        job.expect_good()
        job.expect("lead to the other ranks: eth0$", [0])
        if what:
            job.expect(r"the network of 10.88.0.[12]:0 is not used: rank \d reached rank \d at 10.88.0.[12]:\d+ by no packet")
        else:
            job.expect_not("is not used")
    for box in lab.boxes:
        in_room(box, "ip", "link", "del", "eth1")
    subprocess.run(first.enter("-n") + ["ip", "link", "add", "eth1", "type", "veth", "peer", "name", "eth1", "netns",
                                        str(second.holder)], check=True)
    for number, box in enumerate(lab.boxes):
        in_room(box, "sh", "-ec", f"ip link set eth1 up; ip addr add 10.88.0.{number + 1}/24 dev eth1")
    job = Job(lab.boxes * 2, **env).run()
    job.expect_good()
    job.expect("lead to the other ranks: eth0,eth1$", [0])
    job.expect_not("is not used")
    in_room(first, "ip", "link", "del", "eth1")
    for number, box in enumerate(lab.boxes):    # more numbers of the card by which they have met
        in_room(box, "ip", "addr", "add", f"10.99.0.{number + 1}/24", "dev", "eth0")
        in_room(box, "nft", "add table inet hole; add chain inet hole in { type filter hook input priority 0; }; "
                "add rule inet hole in ip daddr 10.99.0.0/24 drop")
    job = Job(lab.boxes * 2, **env).run()
    job.expect_good()
    job.expect("lead to the other ranks: eth0$", [0])
    job.expect_not("is not used")


def loopback(lab):
    """Hosts whose address is a /32 of lo, as with BGP to the host: UCX's TCP has no interface, and it is said what helps."""
    for number, box in enumerate(lab.boxes):
        in_room(box, "sh", "-ec", f"ip addr del 10.77.0.{number + 1}/24 dev eth0; ip addr add 10.77.0.{number + 1}/32 dev lo; "
                f"ip route add 10.77.0.{2 - number}/32 dev eth0 src 10.77.0.{number + 1}")
    job = Job(lab.boxes).run()
    job.expect(r"^ended -\d+ .*cannot connect to rank \d \(10.77.0.[12], lo\): UCX's TCP takes no address of lo but 127.0.0.1.*"
               "as in `ip addr add 10.77.0.[12]/32 dev eth0`")
    for number, box in enumerate(lab.boxes):
        in_room(box, "ip", "addr", "add", f"10.77.0.{number + 1}/32", "dev", "eth0")
    Job(lab.boxes).run().expect_good()


def shape(lab, rate):
    """The NICs and the switch's ports pass so much from now on."""
    for number, box in enumerate(lab.boxes):
        for room, device in ((box, "eth0"), (lab.head, f"port{number}")):
            in_room(room, "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "64k",
                    "latency", "20ms")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as text:
        return text.read()


def kept_links(cache):
    """Texts of links that are kept there."""
    folder = os.path.join(cache, "meshcoll")
    return [read(os.path.join(folder, name)) for name in os.listdir(folder) if name.startswith("links-")]


def job_of_links(lab, cache, scenario):
    return Job(lab.boxes, scenario=scenario, UCX_NET_DEVICES="eth0", MESHCOLL_LINKS="", MESHCOLL_CALIBRATE="0.3",
               MESHCOLL_EXPLAIN="1", XDG_CACHE_HOME=cache)


def rate_of(job):
    """Mbit/s of the links that it has calibrated."""
    job.run().expect_good()
    found = re.search(r"^links: .*beta:([0-9.]+)(ns/B|MB/s).*calibrated", job.said[0], re.MULTILINE)
    if not found:
        job.fail("no links were calibrated")
    number = float(found.group(1))
    return 8e3 / number if found.group(2) == "ns/B" else 8 * number


def expect_learned(job, kind, ratio):
    """What is used of this kind takes more than so many times what its links predict, and the job has learned that."""
    found = re.search(rf"^  {kind}.*\n(?:    .*\n)*?    \* +([0-9.]+) us, predicted +([0-9.]+) us", job.said[0],
                      re.MULTILINE)
    if not found or float(found.group(1)) < ratio * float(found.group(2)):
        job.fail(f"expected that {kind} takes over {ratio} times what is predicted")


def slower(lab):
    """1 Gbit/s become 200 Mbit/s under a job: ranks agree, learn what calls take now, and the next job measures anew."""
    def slow_down(ranks, paths):
        end = time.monotonic() + ENDS_WITHIN
        while time.monotonic() < end and not all(re.search("^fast", read(path), re.MULTILINE) for path in paths):
            time.sleep(0.02)
        shape(lab, "200mbit")
        for rank in ranks:
            rank.stdin.write(b"\n")
            rank.stdin.close()

    kept = False
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            shape(lab, "1gbit")
            rate = rate_of(job_of_links(lab, cache, "none"))
            if not 700 < rate < 1200:
                continue
            job = job_of_links(lab, cache, "slower")
            job.meanwhile = slow_down
            job.run().expect_good()
            job.expect_not("wrong result")
            taken = [[line for line in text.splitlines() if line.startswith("took ")] for text in job.said]
            if len(taken[0]) < 12 or taken[1] != taken[0]:
                job.fail("the ranks took other strategies, or none was tried")
            tried = re.findall("^took 0 [0-9]+ (.*)", job.said[0].partition("\nfast\n")[2], re.MULTILINE)
            if len(set(tried)) < 3:     # a look tries one other
                job.fail("its allreduce began no new trials on the slow network")
            expect_learned(job, "allreduce of 262144 bytes", 2.5)
            kept = bool(kept_links(cache))  # they are where short calls were off more: beside other work
            if kept:
                continue
            after = job_of_links(lab, cache, "none")
            if not 120 < rate_of(after) < 300 or not kept_links(cache):
                after.fail("expected links of 200 Mbit/s, and that they are kept")
            return
    if kept:
        job.fail("links of the fast network are kept")
    raise Skipped(f"1 Gbit/s were measured as {rate:.0f} Mbit/s: beside other work?")


SCENARIOS = {one.__name__: (one, boxes) for one, boxes in [
    (silence, 2), (firewall, 2), (data, 2), (parents, 2), (few_ports, 1), (ports, 2), (hidepid, 1), (families, 4), (operator, 2), (monitors, 2),
    (namespaces, 2), (cards, 2), (loopback, 2), (bridges, 2), (hypervisors, 2), (slower, 2)]}
ALONE = {slower}    # they measure


def run(name):
    play, boxes = SCENARIOS[name]
    lab = places.Lab(boxes, BRIDGES if play in (bridges, hypervisors) else 0)
    lab.name = f"{name.replace('_', '-')}-{os.getpid()}"
    lab.up()
    try:
        if lab.why:
            raise Skipped(lab.why)
        begin = time.monotonic()
        play(lab)
        print(f"{name}: {play.__doc__} ({time.monotonic() - begin:.1f} s)", flush=True)
        return 0
    except Skipped as why:
        print(f"skipped: {name}: {why}", flush=True)
        return 77
    except Wrong as wrong:
        print(f"FAILED {name}: {wrong}", flush=True)
        return 1
    finally:
        lab.down()


def main():
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        ends = list(pool.map(run, sys.argv[1:] or [name for name, one in SCENARIOS.items() if one[0] not in ALONE]))
    return 1 if 1 in ends else 77 if 77 in ends and 0 not in ends else 0


if __name__ == "__main__":
    sys.exit(main())
