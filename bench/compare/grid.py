"""What is compared: collectives, sizes and clusters, and the lower bound of a cell."""

import math
import re

ELEMENT = 4                     # bytes: float32 throughout
SIZES = "64,4K,64K,1M,8M"
QUICK_SIZES = "64,64K"
ONE_BOX = "one-box"             # in the place of a rate
DIM_NAMES = {2: ["box", "gpu"], 3: ["rack", "box", "gpu"]}
BARRIER = "barrier"             # moves no data: one cell, of 0 bytes
WITH_BLOCKS = {"scatter", "gather", "allgather", "reduce_scatter", "alltoall"}


GROUPS = ("forced", "persistent")


class UsageError(Exception):
    pass


def parse_bytes(text):
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip(), re.I)
    if not match or int(match[1]) == 0:
        raise UsageError(f"expected sizes like 512, 64K or 8M, came '{text}'")
    return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2].upper()]


def parse_sizes(text):
    return sorted({parse_bytes(item) for item in text.split(",")})


def parse_groups(text):
    """What peers are measured besides their default settings."""
    groups = [item.strip() for item in text.split(",") if item.strip() and item != "none"]
    for one in groups:
        if one not in GROUPS:
            raise UsageError(f"expected --groups of {', '.join(GROUPS)}, or none; came '{one}'")
    return groups


def parse_rate(text):
    """Bytes per second of '200mbit', as tc writes it; None for none."""
    if text == "none":
        return None
    match = re.fullmatch(r"([\d.]+)([kmgt]?)bit", text)
    if not match or float(match[1]) == 0:
        raise UsageError(f"expected a rate like 200mbit or none, came '{text}'")
    return float(match[1]) * 1000 ** " kmgt".index(match[2] or " ") / 8


def size_text(count):
    if count == 0:
        return "-"
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift and count % (1 << shift) == 0:
            return f"{count >> shift} {unit}"
    return f"{count} B" if count < 10240 else f"{count / 1024:.1f} KiB"


def column(size, wanted):
    """The size that was asked for: blocks are rounded until they are equal."""
    return min(wanted, key=lambda one: max(one / size, size / one))


class Cluster:
    """Ranks in boxes of the lab, or all in this one box without shaping. Its key names it in the results."""

    def __init__(self, key, in_box, rate, mesh=None, bind="none"):
        self.key, self.in_box, self.rate = key, in_box, rate    # in_box: ranks of each box
        self.bind = bind                        # of one box: "core", ranks on the cores in turn, or "none"
        self.mesh = mesh                        # None: what meshcoll finds
        self.ranks, self.boxes = sum(in_box), len(in_box)
        self.in_lab = rate != ONE_BOX
        self.bytes_per_second = parse_rate(rate) if self.in_lab else None

    def title(self):
        if not self.in_lab:
            return f"one box, {self.ranks} ranks, not shaped"
        if len(set(self.in_box)) == 1:
            return f"{self.key}: {self.boxes} boxes of {self.in_box[0]} ranks, {self.rate}"
        sizes = [str(n) for n in self.in_box]
        return f"{self.key}: boxes of {', '.join(sizes[:-1])} and {sizes[-1]} ranks, {self.rate}"

    def bound(self, collective, size):
        """Seconds no algorithm can go below where the boxes' network is the bottleneck; None without one."""
        if not self.bytes_per_second or self.boxes < 2 or collective == BARRIER:
            return None
        return volume(collective, self.in_box) * size / self.bytes_per_second

    def sizes(self, collective, wanted):
        """What is really measured: blocks are equal, as meshcoll-bench rounds; sizes that become one are one."""
        if collective == BARRIER:
            return [0]
        parts = self.ranks if collective in WITH_BLOCKS else 1
        return sorted({max(size // ELEMENT // parts, 1) * parts * ELEMENT for size in wanted})


def volume(collective, in_box):
    """Multiple of n that some box's full-duplex NIC must carry one way; rank 0, in the first box, is the root.
    REFERENCE.md §5 (Chan et al., 2007) and, of boxes of unequal sizes, docs/benchmarks.md. The library's
    mc_lower_bound says the same: tests/cli/test_compare_grid.sh."""
    ranks, boxes = sum(in_box), len(in_box)
    if collective in ("bcast", "reduce"):
        return 1
    if collective == "allreduce":
        return 2 * (boxes - 1) / boxes
    if collective == "alltoall":        # n is one rank's
        return max(inside * (ranks - inside) for inside in in_box) / ranks
    if collective in ("scatter", "gather"):
        return (ranks - in_box[0]) / ranks
    return (ranks - min(in_box)) / ranks


def parse_ragged(text):
    """Ranks of each box: 4+3+1, and 2x8+4 for 8+8+4, as in meshcoll's mesh box=2x8+4."""
    in_box = []
    for part in text.split("+"):
        match = re.fullmatch(r"(?:(\d+)x)?(\d+)", part)
        if not match:
            return []
        in_box += [int(match[2])] * int(match[1] or 1)
    return in_box


def lab_cluster(text, rate):
    if "+" in text:
        in_box = parse_ragged(text)
        if min(in_box, default=0) < 1 or len(set(in_box)) < 2:
            raise UsageError(f"expected --meshes like 4+3+1 or 2x8+4, boxes that are not all alike; came '{text}'")
        return Cluster(text, in_box, rate, f"box={text}")
    try:
        extents = [int(n) for n in text.split("x")]
    except ValueError:
        extents = []
    if not 2 <= len(extents) <= 3 or min(extents) < 1 or math.prod(extents) < 2:
        raise UsageError(f"expected --meshes like 4x4 or 2x2x4 (boxes x ranks in a box), or 4+3+1; came '{text}'")
    mesh = ",".join(f"{name}={n}" for name, n in zip(DIM_NAMES[len(extents)], extents))
    return Cluster(text, [extents[-1]] * math.prod(extents[:-1]), rate, mesh)


def one_box(text, bind):
    if not text.isdigit() or int(text) < 2:
        raise UsageError(f"expected --one-box like 2,4,8 ranks, came '{text}'")
    return Cluster(f"one-box-{text}", [int(text)], ONE_BOX, bind=bind)


def clusters(settings):
    def split(text):
        return [item.strip() for item in text.split(",") if item.strip() and item != "none"]
    return ([lab_cluster(text, settings["rate"]) for text in split(settings["meshes"])] +
            [one_box(text, settings["bind"]) for text in split(settings["one_box"])])
