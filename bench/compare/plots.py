"""SVGs of a cluster, a panel per collective: time over the bound, and over the best peer, by size.

    plots.py DIR RESULTS.json...     prints a line for each: cluster, tab, file name
"""

import os
import sys

sys.dont_write_bytecode = True

import matplotlib       # noqa: E402

matplotlib.use("svg")
import matplotlib.pyplot as plt     # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

import grid             # noqa: E402
import stats            # noqa: E402
from contenders import DEFAULT, FORCED, MINE, OURS, OURS_PERSISTENT  # noqa: E402
from runs import Runs       # noqa: E402
from store import Store     # noqa: E402

# Okabe and Ito's colours, told apart by all eyes; markers and dashes tell them apart without colour.
STYLE = {OURS: ("#000000", "o", "-"), OURS_PERSISTENT: ("#777777", "o", ":"), "best forced": ("#009E73", "P", "--")}
COLOURS = ("#E69F00", "#56B4E9", "#D55E00", "#0072B2", "#CC79A7")
PEERS = [(colour, marker, dashes) for markers, dashes in (("s^Dvx", "--"), ("*<>hX", "-."))
         for colour, marker in zip(COLOURS, markers)]


HIGHEST = 10        # what is further off is drawn outside, not seen: it would squeeze the rest
TICKS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10)


def short_size(size):
    return grid.size_text(size).replace("iB", "").replace(" ", "")


def over_bound(cell):
    return cell.bound


def over_peer(cell):
    return cell.peers[cell.best_peer].median if cell.best_peer else None


def shown(cell):
    """Us, the peers at default settings, and the best forced one."""
    found = {name: times for name, times in cell.times.items()
             if times.median and (name in (OURS, OURS_PERSISTENT) or times.group == DEFAULT and name not in MINE)}
    best = cell.best(FORCED)
    return {**found, "best forced": cell.times[best]} if best else found


def style_of(name, names):
    peers = [one for one in names if one not in STYLE]
    return STYLE.get(name) or PEERS[peers.index(name) % len(PEERS)]


def draw_contender(axes, name, points, names):
    colour, marker, dashes = style_of(name, names)
    spread = [[(times.median - times.low) / base for _, times, base in points],
              [(times.high - times.median) / base for _, times, base in points]]
    mine = name == OURS
    axes.errorbar([size for size, _, _ in points], [times.median / base for _, times, base in points], yerr=spread,
                  color=colour, marker=marker, linestyle=dashes, markersize=4.5, linewidth=2 if mine else 1.2,
                  elinewidth=0.8, label=name, zorder=3 if mine else 2)
    return [times.median / base for _, times, base in points]


def draw_panel(axes, collective, cells, names, reference):
    """What was seen: every median over its reference."""
    seen = []
    for name in names:
        points = [(cell.size, shown(cell)[name], reference(cell)) for cell in cells if name in shown(cell)]
        seen += draw_contender(axes, name, points, names) if points else []
    axes.axhline(1, color="#777777", linewidth=0.9, zorder=1)
    axes.tick_params(axis="y", labelsize=8)
    axes.grid(True, color="#dddddd", linewidth=0.5)
    axes.set_title(collective, fontsize=10)
    return seen


def draw_scales(axes, cells, seen):
    """The same for all panels, which share them: ratios of one collective are read beside another's."""
    low, high = min(seen + [0.9]) * 0.85, min(max(seen) * 1.15, HIGHEST)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_ylim(low, max(high, 1.5))
    sizes = sorted({grid.column(cell.size, cell.asked) for cell in cells})
    axes.set_xticks(sizes, [short_size(size) for size in sizes])
    axes.set_yticks([tick for tick in TICKS if low <= tick <= max(high, 1.5)])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.minorticks_off()


def draw(title, over, cells, reference, path):
    """False when there is nothing to draw."""
    cells = [cell for cell in cells if cell.times and reference(cell)]
    names = sorted({name for cell in cells for name in shown(cell)}, key=lambda name: (name != OURS, name))
    collectives = list(dict.fromkeys(cell.collective for cell in cells))
    if not collectives:
        return False
    columns = min(4, len(collectives))
    rows = -(-len(collectives) // columns)
    height = 2.5 * rows + 1.2
    figure, panels = plt.subplots(rows, columns, figsize=(max(3.2 * columns, 7.5), height), squeeze=False,
                                  sharex=True, sharey=True)
    flat = [axes for row in panels for axes in row]
    for axes in flat[len(collectives):]:
        axes.set_visible(False)
    seen = []
    for axes, collective in zip(flat, collectives):
        its = [cell for cell in cells if cell.collective == collective]
        seen += draw_panel(axes, collective, its, names, reference)
    draw_scales(flat[0], cells, seen)
    for at, axes in enumerate(flat[:len(collectives)]):     # the last panel of each column has the sizes
        axes.tick_params(axis="x", labelbottom=at + columns >= len(collectives))
        plt.setp(axes.get_xticklabels(), fontsize=7, rotation=45, ha="right", rotation_mode="anchor")
    for row in panels:
        row[0].set_ylabel(f"time / {over}", fontsize=8)
    handles = {label: handle for axes in flat for handle, label in zip(*axes.get_legend_handles_labels())}
    figure.text(0.5, 1 - 0.12 / height, title, fontsize=11, ha="center", va="top")
    figure.legend(list(handles.values()), list(handles), loc="upper center", ncol=6, fontsize=8, frameon=False,
                  bbox_to_anchor=(0.5, 1 - 0.32 / height))
    figure.text(0.5, 0.06 / height, "bytes of the whole vector (alltoall: of one rank's send buffer); bars: the quartiles "
                f"of the turns; lower is better; above {HIGHEST} not shown", fontsize=7, ha="center",
                va="bottom")
    figure.tight_layout(rect=(0, 0.22 / height, 1, 1 - 0.65 / height))
    figure.savefig(path, format="svg")
    plt.close(figure)
    return True


def draw_cluster(runs, cluster, out):
    """The files drawn. Over the bound only where it bounds anything: above the shaper's burst."""
    cells = [cell for cell in runs.cells(cluster) if cell.size]      # barriers have no place among sizes
    large = [cell for cell in cells if cell.size > stats.BURST]
    wanted = [("bound", "the lower bound", "bound", large, over_bound),
              ("peer", "the best peer's", "best peer's", cells, over_peer)]
    for kind, what, over, drawn, reference in wanted:
        name = f"{cluster.key}-{kind}.svg"
        title = f"{cluster.title()}: time over {what}"
        if draw(title, over, drawn, reference, os.path.join(out, name)):
            yield name


def main():
    out, runs = sys.argv[1], Runs([Store.load(path) for path in sys.argv[2:]])
    plt.rcParams["svg.fonttype"] = "none"       # text stays text
    plt.rcParams["svg.hashsalt"] = "meshcoll"   # the same results give the same file
    for cluster in runs.clusters:
        for name in draw_cluster(runs, cluster, out):
            print(f"{cluster.key}\t{name}")


if __name__ == "__main__":
    main()
