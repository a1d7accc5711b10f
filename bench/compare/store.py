"""What was measured, kept in one JSON file that is written anew with every record."""

import json
import os
import time

VERSION = 3         # 3: turns of one program for all; 2: rounds, times from the gate; 1: from MPI_Barrier


class Store:
    """`data` = {"settings", "machine", "tunes", "cells", "regrets", "events"}; see docs/benchmarks.md."""

    def __init__(self, path, data):
        self.path, self.data = path, data
        self.cell_at = {cell_key(cell): i for i, cell in enumerate(data["cells"])}

    @classmethod
    def new(cls, path, settings, machine):
        return cls(path, {"version": VERSION, "settings": settings, "machine": machine, "tunes": {},
                          "contenders": {}, "cells": [], "regrets": {}, "events": []})

    @classmethod
    def load(cls, path):
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        if data.get("version") != VERSION:
            raise ValueError(f"expected version {VERSION}, came {data.get('version')}: what is timed has changed "
                             "since, and old times do not stand beside new ones; begin anew, without --resume")
        return cls(path, data)

    def save(self):
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        fresh = self.path + ".tmp"
        with open(fresh, "w", encoding="utf-8") as file:
            json.dump(self.data, file, indent=1)
        os.replace(fresh, self.path)

    def event(self, text):
        self.data["events"].append(f"{now()} {text}")
        self.save()

    def add_cell(self, cell):
        """A cell measured, or failed with the reason; one tried again takes the old one's place."""
        key = cell_key(cell)
        if key in self.cell_at:
            self.data["cells"][self.cell_at[key]] = cell
        else:
            self.cell_at[key] = len(self.data["cells"])
            self.data["cells"].append(cell)
        self.save()

    def cell(self, *key):
        return self.data["cells"][self.cell_at[key]] if key in self.cell_at else None

    def add_regret(self, cluster, collective, size, regret):
        self.data["regrets"][regret_key(cluster, collective, size)] = regret
        self.save()

    def regret(self, cluster, collective, size):
        return self.data["regrets"].get(regret_key(cluster, collective, size))


def cell_key(cell):
    return (cell["cluster"], cell["turn"], cell["contender"], cell["collective"], cell["bytes"])


def regret_key(cluster, collective, size):
    return f"{cluster} {collective} {size}"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
