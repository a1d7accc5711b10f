#!/usr/bin/env python3
"""What scripts/demo.sh shows of meshcoll-bench's run.

usage: meshcoll-bench … | demo-show.py progress SIZES     one line that says how far it is, and the time to go
       demo-show.py table bcast.json                      a table in ms, and one sentence
"""

import json
import sys
import time

SHOWN = 4   # sizes in the table


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} B"


def progress(sizes):
    """Rows come when their size is done. What a size takes grows with its bytes."""
    weights = [4 + 10 * size / (1 << 20) for size in sizes]
    begin, done, tail = time.monotonic(), 0, []
    terminal = sys.stdout.isatty()
    for line in sys.stdin:
        tail = (tail + [line])[-12:]
        words = line.split()
        if not words or not words[0].isdigit():
            continue
        now = sum(size <= int(words[0]) for size in sizes)
        if now == done:
            continue
        done = now
        took = time.monotonic() - begin
        left = took * sum(weights[done:]) / sum(weights[:done])
        said = f"{done} of {len(sizes)} sizes, {took:.0f} s" + (f", about {left:.0f} s to go" if done < len(sizes) else "")
        print(f"\r{said:60}" if terminal else said, end="" if terminal else "\n", flush=True)
    if terminal:
        print()
    if done < len(sizes):
        sys.stdout.writelines(tail)
        sys.exit("demo: meshcoll-bench ended before all sizes were measured")


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g}" if seconds < 0.1 else f"{seconds * 1e3:.0f}"


def cell(row):
    return milliseconds(row["median_s"]) if row["predicted_s"] is None else \
        f"{milliseconds(row['predicted_s'])} -> {milliseconds(row['median_s'])}"


def table(path):
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    sizes = sorted({row["bytes"] for row in rows})
    shown = [sizes[round(i * (len(sizes) - 1) / (SHOWN - 1))] for i in range(SHOWN)]
    labels = list(dict.fromkeys(row["label"] for row in rows))
    at = {(row["label"], row["bytes"]): row for row in rows}
    lines = [["predicted -> measured, ms", *map(size_text, shown), "times the bound"]]
    for label in labels:
        last = at[label, shown[-1]]
        lines.append([label, *(cell(at[label, size]) for size in shown),
                      f"{last['ratio']:.2f}" if last["ratio"] else "-"])
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    for line in lines:
        print("  ".join([line[0].ljust(widths[0])] + [word.rjust(width) for word, width in zip(line[1:], widths[1:])]))
    wrong = sum(row["wrong"] for row in rows)
    best, other = at["best", shown[-1]], at.get(("mpi", shown[-1]))
    over = best["ratio"]
    print(f"\nThe planner's choice for {size_text(shown[-1])}, {best['strategy']}, took {milliseconds(best['median_s'])} ms: "
          + ("its ranks share cores, of which no bound is known" if over is None else
             f"{over:.2f} times the bound" if over >= 1 else
             f"less than its bound, as the links are {1 / over - 1:.0%} faster than they were measured")
          + (f", and {other['median_s'] / best['median_s']:.1f} times as fast as MPI_Bcast." if other else "."))
    print("Every element of every result was compared, and " + ("all were right." if not wrong else f"{wrong} WERE WRONG."))


if sys.argv[1] == "progress":
    progress([int(word) for word in sys.argv[2].split(",")])
else:
    table(sys.argv[2])
