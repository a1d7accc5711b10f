"""One job in which something goes wrong: starts the ranks, does what they cannot do themselves, and judges the end."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ENDS_WITHIN = 40.0      # seconds for a whole job
LEFT_WITHIN = 2.0       # seconds for the kernel to clear away what ended
AFTER = 0.15            # seconds into the calls
BLINK = 3.0             # seconds of a link that comes back, below what the monitors take for its end
PORT = 21000
SCAN = """
import os, socket, sys
for port in map(int, sys.argv[1:]):
    for data in (b"", b"x", os.urandom(64), b"GET / HTTP/1.0\\r\\n\\r\\n", b"\\0" * 100000):
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as s:
                s.settimeout(1)
                s.sendall(data)
        except OSError:
            pass
"""


# UCX 1.13 asserts where a peer dies while it connects (uct/tcp), and ends the process: no fault of this library.
UCX_ASSERTS = re.compile(r"tcp_\w+\.c:\d+ +Assertion `")


class Wrong(Exception):
    """Something is not as it should be."""


class Asserted(Exception):
    """UCX has ended a rank."""


class Play:
    """A job of a scenario in a place."""

    count = 0

    def __init__(self, job, scenario, place, lab, number):
        self.job, self.scenario, self.place, self.lab = job, scenario, place, lab
        self.rooms = place.rooms(lab)
        self.victim = 0 if scenario.first else 1 + number % (place.size - 1)
        self.box = place.box_of(self.victim)
        self.number = number
        self.folder = tempfile.mkdtemp(prefix="meshcoll-faults-")
        self.ranks, self.fault, self.undo = [], None, None
        Play.count += 1
        self.port = PORT + (os.getpid() * 37 + Play.count) % 9000

    # starting

    def environment(self, rank):
        env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(self.place.size), MASTER_ADDR=self.rooms[0].address,
                   MASTER_PORT=str(self.port), MESHCOLL_LINKS="uniform")
        env.update(self.place.env)
        env.update(self.scenario.env)
        if self.scenario.job == "descriptors":
            env["FAULT_DESCRIPTORS"] = str(random.Random(self.number).randrange(6, 60))
        if self.scenario.job in ("creation", "halt"):
            env["FAULT_MS"] = str(random.Random(self.number).randrange(0, self.scenario.soon))
        return {name: value for name, value in env.items() if value is not None}

    def start(self):
        for rank, room in enumerate(self.rooms):
            command = room.enter() + [self.job, self.scenario.job, str(self.victim)]
            with open(self.path(rank), "wb") as out:
                self.ranks.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                   env=self.environment(rank), start_new_session=True))

    def path(self, rank):
        return os.path.join(self.folder, f"rank{rank}")

    def said(self, rank):
        with open(self.path(rank), encoding="utf-8", errors="replace") as out:
            return out.read()

    def line(self, rank, word):
        """What stands behind the first line's first word, or None."""
        found = re.search(rf"^(?:{word})(?: (.*))?$", self.said(rank), re.MULTILINE)
        return found and (found.group(1) or "")

    # what the ranks do not do themselves

    def await_all(self, word, but=()):
        end = time.monotonic() + ENDS_WITHIN
        while not all(self.line(r, word) is not None for r in range(self.place.size) if r not in but):
            if time.monotonic() > end:
                raise Wrong(f"not all ranks came to '{word}' in {ENDS_WITHIN:g} s")
            time.sleep(0.01)

    def act(self):
        if self.scenario.act == "resume":
            self.await_all("destroyed", but=(self.victim,))
            os.killpg(self.ranks[self.victim].pid, signal.SIGCONT)
        elif self.scenario.act == "end_halted":
            self.await_all("refused|destroyed", but=(self.victim,))
            os.killpg(self.ranks[self.victim].pid, signal.SIGKILL)
        elif self.scenario.act:
            self.await_all("ready")
            time.sleep(AFTER)
            getattr(self, self.scenario.act)()

    def mark(self):
        self.fault = time.monotonic()

    def kill_box(self):
        self.mark()
        for rank in self.place.ranks_of(self.box):
            os.killpg(self.ranks[rank].pid, signal.SIGKILL)

    def kill_machine(self):
        self.mark()
        os.kill(self.rooms[self.victim].holder, signal.SIGKILL)
        self.undo = self.lab.again

    def set_link(self, room, device, state):
        subprocess.run(room.enter("-n") + ["ip", "link", "set", device, state], check=True)

    def cut(self, room, device):
        self.undo = lambda: self.set_link(room, device, "up")
        self.mark()
        self.set_link(room, device, "down")

    def cut_port(self):
        self.cut(self.lab.head, f"port{self.box}")

    def cut_nic(self):
        self.cut(self.rooms[self.victim], "eth0")

    def scan(self):
        room = self.rooms[self.victim]
        ports = [str(port) for port in room.ports()] if room.holder else []
        subprocess.run(room.enter() + [sys.executable, "-c", SCAN, *ports], check=True)
        self.kill_unharmed("garbage")

    def blink(self):
        self.set_link(self.lab.head, f"port{self.box}", "down")
        time.sleep(BLINK)
        self.set_link(self.lab.head, f"port{self.box}", "up")
        time.sleep(BLINK)
        self.kill_unharmed("a link that was down for a while")

    def kill_unharmed(self, what):
        os.killpg(self.ranks[self.victim].pid, 0)
        for rank in range(self.place.size):
            if self.line(rank, "ended") is not None:
                raise Wrong(f"rank {rank} failed because of {what}")
        self.mark()
        os.killpg(self.ranks[self.victim].pid, signal.SIGKILL)

    # ending

    def wait(self):
        end = time.monotonic() + ENDS_WITHIN
        for rank, process in enumerate(self.ranks):
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Wrong(f"rank {rank} did not end") from None

    def alive(self):
        """Processes that the ranks have started, and themselves."""
        groups = {process.pid for process in self.ranks}
        found = []
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
                    words = stat.read().rpartition(")")[2].split()
            except (OSError, ValueError):
                continue
            if name.isdigit() and int(words[3]) in groups and words[0] not in "ZX":
                found.append(int(name))
        return found

    def kill(self):
        for process in self.ranks:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()

    def clear(self):
        self.kill()
        if self.undo:
            self.undo()
        shutil.rmtree(self.folder, ignore_errors=True)

    # judging

    def fault_time(self):
        told = [float(at) for at in (self.line(r, "fault") for r in range(self.place.size)) if at]
        if self.fault is None and not told:
            raise Wrong("there was no fault")
        return self.fault if self.fault is not None else max(told)

    def gone(self):
        if self.scenario.act in ("kill_box", "kill_machine"):
            return set(self.place.ranks_of(self.box))
        return {self.victim} if self.scenario.ends in ("killed", "aborted", "left") else set()

    def named(self, text):
        """The rank that a sentence blames; for a disagreement, all that it names."""
        text = re.sub(r"^(this mesh failed before: |rank \d+: |dimension \w+: rank \d+ failed: )+", "", text)
        text = re.sub(r"^rank \d+ did not reach ", "", text)
        found = re.findall(r"\branks? (\d+(?:(?:, |-|(?:,? and ))\d+)*)", text)
        if self.scenario.job not in ("op", "datatype", "root", "count", "collective"):
            found = found[:1]
        ranks = set()
        for one in ", ".join(found).replace(" and ", ", ").split(", "):
            ends = one.split("-")
            if ends[0].isdigit():
                ranks.update(range(int(ends[0]), int(ends[-1]) + 1))
        return ranks

    def culprits(self):
        whole = self.scenario.ends == "cut" or self.scenario.act in ("kill_box", "kill_machine")
        return set(self.place.ranks_of(self.box)) if whole else {self.victim}

    def judge_refusal(self, rank, at):
        """The same where it got no mesh."""
        _, end, text = self.line(rank, "refused").split(" ", 2)
        if not self.named(text) & self.culprits():
            raise Wrong(f"rank {rank} was told of rank {sorted(self.named(text))}, not of {sorted(self.culprits())}: {text}")
        if float(end) - at > self.scenario.within:
            raise Wrong(f"rank {rank} was told after {float(end) - at:.2f} s, expected {self.scenario.within:g} s")
        return float(end) - at

    def judge_error(self, rank, at):
        """Seconds from the fault to this rank's error."""
        if self.line(rank, "refused") is not None:
            return self.judge_refusal(rank, at)
        ended, destroyed = self.line(rank, "ended"), self.line(rank, "destroyed")
        if ended is None:
            raise Wrong(f"rank {rank} was told nothing")
        status, end, text = ended.split(" ", 2)
        late = float(end) - at
        cut_off = self.scenario.ends == "cut" and rank in self.culprits()
        if not cut_off and int(status) != self.scenario.status or int(status) >= 0:
            raise Wrong(f"rank {rank} got status {status}, expected {self.scenario.status}: {text}")
        if not cut_off and not self.named(text) & self.culprits():
            raise Wrong(f"rank {rank} was told of rank {sorted(self.named(text))}, not of {sorted(self.culprits())}: {text}")
        coming = self.scenario.job in ("late", "stop") and rank == self.victim
        if late > self.scenario.within and not coming:
            raise Wrong(f"rank {rank} was told after {late:.2f} s, expected {self.scenario.within:g} s")
        if destroyed is None or float(destroyed) > self.scenario.destroyed:
            raise Wrong(f"rank {rank}: meshcoll_destroy took {destroyed} s, expected {self.scenario.destroyed:g} at most")
        return 0.0 if coming else late

    def judge_exits(self):
        gone = self.gone()
        if self.scenario.job in ("early", "creation", "descriptors") and any(
                process.returncode and UCX_ASSERTS.search(self.said(rank)) for rank, process in enumerate(self.ranks)):
            raise Asserted()
        wanted = {"killed": (-9, 137), "aborted": (-6, 134), "left": (0,)}.get(self.scenario.ends)
        for rank, process in enumerate(self.ranks):
            if self.scenario.ends == "any" and rank == self.victim:
                continue
            expected = wanted if rank in gone else (0,)
            if process.returncode not in expected:
                raise Wrong(f"rank {rank} ended with {process.returncode}, expected {expected[0]}")

    def judge_left(self):
        end = time.monotonic() + LEFT_WITHIN
        child = self.scenario.job == "fork"
        rooms = [] if self.scenario.act == "kill_machine" else set(self.rooms)
        while True:
            processes = self.alive()
            left = [f"process {pid}" for pid in processes] if len(processes) != child else []
            left += [one for room in rooms for one in room.left()] if not child else []
            if not left:
                return
            if time.monotonic() > end:
                raise Wrong(f"left behind: {', '.join(left)}")
            time.sleep(0.05)

    def judge(self):
        """The slowest rank's seconds from the fault to its error."""
        self.judge_exits()
        if self.scenario.ends == "any":
            return 0.0
        at, gone = self.fault_time(), self.gone()
        slowest = max(self.judge_error(r, at) for r in range(self.place.size) if r not in gone)
        self.judge_left()
        return slowest

    def output(self):
        return "".join(f"--- rank {rank}{' (victim)' * (rank == self.victim)}, {process.returncode}\n{self.said(rank)}"
                       for rank, process in enumerate(self.ranks))


def play(job, scenario, place, lab, number):
    """Returns seconds, or None where UCX ended a rank, and, where something was wrong, the reason with all output."""
    one = Play(job, scenario, place, lab, number)
    try:
        one.start()
        one.act()
        one.wait()
        return one.judge(), None
    except Asserted:
        return None, None
    except Wrong as wrong:
        one.kill()
        return None, f"{wrong}; the victim is rank {one.victim}\n{one.output()}"
    finally:
        one.clear()
