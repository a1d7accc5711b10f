#!/usr/bin/env python3
"""Draws what train.py --out wrote: losses on top of each other, time per step, and one step's timeline of each run.

  draw.py gloo.json meshcoll.json -o training.svg -o training.png
"""

import argparse
import json
import pathlib
import statistics
import sys

# Okabe and Ito's colours, which the colour-blind tell apart
RUNS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7"]
KINDS = {"forward": "#a6a6a6", "backward": "#595959", "optimizer": "#e69f00", "bucket": None}
WARM_UP = 2  # steps that make connections and plans


def read(path):
    try:
        run = json.loads(pathlib.Path(path).read_text())
        run["label"] = f"{run['backend']}, {run['parallel']}"
        return run
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"draw.py: {path}: expected the output of train.py --out; {error}")


def draw_losses(axes, runs):
    """Equal curves hide each other: each one is thinner than the one below it."""
    for i, run in enumerate(runs):
        axes.plot(range(1, len(run["losses"]) + 1), run["losses"], color=RUNS[i], label=run["label"],
                  linewidth=1.2 + 2.5 * (len(runs) - 1 - i))
    axes.set(title="Loss", xlabel="step", ylabel="mean of the ranks")
    axes.legend(frameon=False)


def draw_times(axes, runs):
    for i, run in enumerate(runs):
        times = run["seconds"][WARM_UP:] or run["seconds"]
        usual = statistics.median(times)
        axes.plot(range(len(run["seconds"]) - len(times) + 1, len(run["seconds"]) + 1), times, ".", color=RUNS[i],
                  markersize=4, alpha=0.6)
        axes.axhline(usual, color=RUNS[i], linewidth=1.5, label=f"{run['label']}: median {usual:.2f} s")
    axes.set(title="Time per step", xlabel="step", ylabel="seconds")
    top = max(statistics.quantiles(run["seconds"][WARM_UP:] or run["seconds"], n=20)[-1] for run in runs)
    axes.set_ylim(0, 1.35 * top)  # a few slow steps do not flatten the rest
    axes.legend(frameon=False, loc="upper right")


def lanes(spans):
    """The rows of a timeline: computation, then the buckets in the order in which they begin."""
    buckets = sorted((s for s in spans if s["kind"] == "bucket"), key=lambda s: s["begin"])
    return ["computation"] + [s["name"] for s in buckets]


def draw_timeline(axes, run, colour, end):
    rows = lanes(run["timeline"])
    for span in run["timeline"]:
        is_bucket = span["kind"] == "bucket"
        row = rows.index(span["name"]) if is_bucket else 0
        length = span["end"] - span["begin"]
        axes.barh(row, length, left=span["begin"], height=0.7, color=colour if is_bucket else KINDS[span["kind"]],
                  edgecolor="white", linewidth=0.8)
        label = span["name"].replace("block ", "") or span["kind"]
        if not is_bucket and length > 0.012 * (len(label) + 1) * end:
            axes.text(span["begin"] + length / 2, row, label, ha="center", va="center", fontsize=7,
                      color="white" if span["kind"] == "backward" else "black")
    last = max(span["end"] for span in run["timeline"])
    axes.axvline(last, color="black", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set(title=f"One step over {run['backend']}: {last:.2f} s", xlim=(0, end))
    axes.tick_params(axis="y", length=0)


def draw(runs, outputs):
    try:
        import matplotlib
    except ImportError:
        sys.exit(f"draw.py: {sys.executable} has no matplotlib: apt-get install python3-matplotlib, and run it by "
                 "/usr/bin/python3, or pip install matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    pyplot.rcParams.update({"svg.hashsalt": "meshcoll", "axes.spines.top": False, "axes.spines.right": False,
                            "axes.titlesize": 11, "axes.titlelocation": "left"})
    timed = [(run, RUNS[i]) for i, run in enumerate(runs) if run["timeline"]]
    heights = [3.2] + [0.9 + 0.24 * len(lanes(run["timeline"])) for run, _ in timed]
    figure = pyplot.figure(figsize=(10, sum(heights) + 0.4), layout="constrained")
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    for column, draw_one in enumerate((draw_losses, draw_times)):
        axes = figure.add_subplot(grid[0, column])
        draw_one(axes, runs)
        axes.xaxis.get_major_locator().set_params(integer=True)
    end = 1.02 * max((span["end"] for run, _ in timed for span in run["timeline"]), default=1)
    for row, (run, colour) in enumerate(timed, 1):
        axes = figure.add_subplot(grid[row, :])
        draw_timeline(axes, run, colour, end)
        if row == 1:
            marks = [Patch(color=c, label=kind) for kind, c in KINDS.items() if c]
            marks += [Patch(color=c, label=f"allreduce over {r['backend']}") for r, c in timed]
            axes.legend(handles=marks, frameon=False, ncols=len(marks), fontsize=8, loc="lower right",
                        bbox_to_anchor=(1, 1), borderaxespad=0.2)
    if timed:
        axes.set_xlabel("seconds from the step's begin, on rank 0")
    for path in outputs:
        figure.savefig(path, dpi=130, metadata={"Date": None} if path.endswith(".svg") else None)


def main():
    parser = argparse.ArgumentParser(description="Draws what train.py --out wrote.")
    parser.add_argument("runs", nargs="+", metavar="RUN.json")
    parser.add_argument("-o", action="append", required=True, metavar="PICTURE", help="SVG, PNG, …; may be repeated")
    args = parser.parse_args()
    if len(args.runs) > len(RUNS):
        parser.error(f"at most {len(RUNS)} runs, got {len(args.runs)}")
    draw([read(path) for path in args.runs], args.o)


if __name__ == "__main__":
    main()
