"""From records to what the report says of a cell, and the targets."""

import math
import statistics

import grid
from contenders import OURS
from text import exact_text, percent_text

BURST = 64 << 10        # the lab's shaper lets messages up to about this pass above the rate


class Times:
    """The medians of a contender's rounds in one cell."""

    def __init__(self, cells):
        self.cells = [cell for cell in cells if "failed" not in cell]
        self.failed = [cell for cell in cells if "failed" in cell]
        values = [cell["median_s"] for cell in self.cells]
        self.median = statistics.median(values) if values else None
        self.low, self.high = (min(values), max(values)) if values else (None, None)

    def last(self, key):
        return self.cells[-1].get(key) if self.cells else None

    def is_late(self):
        """Do rounds count operations that the barrier before them made late (gate.h)? They may seem too fast."""
        return any(cell.get("late") for cell in self.cells)


class Cell:
    """A collective and a size on a cluster: all contenders, the bound, the regret."""

    def __init__(self, cluster, collective, size, by_contender, regret, asked):
        self.cluster, self.collective, self.size = cluster, collective, size
        self.bound = cluster.bound(collective, size)
        self.times = {name: Times(cells) for name, cells in by_contender.items()}
        self.ours = self.times.get(OURS, Times([]))
        self.peers = {name: t for name, t in self.times.items() if name != OURS and t.median}
        self.best_peer = min(self.peers, key=lambda name: self.peers[name].median) if self.peers else None
        self.regret = regret or {}
        self.asked = asked      # the sizes of the run: this one is one of them, rounded

    def over_bound(self, name=OURS):
        time = self.times[name].median if name in self.times else None
        return time / self.bound if time and self.bound else None

    def over_peer(self):
        if not self.best_peer or not self.ours.median:
            return None
        return self.ours.median / self.peers[self.best_peer].median

    def name_with_lateness(self):
        late = self.best_peer and self.peers[self.best_peer].is_late() and not self.ours.is_late()
        return f"{self.name()} [{self.best_peer} late]" if late else self.name()

    def model(self):
        """Predicted over measured, of the planner's choice."""
        predicted = self.ours.last("predicted_s")
        return predicted / self.ours.median if predicted and self.ours.median else None

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
        what, value, _ = max(self.values, key=lambda one: one[1] / one[2])
        text = percent_text(value) if self.unit == "%" else exact_text(value)
        held = f", {len(self.values) - len(self.misses)} of {len(self.values)}" if len(self.values) > 1 else ""
        lacks = f", {self.lacking} open" if self.lacking else ""
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
    by_collective = {}
    for cell in cells:
        if cell.over_peer():
            by_collective.setdefault(cell.collective, []).append(cell.over_peer())
    means = [(name, geometric_mean(values), 1.0) for name, values in by_collective.items()]
    return [Target("mean over best peer <= 1.00", means, expected=len({cell.collective for cell in cells})),
            Target("over best peer <= 1.25 in every cell", over, expected=len(cells))]


def planner_targets(cells):
    regrets = [(cell.name(), cell.regret["regret"], 0.25) for cell in cells if "regret" in cell.regret]
    mean = [(f"{len(regrets)} cells", geometric_mean([1 + one for _, one, _ in regrets]) - 1, 0.05)] if regrets else []
    found = [Target("regret, mean <= 5 %", mean, "%", "mean"),
             Target("regret, worst <= 25 %", regrets, "%", expected=len(cells))]
    chosen = [cell.model() for cell in cells if cell.size > BURST and cell.model()]
    for what, ratios in (("choices", chosen), ("all tried", model_of_tried(cells))):
        errors = [abs(ratio - 1) for ratio in ratios]
        value = [(f"{len(errors)} times", statistics.median(errors), math.inf)] if errors else []
        found.append(Target(f"model off, {what}", value, "%", "mean"))
    return found
