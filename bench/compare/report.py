"""The report in markdown, from the results alone."""

import os
import statistics
import subprocess
import sys

import grid
import stats
from contenders import HERE, OURS, FORCED, PERSISTENT
import overview
from runs import Runs
from text import count_text, percent_text, ratio_text, spread_text, table, time_text

METHOD = """\
One program for all libraries (bench/compare/peer.c), started anew in every turn; a turn measures all its cells shortly,
and the next contender follows. In a cell the first run is checked, element by element; up to {iterations} timed ones
follow, fewer (but 1) when they have taken {cell_seconds} s. Their median is the turn's time, the median over up to
{turns} turns the cell's; in brackets are the lower and the upper quartile of the turns. All ranks wait at one gate
before an operation: its time is from the moment they are let go until the last of them is done. float32, sum, root 0,
out of place but for bcast, which has one buffer everywhere; sizes are of the whole vector (alltoall: of one rank's
send buffer), rounded so that blocks are equal. All programs' buffers are in {pages} pages.

meshcoll runs as a user gets it: not tuned, links found at creation, its files of earlier turns kept. Up to 200 calls (or
what begins within 1 s; of peers 0.3 s) come before those that are timed; *first* are the first 10 calls of a job that
finds no files.
*Tuned*: `meshcoll tune` ran for {tune_seconds} s on each mesh; persistent requests are tuned.

*At default settings*: a peer with one setting for all collectives and sizes. *Forced*: an algorithm named for each
collective (the grid, docs/benchmarks.md); the fastest of the grid in the screening gets turns, where it is within {near}
times the best at default settings. *Persistent*: the same for MPI_…_init. A peer at default settings that the screening
finds beyond {prune} times the best one gets no turns (cheap cells: beyond twice that).

*Bound* is what a box's NIC must carry, at the stated rate: n for bcast and reduce, 2(B-1)/B n for allreduce with B
boxes; of the box that must carry most, with b of all N ranks in it, (N-b)/N n for allgather and reduce_scatter,
of the root's box for scatter and gather, and b(N-b)/N n for alltoall. The lab's shaper lets some 64 KiB pass above
the rate: at sizes up to that the bound bounds nothing, and a little above ratios below 1 are possible.

*Best peer* is the fastest of all peers in the cell, whichever it is. *Regret* is the choice's time over that of the
fastest of all strategies tried, less 1: the planner's {top} cheapest and the named ones priced within {plausible} times
the cheapest. *Model* is predicted over measured, of persistent requests.

More: docs/benchmarks.md."""
SAID = ("iterations", "cell_seconds", "turns", "pages", "tune_seconds", "near", "prune", "top", "plausible")


# --- the parts ---------------------------------------------------------------------------------------------------

def head(runs):
    yield "# meshcoll compared with Open MPI, MPICH and Intel MPI"
    yield ""
    if any(runs.each("quick")):
        yield "**A quick run: few sizes, short turns. It shows that the comparison works, not how fast anything is.**"
        yield ""
    if len(runs.stores) > 1:
        yield from pieces(runs)
        return
    store = runs.stores[0]
    m = store.data["machine"]
    yield from table(["", ""], [
        ["date", f"{m['date']} to {runs.end_of(store)}"],
        ["how it ended", ended(store)],
        ["command", f"`{m['command']}`"],
        ["load before", load_text(m) + (": **the machine was busy with other work**" if busy(m) else "")],
        ["load after", f"{m['load_after']:.2f}" if "load_after" in m else "-"],
        ["meshcoll", f"{m['meshcoll']}, commit {m['commit']}, {m['compiler']}"],
        *where(runs),
    ])


def where(runs):
    """Rows of the machine and the libraries; of several runs, all that were there."""
    yield "machine", " or ".join(Runs.each_of([machine_text(store.data["machine"])] for store in runs.stores))
    yield "huge pages", " or ".join(Runs.each_of([f"{store.data['settings']['pages']} for all buffers (system: "
                                                  f"{store.data['machine'].get('huge_pages')})"] for store in runs.stores))
    yield "compared", "<br>".join(Runs.each_of(list(store.data["contenders"].get("versions", [])) for store in runs.stores))
    for store in runs.stores:
        at = f" ({runs.label(store)})" if len(runs.stores) > 1 else ""
        yield from ((f"{name}: missing{at}", why) for name, why in store.data.get("missing", {}).items())


def machine_text(m):
    return f"{m['host']}: {m['cpu']}, {m['cores']} cores, {m['memory_bytes'] / 2**30:.0f} GiB, {m['system']}"


def load_text(m):
    return f"{m['load_before']:.2f}"


def busy(m):
    return m["load_before"] > m["cores"] / 2


def ended(store):
    return store.data["events"][-1].partition(" ")[2] if store.data["events"] else "-"


def pieces(runs):
    """What a report of several runs is made of."""
    yield f"One report of {len(runs.stores)} runs. Where two have a cell, the times of the one named first count, " \
          "and the regret of the first that has one; who is compared took turns within a run."
    commits = runs.each("commit", "machine")
    yield f"**Of different commits: {', '.join(commits)}.**" if len(commits) > 1 else f"All of commit {commits[0]}."
    yield ""
    yield from table(["run", "from", "to", "commit", "load before", "how it ended", "command"],
                     [[f"`{runs.label(store)}`", m["date"], runs.end_of(store), m["commit"],
                       load_text(m) + (" **busy**" if busy(m) else ""), ended(store), f"`{m['command']}`"]
                      for store in runs.stores for m in [store.data["machine"]]])
    yield from table(["", ""], list(where(runs)))


def mesh_part(runs, cluster, cells, drawn):
    yield f"## {cluster.title()}"
    yield ""
    for store in runs.of(cluster):
        if "links" not in store.data["tunes"].get(cluster.key, {}):
            label = f" ({runs.label(store)})" if len(runs.stores) > 1 else ""
            yield f"Not measured{label}: {why_not(store, cluster)}."
            yield ""
    yield from crowding(cluster, runs.stores[0].data["machine"]["cores"])
    if not any(cell.times for cell in cells):
        return
    yield from overview.glances(cells)
    for plot in drawn:
        yield f"![{cluster.title()}]({plot})"
        yield ""
    yield "Medians, and in brackets the quartiles of the turns:"
    yield ""
    yield from table(["collective", "size", "meshcoll", "/ bound", "best peer at default settings", "ratio", "best forced",
                      "ratio", "persistent", "ratio", "late", "model", "strategy"], map(cell_row, cells))
    yield "Peers at default settings, medians; the best in bold, in brackets what the screening left out:"
    yield ""
    yield from contenders_table(cells)
    yield from tried_part(cells)


def why_not(store, cluster):
    """What was told of the cluster last, or how the run ended."""
    failed = store.data["tunes"].get(cluster.key, {}).get("failed")
    told = [event.partition(f" {cluster.key}: ")[2] for event in store.data["events"] if f" {cluster.key}: " in event]
    return failed or (told or [store.data["events"][-1].partition(" ")[2]])[-1]


def crowding(cluster, cores):
    if cluster.ranks > cores:
        yield f"{cluster.ranks} ranks on {cores} cores: for small messages, who waits how decides, not the " \
              "algorithm. All libraries yield while they wait (docs/benchmarks.md)."
        yield ""


def cell_row(cell):
    def peer(name):
        return f"{name} {spread_text(cell.peers[name])}" if name else "-"
    ours = spread_text(cell.ours) if cell.ours.median else failure(cell.ours)
    strategy, late = cell.strategy(), cell.late_text().strip(" []").replace("late: ", "")
    return [cell.collective, grid.size_text(cell.size), ours, ratio_text(cell.over_bound()), peer(cell.best_peer),
            ratio_text(cell.over_peer()), peer(cell.best(FORCED)), ratio_text(cell.over(cell.ours, FORCED)),
            spread_text(cell.persistent), ratio_text(cell.over_persistent()), late or "-", ratio_text(cell.model()),
            f"`{strategy}`" if strategy else "-"]


def failure(times):
    return f"failed: {times.failed[-1]['failed']}" if times.failed else "not measured"


def contenders_table(cells):
    names = list(dict.fromkeys(name for cell in cells for name, times in cell.times.items()
                               if times.group not in (FORCED, PERSISTENT)))

    def show(cell, name):
        times = cell.times.get(name)
        if times is None:
            return "not measured"
        if times.median is None:
            return "failed"
        text = time_text(times.median)
        return f"**{text}**" if name == cell.best_peer else text if times.turns else f"({text})"
    yield from table(["collective", "size", "bound", *names],
                     [[cell.collective, grid.size_text(cell.size), time_text(cell.bound),
                       *(show(cell, name) for name in names)] for cell in cells])


def tried_part(cells):
    """Where another strategy was faster than the choice by more than noise explains."""
    rows = [[cell.name(), percent_text(cell.regret["regret"]), f"`{cell.regret['choice']}`",
             f"`{cell.regret['best']}`", starts_text(cell.regret), len(cell.regret["tried"])]
            for cell in cells if cell.regret.get("regret", 0) > 0.02]
    tried = [len(cell.regret["tried"]) for cell in cells if "tried" in cell.regret]
    left = sum(len(cell.regret.get("left_out", [])) for cell in cells)
    if tried:
        yield f"Regret: {statistics.median(tried):.0f} strategies tried in the median cell; {left} named ones, over " \
              "all cells, were priced too high to be tried. Cells above 2 %:"
        yield ""
        if rows:
            yield from table(["cell", "regret", "choice", "fastest", "ahead in", "tried"], rows)
        else:
            yield "None."
            yield ""


def starts_text(regret):
    return f"{regret['ahead']} of {regret['starts']} starts" if "starts" in regret else "1 of 1 starts"


def failures(runs, measured):
    """Rows of what has no time or a wrong result, and why."""
    rows = []
    for store in runs.stores:
        run = f" ({runs.label(store)})" if len(runs.stores) > 1 else ""
        rows += [[row[0] + run, *row[1:]] for row in failures_of(store, measured)]
    return rows


def failures_of(store, measured):
    keys = {one.key for one in grid.clusters(store.data["settings"])}
    rows = [row for cluster, cells in measured if cluster.key in keys for row in never_begun(store, cluster, cells)]
    rows += failed_cells(store)
    for key, regret in store.data["regrets"].items():
        cluster, collective, size = key.split(" ")
        name = f"{collective} {grid.size_text(int(size))}"
        if "failed" in regret or "trouble" in regret:
            rows.append([cluster, "regret", name, regret.get("failed") or regret["trouble"]])
        rows += [[cluster, f"regret, `{row['strategy']}`", name, f"{row['wrong']} wrong elements"]
                 for row in regret.get("tried", []) + regret.get("final", []) if row["wrong"]]
    return rows


def failed_cells(store):
    """A row for each contender and reason."""
    found = {}
    for c in store.data["cells"]:
        if "failed" in c:
            found.setdefault((c["cluster"], c["contender"], c["failed"]), []).append(c)
    for (cluster, contender, why), cells in found.items():
        what = dict.fromkeys(f"{c['collective']} {grid.size_text(c['bytes'])}" for c in cells)
        yield [cluster, contender, ", ".join(what), why]


def failures_part(rows):
    yield "## What failed or was left out"
    yield ""
    if rows:
        yield from table(["cluster", "who", "what", "why"], rows)
    else:
        yield "Nothing: every cell was measured and every result was right."
        yield ""


def never_begun(store, cluster, joined):
    """A record says why a cell failed; those without one were not come to, by this run or another of the report."""
    cells = stats.cells_of(store, cluster)
    elsewhere = {(cell.collective, cell.size): cell for cell in joined}
    def anywhere(cell):
        return elsewhere.get((cell.collective, cell.size), cell)
    lost = [cell for cell in cells if not anywhere(cell).times]
    if lost:
        yield [cluster.key, "all", count_text(len(lost)), why_not(store, cluster)]
    turns = {c["turn"] for cell in cells for c in cell.ours.cells + cell.ours.failed if c["turn"]}
    missing = set(range(1, store.data["settings"]["turns"] + 1)) - turns
    if missing and not lost:
        yield [cluster.key, OURS, "turns " + ", ".join(map(str, sorted(missing))), why_not(store, cluster)]
    left = [cell for cell in cells if anywhere(cell).times and not anywhere(cell).regret]
    if store.data["settings"]["regret"] and left:
        yield [cluster.key, "regret", count_text(len(left)), why_not(store, cluster)]


def commands(runs):
    yield "## Flags"
    yield ""
    yield "Caller's settings of MESHCOLL, UCX, Open MPI, MPICH, Intel MPI and libfabric are not passed on. In the lab " \
          "`lab run` adds its own flags, `lab run --dry-run …` shows them: for Open MPI mpi_yield_when_idle, ob1 over TCP " \
          "and vader (5: sm) or UCX; for all UCX_TLS=self,sm,tcp and UCX_NET_DEVICES=eth0."
    yield ""
    said = {}
    for store in reversed(runs.stores):
        for cluster, all_of in store.data["contenders"].get("commands", {}).items():
            said[cluster] = {**said.get(cluster, {}), **all_of}
    for cluster, all_of in said.items():
        yield from table([cluster, "", "command"],
                         [[name, one["what"], f"`{one['command']}`"]
                          for name, one in all_of.items()])


def links_part(runs):
    """Behind all else: a box's links at all sizes are thousands of letters."""
    yield "## Links"
    yield ""
    for cluster in runs.clusters:
        for store in runs.of(cluster):
            tuned = store.data["tunes"].get(cluster.key, {})
            label = f" ({runs.label(store)})" if len(runs.stores) > 1 else ""
            if "links" in tuned:
                yield f"- {cluster.key}, mesh `{tuned['mesh']}`, links as tuned{label}: `{tuned['links']}`"
    yield ""


def plots(runs, out, say):
    """Cluster key → files; matplotlib may be in another python3 than ours."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0:
            done = subprocess.run([python, os.path.join(HERE, "plots.py"), out,
                                   *(store.path for store in runs.stores)], capture_output=True,
                                  text=True, check=False)
            if done.returncode == 0:
                pairs = [line.split("\t") for line in done.stdout.splitlines()]
                return {key: [name for other, name in pairs if other == key] for key, _ in pairs}
            say(f"no plots: {done.stderr.strip().splitlines()[-1:]}")
            return {}
    say("no plots: no python3 here has matplotlib (apt-get install python3-matplotlib)")
    return {}


def write_lines(out, name, lines):
    path = os.path.join(out, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    return path


def write(runs, out, say):
    """report.md, tables.md and the plots; exit status 0, or 1 where something could not be measured. That a peer's forced
    algorithm or persistent request fails is a result."""
    measured = [(cluster, runs.cells(cluster)) for cluster in runs.clusters]
    drawn = plots(runs, out, say)
    lines = [*head(runs), "## Targets", "", *overview.targets_part(measured)]
    lines += overview.all_part(measured)
    for cluster, cells in measured:
        lines += mesh_part(runs, cluster, cells, drawn.get(cluster.key, []))
    lost = failures(runs, measured)
    method = METHOD.format(**{key: runs.said(key) for key in SAID})
    lines += list(failures_part(lost)) + list(commands(runs)) + ["## Method", "", method, ""]
    lines += links_part(runs)
    path = write_lines(out, "report.md", lines)
    write_lines(out, "tables.md", overview.tables(runs, measured))
    say(f"wrote {path}, tables.md" + "".join(f", {name}" for names in drawn.values() for name in names))
    return 1 if any("!" not in row[1] and "*" not in row[1] for row in lost) else 0
