"""The rounds: every contender in turn, every cell of a contender in as few launches as can be."""

import json
import os
import re
import tempfile
import time

import programs
from contenders import OURS, ROOT, environment, ours
from grid import BARRIER, UsageError
from store import now

LAUNCH_PATIENCE = 40.0      # seconds until a program must have said something
SLOW = 15                   # so many times the bound may one operation take
UNSHAPED = 2e8              # bytes per second of an operation, when there is no bound: far below any box
IN_PLACE = {"bcast": ["--in-place"]}    # as MPI_Bcast always is; the others are out of place on both sides
GIVE_UP = 3                 # launches in a row that brought nothing


class OutOfTime(Exception):
    pass


def pick(option, wanted, names):
    """Those of the names that are wanted; all when nothing is said."""
    wanted = [item.strip() for item in wanted.split(",") if item.strip()]
    for item in wanted:
        if item not in names:
            raise UsageError(f"expected {option} of {', '.join(names) or 'none: there are none'}; came '{item}'")
    return [name for name in names if not wanted or name in wanted]


class Session:
    """One run of compare: what it may take, and where the results go."""

    def __init__(self, store, settings, build, peers, clusters, say):
        self.store, self.settings, self.build, self.peers, self.clusters = store, settings, build, peers, clusters
        self.say, self.lab_name = say, settings["lab"]
        self.begin = time.monotonic()
        self.tune_file = os.path.join(os.path.dirname(os.path.abspath(store.path)), "links.json")
        self.collectives = self.find_collectives()
        names = dict.fromkeys(one.name for cluster in clusters for one in peers.all(cluster))
        self.variants = pick("--contenders", settings["contenders"], list(names))

    def tool(self, name):
        return os.path.join(self.build, name)

    def find_collectives(self):
        listed = json.loads(programs.output_of([self.tool("meshcoll"), "list", "collectives", "--json"]) or "{}")
        return pick("--collectives", self.settings["collectives"],
                    [*(one["name"] for one in listed.get("collectives", [])), BARRIER])

    def find_peers(self, cluster):
        return [one for one in self.peers.all(cluster) if one.name in self.variants]

    def left(self):
        budget = self.settings["budget"]
        return budget - (time.monotonic() - self.begin) if budget else float("inf")

    def wanted(self, cluster):
        """The (collective, bytes) of a cluster, small ones first."""
        sizes = self.settings["sizes"]
        cells = [(c, size) for c in self.collectives for size in cluster.sizes(c, sizes)]
        return sorted(cells, key=lambda cell: (cell[1], self.collectives.index(cell[0])))

    def start(self, contender, cluster, program, patience, on_line):
        if self.left() <= 0:
            raise OutOfTime
        command = contender.command(cluster, self.lab_name, program)
        outcome = programs.run(command, environment(contender), patience, on_line, self.left())
        if outcome.hung == programs.OUT_OF_TIME:
            raise OutOfTime
        return outcome


def slowest(cluster, collective, size):
    """Seconds that one operation may take before we think that it hangs."""
    bound = cluster.bound(collective, size)
    times = cluster.ranks if collective == "alltoall" else 1
    return SLOW * bound if bound else size * times * cluster.ranks / UNSHAPED


# --- the links -----------------------------------------------------------------------------------------------

def tune(session, cluster):
    """`meshcoll tune` on this cluster, kept in the run's own file, where the library finds it. True if it is."""
    have = session.store.data["tunes"].get(cluster.key)
    if have and "failed" not in have:
        return True
    lines = []
    program = [session.tool("meshcoll"), "tune", "--json", "--seconds", f"{session.settings['tune_seconds']:g}"]
    program += ["--mesh", cluster.mesh] if cluster.mesh else []
    seconds = session.settings["tune_seconds"] * 4 + 60
    contender = ours(cluster, session.tune_file)
    outcome = session.start(contender, cluster, program, lambda: seconds, lines.append)
    try:
        told = json.loads("".join(lines))
        record = {"mesh": told["mesh"]["text"], "links": told["links_text"], "rounds": told["rounds"],
                  "seconds": told["seconds"], "date": now()}
    except (ValueError, KeyError):
        record = {"failed": f"meshcoll tune: {outcome.reason()}", "date": now()}
    session.store.data["tunes"][cluster.key] = record
    session.store.save()
    session.say(f"{cluster.key}: links {record.get('links', record.get('failed'))}")
    return "failed" not in record


# --- a round of one contender ----------------------------------------------------------------------------------

def measure_round(session, cluster, contender, number, todo):
    """Each cell leaves a record, of its time or of why there is none."""
    key = (cluster.key, number, contender.name)
    launch = launch_ours if contender.name == OURS else launch_peer
    useless = 0
    while todo:
        batch = [cell for cell in todo if cell[0] == todo[0][0]] if contender.name == OURS else todo
        taker = Taker(session, key, batch, contender)
        try:
            outcome = launch(session, cluster, contender, batch, taker)
        except OutOfTime:
            left = [cell for cell in todo if cell not in taker.taken]
            fail(session, key, left, f"the budget of {session.settings['budget']:g} s was over")
            raise
        except BaseException:
            fail(session, key, taker.missing()[:1], "interrupted")
            raise
        missing = taker.missing()
        if missing:
            fail(session, key, missing[:1], outcome.reason())
        useless = 0 if len(missing) < len(batch) else useless + 1
        gone = set(batch) - set(missing[1:])
        todo = [cell for cell in todo if cell not in gone]
        if useless == GIVE_UP:
            fail(session, key, todo, f"not tried after {GIVE_UP} launches without a result, the last with "
                 + outcome.reason())
            return


def fail(session, key, cells, reason):
    for collective, size in cells:
        session.store.add_cell({**named(key), "collective": collective, "bytes": size, "failed": reason,
                                "date": now()})
        session.say(f"  {key[0]} {key[2]} {collective} {size}: {reason}")


def named(key):
    return dict(zip(("cluster", "round", "contender"), key))


class Taker:
    """Takes a launch's rows into the store as they come."""

    def __init__(self, session, key, batch, contender):
        self.session, self.key, self.batch, self.contender = session, key, batch, contender
        self.taken = set()

    def take(self, collective, row):
        cell = (collective, row["bytes"])
        if cell not in self.batch or cell in self.taken:
            return
        self.taken.add(cell)
        kept = {name: row[name] for name in ("count", "iterations", "late", "median_s", "min_s", "p99_s", "wrong", "strategy",
                                             "predicted_s") if name in row}
        record = {**named(self.key), "collective": collective, "bytes": row["bytes"], **kept, "date": now()}
        if row["wrong"]:
            record["failed"] = f"{row['wrong']} wrong elements"
        self.session.store.add_cell(record)

    def missing(self):
        return [cell for cell in self.batch if cell not in self.taken]

    def library(self, text):
        known = self.session.store.data["contenders"].setdefault(self.contender.library, {})
        known["version"] = text


def launch_peer(session, cluster, contender, batch, taker):
    at = [batch[0]]
    s = session.settings

    def patience():
        runs = s["warmup"] + 1 + 3
        return LAUNCH_PATIENCE + 3 * s["cell_seconds"] + runs * slowest(cluster, *at[0])

    def on_line(line):
        if not line.startswith("{"):
            return
        told = json.loads(line)
        if "library" in told:
            taker.library(told["library"])
        if "begin" in told:
            at[0] = (told["begin"], told["bytes"])
        if "cell" in told:
            taker.take(told["cell"], told)

    program = [session.peers.program(contender), "-n", str(s["iterations"]), "-t", f"{s['cell_seconds']:g}",
               "-w", str(s["warmup"])]
    cells = [f"{c}:{size}" for c, size in batch]
    with tempfile.TemporaryDirectory() as folder:
        return session.start(contender, cluster, [*program, "--gate", gate_in(folder), *cells], patience, on_line)


def gate_in(folder):
    """The file through which ranks begin together: bench/common/gate.h. The lab's boxes share /tmp."""
    return os.path.join(folder, "gate")


def launch_ours(session, cluster, contender, batch, taker):
    collective, sizes = batch[0][0], [size for _, size in batch]
    s = session.settings
    options = ["-n", str(s["iterations"]), "--max-time", f"{s['cell_seconds']:g}", "-w", str(s["warmup"])]

    tuned = session.store.data["tunes"][cluster.key]

    def take(rows, meta):
        if without_wires(meta["links"]) != without_wires(tuned["links"]):
            tuned["trouble"] = f"meshcoll-bench had other links than the tuned ones: {meta['links']}"
        taker.library(f"{meta['version']}, UCX {meta['ucx']}")
        for row in rows:
            taker.take(collective, row)
    return bench(session, cluster, contender, collective, sizes, ["best"], options, take)


def without_wires(links):
    """The library says which dimensions share a wire when it reads links, `meshcoll tune` does not yet."""
    return re.sub(r";wire:\w+", "", links)


def bench(session, cluster, contender, collective, sizes, strategies, options, take):
    """One launch of meshcoll-bench. Its rows and meta are handed to `take`, also those of a run that was killed."""
    mesh = session.store.data["tunes"][cluster.key]["mesh"]
    runs = session.settings["warmup"] + 2 + 3
    patience = LAUNCH_PATIENCE + len(strategies) * (3 * session.settings["cell_seconds"] +
                                                    runs * slowest(cluster, collective, max(sizes)))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.json")
        if collective != BARRIER:
            options = ["--sizes", ",".join(map(str, sizes)), *options]
        program = [session.tool("meshcoll-bench"), "--collective", collective, "--mesh", mesh,
                   "--strategies", "\n".join(strategies), "--json", path, "--gate", gate_in(folder),
                   *IN_PLACE.get(collective, []), *options]
        try:
            return session.start(contender, cluster, program, lambda: patience, lambda line: None)
        finally:
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    whole = json.load(file)
                take(whole["rows"], whole["meta"])


# --- all rounds --------------------------------------------------------------------------------------------------

def hopeless(session, cluster, peers, contender, cell):
    """A variant so far behind the best peer of round 1 that it cannot be the best one, in a cell that costs
    more than its share of seconds. Cheap cells are run again: there one bad round says little."""
    times = {one.name: session.store.cell(cluster.key, 1, one.name, *cell) for one in peers}
    good = {name: c["median_s"] for name, c in times.items() if c and "failed" not in c}
    if contender.name not in good:
        return False            # what failed is tried again: a round may have had bad luck
    s = session.settings
    dear = (s["warmup"] + 1 + 3) * good[contender.name] > s["cell_seconds"]
    return dear and good[contender.name] > s["prune"] * min(good.values())


def to_measure(session, cluster, number, contender):
    """A contender's cells of a round that have no time yet."""
    peers = session.find_peers(cluster)
    weighed = number > 1 and contender.name != OURS and session.settings["prune"]
    return [cell for cell in session.wanted(cluster)
            if not session.store.measured(cluster.key, number, contender.name, *cell)
            and not (weighed and hopeless(session, cluster, peers, contender, cell))]


def rounds_left(session, cluster):
    return [number for number in range(1, session.settings["rounds"] + 1)
            if any(to_measure(session, cluster, number, one)
                   for one in [ours(cluster, session.tune_file)] + session.find_peers(cluster))]


def run_round(session, cluster, number):
    """Everybody once, starting with another one each round."""
    peers = session.find_peers(cluster)
    everybody = [ours(cluster, session.tune_file)] + peers
    for contender in everybody:
        note = session.store.data["contenders"].setdefault("commands", {}).setdefault(cluster.key, {})
        note[contender.name] = {"library": contender.library, "what": contender.what,
                                "command": contender.describe(cluster)}
    turn = (number - 1) % len(everybody)
    for contender in everybody[turn:] + everybody[:turn]:
        cells = to_measure(session, cluster, number, contender)
        if not cells:
            continue
        began = time.monotonic()
        measure_round(session, cluster, contender, number, cells)
        session.say(f"{cluster.key} round {number}: {contender.name}, {len(cells)} cells, "
                    f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.1f}")


def lab(session, command, *options):
    program = [os.path.join(ROOT, "bench", "lab", "lab"), command, *options]
    if command != "check":
        program += ["--name", session.lab_name]
    lines = []
    outcome = programs.run(program, dict(os.environ), lambda: 120, lines.append)
    return outcome, "".join(lines).strip()
