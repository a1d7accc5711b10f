#!/usr/bin/env python3
"""Reads what `meshcoll export` writes, by readers that share nothing with its writer, and compares the messages with the
plan's. usage: read_exports.py goal|msccl|chakra MESHCOLL FOLDER"""

import collections, itertools, json, os, random, re, shlex, shutil, subprocess, sys
import xml.etree.ElementTree as xml

FORMAT, MESHCOLL, FOLDER = sys.argv[1:]
CASES = [shlex.split(case) for case in (
    "allreduce --mesh x=4 --strategy allreduce:ring",
    "allreduce --mesh box=2,gpu=4 --strategy hierarchical",
    "allreduce --mesh x=4,y=4 --strategy torus",
    "allreduce --mesh box=2,gpu=3 --strategy 'allreduce:doubling(box) allreduce:fullmesh(gpu)'",
    "allreduce --mesh x=4,y=3 --strategy 'allreduce:doubling(x) reduce_scatter:ring(y) allgather:ring(y)'",
    "bcast --mesh box=4,gpu=4 --strategy 'option3 segments=2' --root 5",
    "allgather --mesh box=2,gpu=3 --strategy 'hierarchical segments=2'",
    "allgather --mesh x=2,y=2,z=2 --strategy 'allgather:bruck(y) allgather:fullmesh(x) allgather:ring(z)'",
    "reduce_scatter --mesh box=2,gpu=4 --strategy 'reduce_scatter:halving(gpu) reduce_scatter:ring(box)'",
    "alltoall --mesh x=2,y=2,z=2 --strategy hierarchical",
    "reduce_scatter --mesh x=2,y=3,z=2 --strategy 'reduce_scatter:ring(y) reduce_scatter:halving(z) reduce_scatter:halving(x)'",
    "alltoall --mesh x=5 --strategy 'alltoall:bruck(x) segments=2'",
    "alltoall --mesh x=2,y=3,z=2 --strategy 'alltoall:digits(x*y*z) segments=2'",
    "alltoall --mesh box=3+2+1 --strategy hierarchical",
    "allgather --mesh box=3+2 --strategy hierarchical",
    "reduce --mesh x=7 --strategy reduce:mst",
    "allreduce --mesh x=1 --strategy allreduce:ring",
)]
SIZE = 1680 << 10       # the chunks of all of them divide it

def is_even(what):
    """On boxes of unequal sizes some chunks are empty, which a trace shows as others."""
    return "+" not in what[2]

def command(*words):
    done = subprocess.run([MESHCOLL, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout

def chunks_of(text):
    """How many chunks "a..d,f" are."""
    number = lambda name: sum((ord(c) - 96) * 26**i for i, c in enumerate(reversed(name)))
    return sum(number(r.split("..")[-1]) - number(r.split("..")[0]) + 1 for r in text.split(","))

def plan_messages(what):
    """The chunks of a pair's messages in order, by (from, to), and the chunks of the vector."""
    plan = json.loads(command("trace", *what, "--json"))
    sent = collections.defaultdict(list)
    for step in plan["steps"]:
        for m in step["messages"]:
            sent[m["from"], m["to"]].append(chunks_of(m["chunks"]))
    return dict(sent), len(plan["start"][0])

def check_messages(what, found):
    """found: (from, to, number, bytes) of all messages."""
    if not is_even(what):
        return
    want, chunks = plan_messages(what)
    got = collections.defaultdict(list)
    for a, b, number, n in sorted(found):
        assert number == len(got[a, b]), (a, b, number)
        got[a, b].append(n)
    assert got == {pair: [n * SIZE // chunks for n in each] for pair, each in want.items()}, what

def replay(ranks):
    """Runs operations (kind, peer, number, bytes, needs) by label, a message of one at each end; a sum is that of what
    it needs, a receive. Returns the messages."""
    for ops in ranks:
        added = {r: label for label, (kind, *_, needs) in ops.items() for r in needs if kind == "sum"}
        for label, (*_, needs) in ops.items():
            assert all(added.get(r, label) == label for r in needs), "uses what is not yet added up"
    sent, done, ended = {}, [set() for _ in ranks], -1
    while ended != (ended := sum(map(len, done)) + len(sent)) or ended == 0:
        for rank, ops in enumerate(ranks):
            for label, (kind, peer, number, size, needs) in ops.items():
                if label in done[rank] or not needs <= done[rank]:
                    continue
                if kind == "send":
                    assert (rank, peer, number) not in sent
                    sent[rank, peer, number] = size
                if kind == "recv" and (peer, rank, number) not in sent:
                    continue
                assert kind != "recv" or sent[peer, rank, number] == size
                done[rank].add(label)
        if not any(ranks):
            break
    assert all(len(d) == len(ops) for d, ops in zip(done, ranks)), "not all of it runs"
    assert len(sent) == sum(op[0] == "recv" for ops in ranks for op in ops.values())
    return [(*key, size) for key, size in sent.items()]

# GOAL, by the grammar of LogGOPSim's txt2bin.re ---------------------------------------------------

def goal(text):
    head = re.match(r"num_ranks (\d+)\n", text)
    body, ranks = text[head.end():], []
    for number, block in re.findall(r"\s*rank (\d+) \{\n(.*?)\}\n", body, re.S):
        assert int(number) == len(ranks)
        ops = {}
        for line in block.splitlines():
            if m := re.fullmatch(r"([a-zA-Z]\w*): (send|recv) (\d+)b (to|from) (\d+) tag (\d+)", line):
                assert (m[2] == "send") == (m[4] == "to") and m[1] not in ops and int(m[3]) > 0
                ops[m[1]] = (m[2], int(m[5]), int(m[6]), int(m[3]), set())
            elif m := re.fullmatch(r"([a-zA-Z]\w*): calc (\d+)", line):
                assert m[1] not in ops
                ops[m[1]] = ("sum" if m[1][0] == "c" else "calc", None, None, int(m[2]), set())
            elif m := re.fullmatch(r"([a-zA-Z]\w*) requires ([a-zA-Z]\w*)", line):
                assert m[2] in ops and m[1] != m[2]
                ops[m[1]][4].add(m[2])
            else:
                raise AssertionError("no line of GOAL: " + line)
        ranks.append(ops)
    assert re.sub(r"\s*rank (\d+) \{\n(.*?)\}\n", "", body, flags=re.S) == "" and len(ranks) == int(head[1])
    return ranks

# MSCCL: thread blocks as MSCCL's kernel runs them, with room for one chunk between two ranks -------

STEPS, CHUNKS, PEERS = 256, 72, 32

class Block:
    def __init__(self, element):
        self.send, self.recv, self.chan = (int(element.get(k)) for k in ("send", "recv", "chan"))
        self.steps, self.at, self.chunk, self.flag = [dict(s.items()) for s in element], 0, 0, -1
        assert 0 < len(self.steps) <= STEPS
        for i, s in enumerate(self.steps):
            for key in ("s", "srcoff", "dstoff", "cnt", "depid", "deps", "hasdep"):
                s[key] = int(s[key])
            assert s["s"] == i and s["cnt"] < CHUNKS
            if s["type"] == "nop":      # a chain of waits ends with a step that waits
                assert s["depid"] >= 0 and not s["hasdep"]
                assert self.steps[i + 1]["depid" ] not in (-1, "-1")

class Machine:
    def __init__(self, text, in_place, seed):
        algo = xml.fromstring(text)
        self.coll, self.n = algo.get("coll"), int(algo.get("ngpus"))
        self.chunks, self.random = int(algo.get("nchunksperloop")), random.Random(seed)
        self.wire, self.sent, self.gpus = {}, collections.Counter(), []
        self.messages = collections.Counter()
        for rank, gpu in enumerate(algo):
            assert int(gpu.get("id")) == rank
            blocks = dict(sorted((int(tb.get("id")), Block(tb)) for tb in gpu))
            assert list(blocks) == list(range(len(gpu)))
            blocks = list(blocks.values())
            for way in ("send", "recv"):
                peers = [(getattr(b, way), b.chan) for b in blocks if getattr(b, way) >= 0]
                assert len(peers) == len(set(peers)) and len(peers) <= PEERS, peers
            self.gpus.append((blocks, self.memory(rank, gpu, in_place)))
        assert len(self.gpus) == self.n

    def memory(self, rank, gpu, in_place):
        i, o, s = (int(gpu.get(k)) for k in ("i_chunks", "o_chunks", "s_chunks"))
        assert max(i, o) == self.chunks
        cells = {("i", c): ("i", c) for c in range(i)}
        cells |= {("o", c): ("o", c) for c in range(o)} | {("s", c): ("s", c) for c in range(s)}
        if in_place:            # the shorter buffer is the rank's block of the longer one
            short, long, at = ("i", "o", rank * i) if i < o else ("o", "i", rank * o if o < i else 0)
            cells |= {(short, c): (long, at + c) for c in range(min(i, o))}
        value = {cells["i", c]: ((rank, c),) for c in range(i)}
        return cells, value

    def step(self, rank, block):
        """One chunk of a block's step. False: it waits."""
        blocks, (cells, value) = self.gpus[rank]
        if block.at == len(block.steps):
            return False
        s = block.steps[block.at]
        if block.chunk == 0 and s["depid"] >= 0:
            other = blocks[s["depid"]]
            assert other.steps[s["deps"]]["hasdep"] == 1, "waits for a step that tells nobody"
            if other.flag < s["deps"]:
                return False
        k, kind = block.chunk, s["type"]
        src, dst = (s["srcbuf"], s["srcoff"] + k), (s["dstbuf"], s["dstoff"] + k)
        if kind == "s":
            wire = (rank, block.send, block.chan)
            if wire in self.wire:
                return False
            self.wire[wire] = value[cells[src]]
            self.messages[wire[:2]] += 1
        elif kind in ("r", "rrc"):
            wire = (block.recv, rank, block.chan)
            if wire not in self.wire:
                return False
            got = self.wire.pop(wire)
            value[cells[dst]] = tuple(sorted(got + value[cells[src]])) if kind == "rrc" else got
        elif kind == "cpy":
            value[cells[dst]] = value[cells[src]]
        elif kind == "re":
            value[cells[dst]] = tuple(sorted(value[cells[dst]] + value[cells[src]]))
        else:
            assert kind == "nop", kind
        block.chunk += 1
        if block.chunk >= s["cnt"]:
            block.flag = block.at if s["hasdep"] else block.flag
            block.at, block.chunk = block.at + 1, 0
        return True

    def expected(self, rank, c):
        per = self.chunks // self.n
        if self.coll == "allreduce":
            return tuple((r, c) for r in range(self.n))
        if self.coll == "allgather":
            return ((c // per, c % per),)
        if self.coll == "reducescatter":
            return tuple((r, rank * per + c) for r in range(self.n))
        return ((c // per, rank * per + c % per),)      # alltoall

    def run(self):
        every = [(r, b) for r, (blocks, _) in enumerate(self.gpus) for b in blocks]
        while True:
            self.random.shuffle(every)
            # some blocks run ahead as far as they can, others lag
            if not any([any([self.step(*b) for _ in range(self.random.choice((0, 1, 64)) )]) for b in every]) and \
               not any([self.step(*b) for b in every]):
                break
        assert all(b.at == len(b.steps) for _, b in every), "stuck"
        assert not self.wire
        for rank, (_, (cells, value)) in enumerate(self.gpus):
            for c in range(sum(name == "o" for name, _ in cells)):
                assert value.get(cells["o", c]) == self.expected(rank, c), (rank, c, value.get(cells["o", c]))

def check_msccl(what):
    """Runs it in place and not, in random orders; a pair's chunks are those of its messages."""
    text = command("export", *what, "--bytes", str(SIZE), "--format", "msccl")
    for in_place, seed in itertools.product((False, True), range(3)):
        machine = Machine(text, in_place, seed)
        machine.run()
    if is_even(what):
        assert machine.messages == {pair: sum(each) for pair, each in plan_messages(what)[0].items()}, what

# Chakra, by the numbers of mlcommons/chakra's et_def.proto ------------------------------------------

def chakra_classes():
    """The messages, made of a table: {message: (number, name, type, how)}."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    F = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="Read", syntax="proto3")
    table = {
        "Attribute": [(1, "name", F.TYPE_STRING), (7, "int32_val", F.TYPE_INT32), (9, "int64_val", F.TYPE_INT64),
                      (13, "uint64_val", F.TYPE_UINT64), (27, "bool_val", F.TYPE_BOOL), (29, "string_val", F.TYPE_STRING)],
        "Metadata": [(1, "version", F.TYPE_STRING), (2, "attr", ".Read.Attribute")],
        "Node": [(1, "id", F.TYPE_UINT64), (2, "name", F.TYPE_STRING), (3, "type", F.TYPE_INT32),
                 (5, "data_deps", F.TYPE_UINT64), (7, "duration_micros", F.TYPE_UINT64), (10, "attr", ".Read.Attribute")],
    }
    for name, fields in table.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            f = message.field.add(name=field, number=number, label=F.LABEL_REPEATED if field in ("data_deps", "attr") else F.LABEL_OPTIONAL)
            if isinstance(kind, str):
                f.type, f.type_name = F.TYPE_MESSAGE, kind
            else:
                f.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    make = getattr(message_factory, "GetMessageClass", None) or message_factory.MessageFactory(pool).GetPrototype
    return [make(pool.FindMessageTypeByName("Read." + name)) for name in ("Metadata", "Node")]

def delimited(data):
    at = 0
    while at < len(data):
        size = shift = 0
        while True:
            byte = data[at]
            at, size, shift = at + 1, size | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        yield data[at:at + size]
        at += size
    assert at == len(data)

SUM, SEND, RECV = 4, 5, 6

def chakra(prefix, n):
    Metadata, Node = chakra_classes()
    ranks, sums = [], 0
    for rank in range(n):
        first, *rest = delimited(open(f"{prefix}.{rank}.et", "rb").read())
        assert Metadata.FromString(first).version == "1.0.0"
        ops = {}
        for node in map(Node.FromString, rest):
            a = {x.name: x for x in node.attr}
            assert not node.UnknownFields() if hasattr(node, "UnknownFields") else True
            assert not a["is_cpu_op"].bool_val and node.id not in ops and node.id > 0
            assert all(d in ops for d in node.data_deps)
            kind, peer, number, size = "calc" if node.id % 2 else "sum", None, None, 0
            if node.type in (SEND, RECV):
                ends = [a["comm_src"].int32_val, a["comm_dst"].int32_val]
                kind = "send" if node.type == SEND else "recv"
                assert ends[kind == "recv"] == rank
                peer, number, size = ends[kind == "send"], a["comm_tag"].int32_val, a["comm_size"].int64_val
            else:
                assert node.type == SUM and a["num_ops"].int64_val * 4 == a["tensor_size"].uint64_val
                sums += a["tensor_size"].uint64_val
            ops[node.id] = (kind, peer, number, size, set(node.data_deps))
        ranks.append(ops)
    return ranks, sums
# -------------------------------------------------------------------------------------------------------

def check_goal(what):
    path = os.path.join(FOLDER, "goal")
    command("export", *what, "--bytes", str(SIZE), "--format", "goal", "--output", path)
    with open(path, encoding="ascii") as text:
        check_messages(what, replay(goal(text.read())))
    if shutil.which("txt2bin") and shutil.which("LogGOPSim"):
        subprocess.run(["txt2bin", "-i", path, "-o", path + ".bin"], check=True, stdout=subprocess.DEVNULL)
        said = subprocess.run(["LogGOPSim", "-f", path + ".bin"], check=True, capture_output=True, text=True).stdout
        assert "Host 0:" in said, said

def check_chakra(what):
    prefix = os.path.join(FOLDER, "et")
    n = int(command("export", *what, "--bytes", str(SIZE), "--format", "chakra", "--output", prefix).split()[0])
    ranks, sums = chakra(prefix, n)
    check_messages(what, replay(ranks))
    if what[0] == "allreduce" and what[-1] == "allreduce:ring":    # each chunk is added up once on the way
        assert sums == (n - 1) * SIZE
    if shutil.which("chakra_jsonizer"):
        for rank, ops in enumerate(ranks):
            subprocess.run(["chakra_jsonizer", "--input_filename", f"{prefix}.{rank}.et", "--output_filename",
                            prefix + ".json"], check=True)
            with open(prefix + ".json", encoding="utf-8") as text:
                said = text.read()
            assert said.count('"type": "COMM_SEND_NODE"') == sum(op[0] == "send" for op in ops.values())
            assert said.count('"type": "COMM_RECV_NODE"') == sum(op[0] == "recv" for op in ops.values())

for case in CASES:
    if FORMAT != "msccl" or case[0] not in ("bcast", "reduce"):
        try:
            {"goal": check_goal, "msccl": check_msccl, "chakra": check_chakra}[FORMAT](case)
        except Exception:
            print("of", FORMAT, *case)
            raise
