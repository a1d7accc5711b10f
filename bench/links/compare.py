#!/usr/bin/env python3
"""What the library takes on several links of one mesh, timed in turns in one run.

    bench/links/compare.py --mesh box=4,gpu=4 --run "bench/lab/lab run -n 16 --" generic="generic" \\
        calibrated="box=alpha:100us;…" tuned="$(…)"

For each collective and size `meshcoll plan` tells which strategy the library takes on which links, and meshcoll-bench runs
those that differ in turns. Prints a row for each NAME but the last: geometric means over the collectives of its time
divided by the last one's, and its worst cells."""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile

COLLECTIVES = "bcast reduce scatter gather allgather reduce_scatter allreduce alltoall".split()


def planned(options, collective, size, links):
    """The text of the strategy that the library takes."""
    out = subprocess.run([f"{options.build}/meshcoll", "plan", collective, "--mesh", options.mesh, "--bytes", size,
                          "--links", links, "--top", "1", "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(out)["strategies"][0]["strategy"]


def timed(options, collective, size, strategies):
    """Seconds by strategy: medians over rounds in turns."""
    with tempfile.NamedTemporaryFile(suffix=".json", delete=False) as file:
        path = file.name
    os.chmod(path, 0o666)
    command = shlex.split(options.run) + [f"{options.build}/meshcoll-bench", "--mesh", options.mesh, "--collective",
                                          collective, "--sizes", size, "--strategies", "\n".join(sorted(strategies)),
                                          "-c", "0", "-n", "40", "--max-time", str(options.seconds), "--json", path]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "MESHCOLL_CALIBRATE": "off"})
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    os.unlink(path)
    return {row["strategy"]: row["median_s"] for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", required=True)
    parser.add_argument("--run", required=True, help="what starts the ranks")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--sizes", default="64,4K,64K,1M")
    parser.add_argument("--collectives", default=",".join(COLLECTIVES))
    parser.add_argument("--seconds", type=float, default=0.3, help="of a strategy in a cell, at most")
    parser.add_argument("links", nargs="+", metavar="NAME=LINKS")
    options = parser.parse_args()
    links = dict(one.split("=", 1) for one in options.links)
    names, ratios = list(links), {}
    for size in options.sizes.split(","):
        for collective in options.collectives.split(","):
            takes = {name: planned(options, collective, size, links[name]) for name in names}
            times = timed(options, collective, size, set(takes.values())) if len(set(takes.values())) > 1 else None
            for name in names:
                ratio = times[takes[name]] / times[takes[names[-1]]] if times else 1
                ratios.setdefault((name, size), []).append((ratio, collective))
            print(collective, size, *(f"{name} {times[takes[name]] * 1e6:.0f} us ({takes[name]})" if times
                                      else f"{name} the same" for name in names), sep="; ", file=sys.stderr, flush=True)
    print("| links |", " | ".join(options.sizes.split(",")), "| all |")
    print("|---|" + "---|" * (len(options.sizes.split(",")) + 1))
    for name in names[:-1]:
        cells, everything = [], []
        for size in options.sizes.split(","):
            of_size = ratios[name, size]
            everything += of_size
            cells.append(summary(of_size))
        print(f"| {name} |", " | ".join(cells), f"| {summary(everything)} |")


def summary(cells):
    """The geometric mean, and the worst."""
    mean = math.exp(sum(math.log(ratio) for ratio, _ in cells) / len(cells))
    worst = max(cells)
    return f"{mean:.2f} ({worst[1]} {worst[0]:.2f})"


if __name__ == "__main__":
    main()
