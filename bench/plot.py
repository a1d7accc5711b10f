#!/usr/bin/env python3
"""Draws what meshcoll-bench measured: time over size, one colour per strategy.

Measured medians are points with whiskers from the fastest to the 99th percentile, the model's
prediction is a thin line of the same colour, the lower bound a dashed grey one.

  bench/plot.py out/bcast.json -o out/bcast.svg -o out/bcast.png
  bench/plot.py run.csv --only option1,option3,mpi -o two.svg
"""

import argparse
import csv
import json
import math
import os
import sys
import textwrap

# Okabe and Ito's colours, which the colour-blind tell apart; each has a marker of its own as well.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b3294", "#8c564b",
           "#b2182b", "#4d4d4d"]
MARKERS = "oD^v<>pd8"
MPI_COLOUR, BOUND_COLOUR = "#222222", "#8a8a8a"
LABEL_WIDTH = 38


class PlotError(Exception):
    pass


def read_json(path):
    with open(path, encoding="utf-8") as file:
        whole = json.load(file)
    return whole["meta"], whole["rows"]


def read_csv(path):
    meta, lines = {}, []
    with open(path, encoding="utf-8", newline="") as file:
        for line in file:
            if line.startswith("# ") and not lines:
                key, _, value = line[2:].partition(": ")
                meta[key] = json.loads(value)
            else:
                lines.append(line)
    return meta, [{key: number(value) for key, value in row.items()} for row in csv.DictReader(lines)]


def number(text):
    if text == "":
        return None
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text


def read(path):
    try:
        meta, rows = read_csv(path) if path.endswith(".csv") else read_json(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PlotError(f"{path}: expected JSON or CSV of meshcoll-bench; {error}") from None
    if not rows:
        raise PlotError(f"{path}: there are no rows to draw; did the run end early?")
    return meta, rows


def by_label(rows, only):
    """Label -> its rows, by size; in the order of the file."""
    series = {}
    for row in rows:
        if only is None or row["label"] in only:
            series.setdefault(row["label"], []).append(row)
    if not series:
        have = ", ".join(dict.fromkeys(row["label"] for row in rows))
        raise PlotError(f"--only names none of the strategies measured, which are: {have}")
    for of_label in series.values():
        of_label.sort(key=lambda row: row["bytes"])
    return series


def print_bytes(value, _position=None):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} B"


def print_time(seconds, _position=None):
    for unit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit * 0.9999:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def wrap(text):
    return "\n".join(textwrap.wrap(text, LABEL_WIDTH, break_long_words=False,
                                   break_on_hyphens=False))


def describe(label, rows):
    """The label in the legend, with the strategy it stands for."""
    texts = list(dict.fromkeys(row["strategy"] for row in rows))
    if label in texts:
        return wrap(label)
    if len(texts) > 1:
        return f"{label} ({len(texts)} strategies, by size)"
    return wrap(f"{label}: {texts[0]}")


def draw_series(axes, label, rows, colour, marker, nudge):
    # Points of one size lie side by side, so that whiskers do not hide each other.
    sizes = [row["bytes"] * nudge for row in rows]
    times = [row["median_s"] for row in rows]
    below = [row["median_s"] - row["min_s"] for row in rows]
    above = [row["p99_s"] - row["median_s"] for row in rows]
    axes.errorbar(sizes, times, yerr=[below, above], fmt="none", ecolor=colour, elinewidth=1.1,
                  capsize=2.5, capthick=1.1, alpha=0.75, zorder=3)
    axes.plot(sizes, times, linestyle="none", marker=marker, markersize=6.5, color=colour,
              markeredgecolor="white", markeredgewidth=0.7, label=describe(label, rows), zorder=4)
    predicted = [(row["bytes"], row["predicted_s"]) for row in rows if row["predicted_s"]]
    if predicted:
        axes.plot(*zip(*predicted), color=colour, linewidth=1.1, alpha=0.8, zorder=2)


def draw_bound(axes, rows):
    bound = sorted({(row["bytes"], row["bound_s"]) for row in rows if row["bound_s"]})
    if bound:
        axes.plot(*zip(*bound), color=BOUND_COLOUR, linewidth=1.6, linestyle=(0, (5, 3)), zorder=1)


def set_scales(axes, rows, ticker):
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({row["bytes"] for row in rows})
    every = math.ceil(len(sizes) / 9)
    axes.xaxis.set_major_locator(ticker.FixedLocator(sizes[::every]))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(print_bytes))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(print_time))
    low, high = axes.get_ylim()
    if high / low < 30:     # less than two decades: a 1-2-5 grid
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    if len(sizes) == 1:     # one size: room on both sides
        axes.set_xlim(sizes[0] / 2, sizes[0] * 2)


def set_frame(axes):
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#666666")
    axes.tick_params(color="#666666")
    axes.grid(True, which="major", color="#e4e4e4", linewidth=0.8)
    axes.grid(True, which="minor", axis="y", color="#f2f2f2", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("whole vector")
    axes.set_ylabel("time, slowest rank")


def set_title(axes, meta):
    def get(key, otherwise="?"):
        return meta.get(key) if meta.get(key) is not None else otherwise

    what = f"{get('collective')} {get('datatype')}"
    if meta.get("op"):
        what += f" {meta['op']}"
    axes.set_title(f"{what} on {get('mesh')}", loc="left", fontsize=14, fontweight="bold", pad=26)
    links = f"network {meta['rate']}" if meta.get("rate") else get("links")
    if len(links) > 60:
        links = links[:59] + "…"
    below = f"{str(get('date'))[:10]}  ·  {get('ranks')} ranks  ·  {links}  ·  {get('cpu')}"
    axes.annotate(below, (0, 1), xycoords="axes fraction", xytext=(0, 9), fontsize=9.5,
                  textcoords="offset points", color="#555555")


def add_legends(figure, axes, lines):
    """Strategies in the order of their points at the largest size, then how to read the rest."""
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda i: -handles[i].get_ydata()[-1])
    strategies = axes.legend([handles[i] for i in order], [labels[i] for i in order],
                             loc="upper left", bbox_to_anchor=(1.02, 1.02), frameon=False,
                             title="measured, slowest first", alignment="left",
                             handletextpad=0.4, labelspacing=0.7, fontsize=10)
    strategies.get_title().set_fontweight("bold")
    axes.add_artist(strategies)
    figure.canvas.draw()
    bottom = strategies.get_window_extent().transformed(axes.transAxes.inverted()).y0
    how = [lines.Line2D([], [], color="#555555", linewidth=1.1, label="predicted, in its colour"),
           lines.Line2D([], [], color=BOUND_COLOUR, linewidth=1.6, linestyle=(0, (5, 3)),
                        label="lower bound"),
           lines.Line2D([], [], color="#555555", linewidth=1.1, marker="|", markersize=8,
                        linestyle="none", label="fastest to 99th percentile")]
    reading = axes.legend(handles=how, loc="upper left", bbox_to_anchor=(1.02, bottom - 0.02),
                          frameon=False, alignment="left", handletextpad=0.8, fontsize=10)
    return [strategies, reading]


def style_of(label, index):
    if label == "mpi":
        return MPI_COLOUR, "s"
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]


def draw(meta, rows, only, title):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import lines, pyplot, ticker

    pyplot.rcParams.update({"font.family": "sans-serif", "font.size": 11, "svg.fonttype": "none",
                            "font.sans-serif": ["DejaVu Sans", "Arial", "sans-serif"]})
    series = by_label(rows, only)
    drawn = [row for of_label in series.values() for row in of_label]
    figure, axes = pyplot.subplots(figsize=(9, 5.6))
    for index, (label, of_label) in enumerate(series.items()):
        nudge = 2 ** (0.11 * (index - (len(series) - 1) / 2) * min(1, 8 / len(series)))
        draw_series(axes, label, of_label, *style_of(label, index), nudge)
    draw_bound(axes, drawn)
    set_scales(axes, drawn, ticker)
    set_frame(axes)
    set_title(axes, meta)
    if title:
        axes.set_title(title, loc="left", fontsize=14, fontweight="bold", pad=26)
    return figure, add_legends(figure, axes, lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", metavar="FILE", help="JSON or CSV of meshcoll-bench")
    parser.add_argument("-o", "--output", action="append", metavar="FILE",
                        help="what to write, .svg or .png; may be given more than once "
                             "(default: FILE with .svg)")
    parser.add_argument("--only", metavar="LABELS", help="these strategies only, with commas")
    parser.add_argument("--title", help="in place of the collective and the mesh")
    args = parser.parse_args()
    try:
        import matplotlib   # noqa: F401
    except ImportError:
        print(f"plot.py: {sys.executable} has no matplotlib: apt-get install python3-matplotlib, "
              "and run it with /usr/bin/python3", file=sys.stderr)
        return 3
    try:
        only = args.only.split(",") if args.only else None
        figure, legends = draw(*read(args.numbers), only, args.title)
        for path in args.output or [os.path.splitext(args.numbers)[0] + ".svg"]:
            figure.savefig(path, dpi=160, bbox_inches="tight", facecolor="white",
                           bbox_extra_artists=legends)
    except (PlotError, OSError, ValueError) as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
