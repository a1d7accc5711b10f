"""Where the ranks of a job run: on this machine, or in the boxes of a lab (docs/dev/lab.md)."""

import json
import os
import subprocess

HERE = os.path.dirname(os.path.realpath(__file__))
LAB = os.path.join(HERE, "..", "..", "bench", "lab", "lab")
BOXES = 4


class Room:
    """A box of the lab, or this machine. A box has memory, sockets and processes of its own, so that what is left there
    is this test's."""

    def __init__(self, holder=None, address="127.0.0.1"):
        self.holder = holder
        self.address = address

    def enter(self, *spaces):
        return ["nsenter", "-t", str(self.holder), *(spaces or ("-m", "-u", "-i", "-n", "-p"))] if self.holder else []

    def left(self):
        """Files in /dev/shm and abstract sockets that a mesh has left behind."""
        if not self.holder:
            shared = [name for name in os.listdir("/dev/shm") if "meshcoll" in name]
            return [f"/dev/shm/{name}" for name in shared]      # sockets there may be others'
        found = [f"/dev/shm/{name}" for name in os.listdir(f"/proc/{self.holder}/root/dev/shm")]
        with open(f"/proc/{self.holder}/net/unix", encoding="utf-8") as table:
            words = [line.split() for line in table]
        return found + [one[7] for one in words if len(one) > 7 and one[7].startswith("@")]

    def ports(self):
        """TCP ports on which somebody listens there."""
        with open(f"/proc/{self.holder or 'self'}/net/tcp", encoding="utf-8") as table:
            words = [line.split() for line in table][1:]
        return [int(one[1].split(":")[1], 16) for one in words if one[3] == "0A"]


class Lab:
    """A lab of this test's own, or none where this machine cannot."""

    def __init__(self, n=BOXES, bridges=0):
        self.name, self.options = f"faults-{os.getpid()}", ["--boxes", str(n), "--bridges", str(bridges)]
        self.boxes, self.head, self.why = [], None, None

    def call(self, *words):
        return subprocess.run([LAB, words[0], "--name", self.name, *words[1:]], capture_output=True, text=True, check=False)

    def up(self):
        done = self.call("up", *self.options, "--rate", "none")
        if done.returncode:
            self.why = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no lab came up"
            return
        known = json.loads(self.call("status", "--json").stdout)
        self.boxes = [Room(box["pid"], box["address"]) for box in known["boxes"]]
        self.head = Room(known["head"]["pid"])

    def down(self):
        if self.boxes:
            self.call("down")
        self.boxes = []

    def again(self):
        """After a box was killed."""
        self.down()
        self.up()


class Place:
    """How a job is laid out: `per` ranks in each of `n` boxes, which are rooms of a lab or names only."""

    def __init__(self, name, n, per, env, apart=False):
        self.name, self.n, self.per, self.env, self.apart = name, n, per, env, apart
        self.size = n * per

    def rooms(self, lab):
        if self.apart:
            return [lab.boxes[rank // self.per] for rank in range(self.size)]
        return [lab.boxes[0] if lab.boxes else Room()] * self.size

    def box_of(self, rank):
        return rank // self.per

    def ranks_of(self, box):
        return range(box * self.per, (box + 1) * self.per)


TCP = "box=tcp,self"
PLACES = [
    Place("one-box", 1, 4, {}),
    Place("tcp", 4, 1, {"MESHCOLL_MESH": "box=4", "MESHCOLL_TRANSPORTS": TCP}),
    Place("2x2", 2, 2, {"MESHCOLL_MESH": "box=2,gpu=2", "MESHCOLL_TRANSPORTS": TCP}),
    Place("lab", BOXES, 2, {"MESHCOLL_TRANSPORTS": TCP, "UCX_NET_DEVICES": "eth0"}, apart=True),
]
WIDE = Place("tcp", 16, 1, {"MESHCOLL_MESH": "box=16", "MESHCOLL_TRANSPORTS": TCP})
