"""From records to what the report says of a cell, and the targets."""

import math
import statistics

import grid
from contenders import (DEFAULT, FORCED, MINE, OURS, OURS_FIRST, OURS_PERSISTENT, OURS_TUNED, OURS_TUNED_FIRST,
                        PERSISTENT)
from text import exact_text, percent_text

BURST = 64 << 10        # the lab's shaper lets messages up to about this pass above the rate


class Times:
    """The medians of a contender's turns in one cell; without turns, what the screening found."""

    def __init__(self, cells):
        good = [cell for cell in cells if "failed" not in cell]
        turns = [cell for cell in good if cell["turn"]]
        self.cells, self.turns = turns or good, len(turns)
        self.failed = [cell for cell in cells if "failed" in cell]
        self.group = cells[0]["group"] if cells else None
        values = [cell["median_s"] for cell in self.cells]
        self.median = statistics.median(values) if values else None
        self.low, self.high = spread(values)

    def last(self, key):
        return self.cells[-1].get(key) if self.cells else None

    def is_late(self):
        """Do turns count operations that the barrier before them made late (gate.h)? They may seem too fast."""
        return any(cell["late"] for cell in self.cells)


def spread(values):
    """The lower and the upper quartile."""
    if len(values) < 2:
        return (values * 2 or (None, None))[:2]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


class Cell:
    """A collective and a size on a cluster: all contenders, the bound, the regret."""

    def __init__(self, cluster, collective, size, by_contender, regret, asked):
        self.cluster, self.collective, self.size = cluster, collective, size
        self.bound = cluster.bound(collective, size)
        self.times = {name: Times(cells) for name, cells in by_contender.items()}
        self.ours = self.times.get(OURS, Times([]))
        self.persistent = self.times.get(OURS_PERSISTENT, Times([]))
        self.peers = {name: t for name, t in self.times.items() if name not in MINE and t.median}
        self.best_peer = self.best(DEFAULT)
        self.regret = regret or {}
        self.asked = asked      # the sizes of the run: this one is one of them, rounded

    def best(self, *groups):
        """The fastest peer of the groups; who was left out after the screening counts if nobody had turns."""
        among = {name: t for name, t in self.peers.items() if t.group in groups}
        among = {name: t for name, t in among.items() if t.turns} or among
        return min(among, key=lambda name: among[name].median) if among else None

    def over_bound(self, name=OURS):
        time = self.times[name].median if name in self.times else None
        return time / self.bound if time and self.bound else None

    def over(self, ours, *groups):
        best = self.best(*groups)
        return ours.median / self.peers[best].median if best and ours.median else None

    def over_peer(self):
        """The headline: blocking calls, peers at default settings."""
        return self.over(self.ours, DEFAULT)

    def over_forced(self):
        return self.over(self.ours, DEFAULT, FORCED)

    def over_tuned(self, names=(OURS, OURS_TUNED)):
        """Not tuned over tuned, both in blocking calls."""
        times = [self.times[one].median if one in self.times else None for one in names]
        return times[0] / times[1] if all(times) else None

    def first_over_tuned(self):
        return self.over_tuned((OURS_FIRST, OURS_TUNED_FIRST))

    def over_persistent(self):
        return self.over(self.persistent, DEFAULT, PERSISTENT)

    def late_text(self):
        """Who counts operations behind a late barrier."""
        late = [name for name in (OURS, self.best_peer) if name in self.times and self.times[name].is_late()]
        return f" [late: {', '.join(late)}]" if late else ""

    def name_with_lateness(self):
        return self.name() + self.late_text()

    def model(self):
        """Predicted over measured, of the planner's choice."""
        predicted = self.persistent.last("predicted_s")
        return predicted / self.persistent.median if predicted and self.persistent.median else None

    def strategy(self):
        """Blocking calls take the same choice, and do not tell it."""
        return self.persistent.last("strategy")

    def name(self):
        return f"{self.collective} {grid.size_text(self.size)}" if self.size else self.collective


def cells_of(store, cluster):
    found, names = {}, store.data.get("collectives", [])
    asked = store.data["settings"]["sizes"]
    wanted = [(c, size) for c in names for size in cluster.sizes(c, asked)]
    for record in store.data["cells"]:
        if record["cluster"] == cluster.key:
            by = found.setdefault((record["collective"], record["bytes"]), {})
            by.setdefault(record["contender"], []).append(record)
    return [Cell(cluster, *key, found.get(key, {}), store.regret(cluster.key, *key), asked) for key in wanted]


def model_of_tried(cells):
    """Predicted over measured of every strategy tried for regret above the burst."""
    return [row["predicted_s"] / row["median_s"] for cell in cells if cell.size > BURST
            for row in {r["strategy"]: r for r in cell.regret.get("tried", []) + cell.regret.get("final", [])}.values()
            if row["predicted_s"]]


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


# --- the targets -------------------------------------------------------------------------------------------------

class Target:
    """`values` are (what, value, limit) of every cell it is about; met when all are within theirs. Targets of all clusters
    with one `head` are one column."""

    def __init__(self, head, values, unit="", summary="worst", expected=None):
        self.head, self.values, self.unit, self.summary = head, values, unit, summary
        self.misses = [(what, value, limit) for what, value, limit in values if value > limit]
        self.lacking = max((expected if expected is not None else len(values)) - len(values), 0)

    def measured(self):
        if not self.values:
            return "-"
        what, value, _ = max(self.values, key=lambda one: (one[1] / one[2], one[1]))
        text = percent_text(value) if self.unit == "%" else exact_text(value)
        held = f", {len(self.values) - len(self.misses)} of {len(self.values)}" if len(self.values) > 1 else ""
        lacks = f", {self.lacking} open" if self.lacking else ""
        if self.summary == "largest":
            return f"{text} ({what})"
        return (f"{text} ({what}){held}" if self.summary == "worst" else f"{text} over {what}") + lacks


def targets_of(cluster, cells):
    found = lab_targets(cells) if cluster.in_lab else []
    return found + peer_targets(cells) + planner_targets(cells)


def lab_targets(cells):
    size, limit = 8 << 20, 1.10
    # blocks are rounded down: at 3 boxes of 3 "8 MiB" is a little less
    near = [cell for cell in cells if 0.99 * size <= cell.size <= size and cell.bound]
    values = [(cell.collective, cell.over_bound(), limit) for cell in near if cell.over_bound()]
    return [Target(f"over the bound at {grid.size_text(size)} <= {limit:.2f}", values, expected=len(near))]


def peer_targets(cells):
    over = [(cell.name_with_lateness(), cell.over_peer(), 1.25) for cell in cells if cell.over_peer()]
    means = [(name, mean, 1.0) for name, mean in means_of(cells, Cell.over_peer)]
    found = [Target("mean over best peer <= 1.00", means, expected=len({cell.collective for cell in cells})),
             Target("over best peer <= 1.25 in every cell", over, expected=len(cells))]
    for what, value, limit in (("not tuned over tuned, mean <= 1.05", Cell.over_tuned, 1.05),
                               ("first 10 calls over tuned, mean <= 1.25", Cell.first_over_tuned, 1.25)):
        found.append(Target(what, [(name, mean, limit) for name, mean in means_of(cells, value)]))
    found.append(Target("not tuned over tuned <= 1.15 in every cell",
                        [(cell.name(), cell.over_tuned(), 1.15) for cell in cells if cell.over_tuned()]))
    for what, value in (("beside: forced, mean", Cell.over_forced), ("beside: persistent, mean", Cell.over_persistent)):
        found.append(Target(what, [(name, mean, math.inf) for name, mean in means_of(cells, value)], summary="largest"))
    return found


def means_of(cells, value):
    """(collective, geometric mean over sizes)."""
    by_collective = {}
    for cell in cells:
        if value(cell):
            by_collective.setdefault(cell.collective, []).append(value(cell))
    return [(name, geometric_mean(values)) for name, values in by_collective.items()]


def planner_targets(cells):
    regrets = [(cell.name(), cell.regret["regret"], 0.25) for cell in cells if "regret" in cell.regret]
    mean = [(f"{len(regrets)} cells", geometric_mean([1 + one for _, one, _ in regrets]) - 1, 0.05)] if regrets else []
    found = [Target("regret, mean <= 5 %", mean, "%", "mean"),
             Target("regret, worst <= 25 %", regrets, "%", expected=len(cells) if regrets else 0)]
    chosen = [cell.model() for cell in cells if cell.size > BURST and cell.model()]
    for what, ratios in (("choices", chosen), ("all tried", model_of_tried(cells))):
        errors = [abs(ratio - 1) for ratio in ratios]
        value = [(f"{len(errors)} times", statistics.median(errors), math.inf)] if errors else []
        found.append(Target(f"model off, {what}", value, "%", "mean"))
    return found
