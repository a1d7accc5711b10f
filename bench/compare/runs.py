"""Runs of compare as one report has them: one, or several that were measured piece by piece."""

import os

import grid
import stats

SAME = (("rate", "settings"), ("pages", "settings"), ("cpu", "machine"), ("cores", "machine"))     # what times of one report have in common


class Runs:
    """Stores, in the order in which they are asked: where two have a cell, the first one's counts."""

    def __init__(self, stores):
        self.stores = stores
        for key, where in SAME:
            came = self.each(key, where)
            if len(came) > 1:
                raise grid.UsageError(f"expected runs of one {key} in one report, came {' and '.join(map(str, came))}")
        bound = {store.data["settings"]["bind"] for store in stores if store.data["settings"]["one_box"] != "none"}
        if len(bound) > 1:
            raise grid.UsageError("expected one-box runs of one --bind in one report, came core and none")
        asked = [one for store in stores for one in grid.clusters(store.data["settings"])]
        self.clusters = sorted({one.key: one for one in asked}.values(), key=lambda one: 0 if one.in_lab else one.ranks)
        self.collectives = self.each_of(sorted((store.data.get("collectives", []) for store in stores), key=len,
                                               reverse=True))      # a piece with few of them does not set their order

    @staticmethod
    def each_of(lists):
        return list(dict.fromkeys(one for items in lists for one in items))

    def each(self, key, where="settings"):
        """The different values, in the runs' order."""
        return self.each_of([store.data[where].get(key)] for store in self.stores)

    def said(self, key):
        """Of a setting, for people: one number, or each run's."""
        return " or ".join(one if isinstance(one, str) else f"{one:g}" for one in self.each(key))

    def label(self, store):
        return os.path.relpath(os.path.dirname(os.path.abspath(store.path)))

    @staticmethod
    def end_of(store):
        return store.data["events"][-1].split(" ")[0] if store.data["events"] else "-"

    def of(self, cluster):
        """The runs that were asked for a cluster."""
        return [store for store in self.stores
                if cluster.key in {one.key for one in grid.clusters(store.data["settings"])}]

    def cells(self, cluster):
        found = {}
        for store in self.of(cluster):
            for cell in stats.cells_of(store, cluster):
                key = (cell.collective, cell.size)
                found[key] = joined(found[key], cell) if key in found else cell
        return sorted(found.values(), key=lambda cell: (self.collectives.index(cell.collective), cell.size))


def joined(first, later):
    """The times are of one run, so that who is compared took turns; a regret may be of another."""
    kept, other = (first, later) if first.ours.median or not later.ours.median else (later, first)
    if "regret" not in kept.regret and other.regret:
        kept.regret = other.regret
    return kept
