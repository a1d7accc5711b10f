"""The turns: each is one start of one contender's program, which measures a list of cells shortly."""

import json
import os
import tempfile
import time

import programs
from contenders import DEFAULT, FIRST, MINE, OURS_PERSISTENT, PROGRAM, ROOT, environment, mine
from grid import BARRIER, UsageError
from store import now

LAUNCH_PATIENCE = 40.0      # seconds until a program must have said something
SLOW = 15                   # so many times the bound may one operation take
UNSHAPED = 2e8              # bytes per second of an operation, when there is no bound: far below any box
IN_PLACE = {"bcast": ["--in-place"]}    # as MPI_Bcast always is; the others are out of place on both sides
GIVE_UP = 3                 # launches in a row that brought nothing
SCREENING = 0               # the turn before all others, in which the grid is tried
SHORTER = 4                 # so many times less of a cell's seconds does the screening take
FIRST_LARGE = 1 << 20       # above it, the grid is tried only where it was not hopeless at the size below


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
        names = dict.fromkeys(one.name for cluster in clusters for one in peers.families(cluster))
        self.families = pick("--contenders", settings["contenders"], list(names))

    def tool(self, name):
        return os.path.join(self.build, name)

    def find_collectives(self):
        listed = json.loads(programs.output_of([self.tool("meshcoll"), "list", "collectives", "--json"]) or "{}")
        return pick("--collectives", self.settings["collectives"],
                    [*(one["name"] for one in listed.get("collectives", [])), BARRIER])

    def find_peers(self, cluster):
        """(program, contender) of the families and groups that are wanted."""
        return [(self.peers.program(peer), one) for peer, one in self.peers.all(cluster)
                if one.family in self.families and one.group in (DEFAULT, *self.settings["groups"])]

    def everybody(self, cluster):
        return [(self.tool(PROGRAM), one) for one in mine(cluster, self.tune_file).values()] + self.find_peers(cluster)

    def left(self):
        budget = self.settings["budget"]
        return budget - (time.monotonic() - self.begin) if budget else float("inf")

    def wanted(self, cluster, contender=None):
        """The (collective, bytes) of a cluster, small ones first."""
        sizes = self.settings["sizes"]
        cells = [(c, size) for c in self.collectives for size in cluster.sizes(c, sizes)
                 if not contender or not contender.only or c in contender.only]
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
    contender = mine(cluster, session.tune_file)[OURS_PERSISTENT]
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


# --- a turn of one contender -----------------------------------------------------------------------------------

def take_turn(session, cluster, program, contender, turn, todo):
    """Each cell leaves a record, of its time or of why there is none."""
    key = (cluster.key, turn, contender.name)
    useless = 0
    while todo:
        taker = Taker(session, key, todo, contender)
        try:
            outcome = launch(session, cluster, program, contender, turn, taker)
        except OutOfTime:
            raise
        except BaseException:
            fail(session, key, contender, taker.missing()[:1], "interrupted")
            raise
        missing = taker.missing()
        lost = missing[:1]
        if missing and contender.group != DEFAULT and contender.name not in MINE:
            lost = [cell for cell in missing if cell[0] == missing[0][0]]   # one end of a peer's program is enough
        fail(session, key, contender, lost, outcome.reason())
        useless = 0 if len(missing) < len(todo) else useless + 1
        todo = [cell for cell in missing if cell not in lost]
        if useless == GIVE_UP:
            fail(session, key, contender, todo, f"not tried after {GIVE_UP} launches without a result, the last with "
                 + outcome.reason())
            return


def fail(session, key, contender, cells, reason):
    for collective, size in cells:
        session.store.add_cell({**named(key), "group": contender.group, "collective": collective, "bytes": size,
                                "failed": reason, "date": now()})
        session.say(f"  {key[0]} {key[2]} {collective} {size}: {reason}")


def named(key):
    return dict(zip(("cluster", "turn", "contender"), key))


class Taker:
    """Takes a launch's rows into the store as they come."""

    KEPT = ("iterations", "late", "median_s", "min_s", "wrong", "strategy", "predicted_s")

    def __init__(self, session, key, batch, contender):
        self.session, self.key, self.batch, self.contender = session, key, batch, contender
        self.taken = set()
        self.at = batch[0]

    def take(self, line):
        if not line.startswith("{"):
            return
        told = json.loads(line)
        if "library" in told:
            known = self.session.store.data["contenders"].setdefault("versions", {})
            known[" ".join(told["library"].split())] = None
        if "begin" in told:
            self.at = (told["begin"], told["bytes"])
        if "cell" in told:
            self.take_cell(told["cell"], told)

    def take_cell(self, collective, row):
        cell = (collective, row["bytes"])
        if cell not in self.batch or cell in self.taken:
            return
        self.taken.add(cell)
        kept = {name: row[name] for name in self.KEPT if name in row}
        record = {**named(self.key), "group": self.contender.group, "collective": collective, "bytes": row["bytes"],
                  **kept, "date": now()}
        if row["wrong"]:
            record["failed"] = f"{row['wrong']} wrong elements"
        self.session.store.add_cell(record)

    def missing(self):
        return [cell for cell in self.batch if cell not in self.taken]


def launch(session, cluster, program, contender, turn, taker):
    s = session.settings

    def patience():
        return LAUNCH_PATIENCE + 3 * s["cell_seconds"] + 3 * slowest(cluster, *taker.at)

    screening = turn == SCREENING
    seconds = s["cell_seconds"] / (SHORTER if screening else 1)
    words = [program, "-n", str(s["iterations"]), "-t", f"{seconds:g}", "-l", "1", *contender.arguments(s["pages"])]
    words += ["-1"] if screening else []
    if contender.family == "meshcoll":
        words += ["--mesh", session.store.data["tunes"][cluster.key]["mesh"]]
    cells = [f"{c}:{size}" for c, size in taker.batch]
    with tempfile.TemporaryDirectory() as folder:
        if contender.options is FIRST:          # nothing that an earlier job has found
            contender.env["XDG_CACHE_HOME"] = folder
        return session.start(contender, cluster, [*words, "--gate", gate_in(folder), *cells], patience, taker.take)


def gate_in(folder):
    """The file through which ranks begin together: bench/common/gate.h. The lab's boxes share /tmp."""
    return os.path.join(folder, "gate")


def bench(session, cluster, contender, collective, sizes, strategies, options, take):
    """One launch of meshcoll-bench. Its rows and meta are handed to `take`, also those of a run that was killed."""
    mesh = session.store.data["tunes"][cluster.key]["mesh"]
    patience = LAUNCH_PATIENCE + len(strategies) * (3 * session.settings["cell_seconds"] +
                                                    5 * slowest(cluster, collective, max(sizes)))
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


# --- who measures what in a turn -----------------------------------------------------------------------------------

class Field:
    """A cluster's contenders and their cells, and what the screening told of them."""

    def __init__(self, session, cluster):
        self.session, self.cluster = session, cluster
        self.everybody = session.everybody(cluster)
        self.by_name = {one.name: one for _, one in self.everybody}

    def screened(self, contender, cell):
        """Its time in the screening; None where it has none."""
        record = self.session.store.cell(self.cluster.key, SCREENING, contender.name, *cell)
        return record["median_s"] if record and "failed" not in record else None

    def best(self, group, cell):
        """The fastest peer of a group: its name and time."""
        times = [(self.screened(one, cell), one.name) for one in self.by_name.values()
                 if one.group == group and one.name not in MINE]
        return min([pair for pair in times if pair[0]], default=(None, None))

    def promising(self, contender, cell):
        """Is a peer tried in the later turns? At default settings, where it is not far behind the best one; of the forced
        ones, and of the persistent ones, the best one, where it might be ahead of those at default settings."""
        time, (best, _) = self.screened(contender, cell), self.best(DEFAULT, cell)
        s = self.session.settings
        if contender.name in MINE or not s["prune"]:
            return True
        if contender.group == DEFAULT:
            if time is None or best is None:        # the screening may have had bad luck
                return True
            dear = 2 * time > s["cell_seconds"]
            return time <= best * s["prune"] * (1 if dear else 2)
        return self.best(contender.group, cell)[1] == contender.name and (not best or time <= best * s["near"])

    def worth_screening(self, contender, cell):
        """A large size of the grid costs seconds: only where it was not hopeless at the size below."""
        collective, size = cell
        if contender.group == DEFAULT or contender.name in MINE or size <= FIRST_LARGE:
            return True
        below = [one for one in self.session.wanted(self.cluster) if one[0] == collective and one[1] < size]
        if not below:
            return True
        time, (best, _) = self.screened(contender, below[-1]), self.best(DEFAULT, below[-1])
        return time is not None and (best is None or time <= best * self.session.settings["prune"])

    def to_measure(self, turn, contender):
        """A contender's cells of a turn that have no time yet."""
        store, key = self.session.store, self.cluster.key

        def is_open(cell):
            record = store.cell(key, turn, contender.name, *cell)
            again = contender.name in MINE or contender.group == DEFAULT
            return record is None or ("failed" in record and (again or record["failed"] == "interrupted"))

        def chosen(cell):
            if turn == SCREENING:
                return self.worth_screening(contender, cell)
            failed = [one for one in range(turn) if "failed" in (store.cell(key, one, contender.name, *cell) or {})]
            return len(failed) < 2 and self.promising(contender, cell)
        return [cell for cell in self.session.wanted(self.cluster, contender) if is_open(cell) and chosen(cell)]

    def turns_left(self):
        return [turn for turn in range(SCREENING, self.session.settings["turns"] + 1)
                if any(self.to_measure(turn, one) for one in self.by_name.values())]


def run_turn(field, turn):
    """Everybody once, starting with another one each turn. The screening goes in the order of its steps: peers at default
    settings, then the grid, then its large sizes."""
    session, cluster = field.session, field.cluster
    note = session.store.data["contenders"].setdefault("commands", {}).setdefault(cluster.key, {})
    for _, one in field.everybody:
        note[one.name] = {"what": one.what, "group": one.group,
                          "command": one.describe(cluster, session.settings["pages"])}
    if turn == SCREENING:
        rest = [pair for pair in field.everybody if pair[1].group != DEFAULT]
        run_each(field, turn, [pair for pair in field.everybody if pair[1].group == DEFAULT])
        run_each(field, turn, rest, FIRST_LARGE)
        run_each(field, turn, rest)
        return
    first = turn * max(len(field.everybody) // session.settings["turns"], 1) % len(field.everybody)
    run_each(field, turn, field.everybody[first:] + field.everybody[:first])


def run_each(field, turn, pairs, largest=float("inf")):
    session, cluster = field.session, field.cluster
    for program, contender in pairs:
        cells = [cell for cell in field.to_measure(turn, contender) if cell[1] <= largest]
        if not cells:
            continue
        began = time.monotonic()
        take_turn(session, cluster, program, contender, turn, cells)
        session.say(f"{cluster.key} turn {turn}: {contender.name}, {len(cells)} cells, "
                    f"{time.monotonic() - began:.1f} s, load {os.getloadavg()[0]:.1f}")


def lab(session, command, *options):
    program = [os.path.join(ROOT, "bench", "lab", "lab"), command, *options]
    if command != "check":
        program += ["--name", session.lab_name]
    lines = []
    outcome = programs.run(program, dict(os.environ), lambda: 120, lines.append)
    return outcome, "".join(lines).strip()
