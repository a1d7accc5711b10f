"""What a report begins with: the targets, all meshes at a glance, the barriers. Also tables.md, for docs/performance.md."""

import grid
import stats
from text import exact_text, percent_text, ratio_text, spread_text, table, time_text


def targets_part(measured):
    """A row for each cluster, a column for each target."""
    by_cluster = [(cluster, stats.targets_of(cluster, cells)) for cluster, cells in measured]
    known = dict.fromkeys(target.head for _, found in by_cluster for target in found if target.values)
    heads = list(known) or list(dict.fromkeys(target.head for _, found in by_cluster for target in found))
    yield "A row for each mesh, a column for each target: the worst cell, and how many hold. **Bold is missed**; `-` is not " \
          "measured, and *n open* counts cells that were asked for and have no value. Blocking calls of meshcoll against " \
          "the best peer at default settings; *beside* are no targets."
    yield ""
    yield from table(["", *heads], [[cluster.key, *cells_of_row(heads, found)] for cluster, found in by_cluster])
    yield "- *over the bound*, *over best peer*, *forced*, *persistent*: the time over that, see [Method](#method)."
    yield "- *mean*: the geometric mean over sizes, of the collective for which it is largest."
    yield f"- *model*: how far predicted is from measured time, the median above {grid.size_text(stats.BURST)}; of the " \
          "planner's choices, and of all strategies tried for regret."
    yield "- *late*: who counts operations whose barrier outlasted the gate's pause, so that the shaper has saved up more. " \
          "The first one of a cell always is, so at 1 MiB and above it is the rule, on both sides; it is worth at most 64 KiB."
    yield ""
    yield from misses_part(by_cluster)


def cells_of_row(heads, found):
    by_head = {target.head: target for target in found}
    for head in heads:
        target = by_head.get(head)
        if target is None:
            yield ""
        else:
            yield f"**{target.measured()}**" if target.misses else target.measured()


def misses_part(by_cluster):
    yield "### Misses"
    yield ""
    lines = [line for cluster, found in by_cluster for line in misses_of(cluster, found)]
    known = any(target.values for _, found in by_cluster for target in found)
    yield from lines or ["None among what was measured." if known else "Nothing was measured."]
    yield ""


def misses_of(cluster, found):
    for target in found:
        show = percent_text if target.unit == "%" else exact_text
        ordered = sorted(target.misses, key=lambda miss: -miss[1] / miss[2])
        if ordered:
            yield f"- {cluster.key}, {target.head}: " + ", ".join(f"{what} {show(value)}" for what, value, _ in ordered)


VIEWS = (("Blocking calls over the best peer at default settings", stats.Cell.over_peer),
         ("Blocking calls over the best peer at default settings or forced", stats.Cell.over_forced),
         ("Persistent requests over the best peer at default settings, in blocking or persistent calls",
          stats.Cell.over_persistent),
         ("Blocking calls not tuned over tuned, both after 200 calls", stats.Cell.over_tuned),
         ("The first 10 calls, not tuned, over the first 10 tuned", stats.Cell.first_over_tuned))


def readme_part(measured):
    """The headline as README has it: means alone."""
    rows = [(cluster, ratios_of(cells, stats.Cell.over_peer)) for cluster, cells in measured]
    names = list(dict.fromkeys(name for _, ratios in rows for name in ratios))
    if not names:
        return
    yield "## For README"
    yield ""
    yield from table(["boxes x ranks", *names],
                     [[cluster.key if cluster.in_lab else f"one box, {cluster.ranks} ranks",
                       *(bold_above(1, stats.geometric_mean(ratios[name])) if name in ratios else "" for name in names)]
                      for cluster, ratios in rows if ratios])


def all_part(measured):
    lines = [line for what, value in VIEWS for line in all_meshes(measured, what, value)] + list(barriers(measured))
    return ["## All meshes", "", *lines] if lines else []


def all_meshes(measured, what, value):
    """A row for each cluster, a column for each collective: the mean over sizes and the worst of them."""
    rows = [(cluster.key, ratios_of(cells, value)) for cluster, cells in measured]
    rows = [(key, ratios) for key, ratios in rows if ratios]
    names = list(dict.fromkeys(cell.collective for _, cells in measured for cell in cells if cell.size))
    if not rows:
        return
    yield f"{what}: geometric mean over all sizes, the worst in brackets; bold above 1:"
    yield ""
    yield from table(["", *names], [[key, *(mean_and_worst(ratios.get(name)) for name in names)] for key, ratios in rows])


def ratios_of(cells, value):
    found = {}
    for cell in cells:
        if cell.size and value(cell):
            found.setdefault(cell.collective, []).append(value(cell))
    return found


def bold_above(limit, value, text=ratio_text):
    return f"**{text(value)}**" if value > limit else text(value)


def mean_and_worst(values):
    if not values:
        return ""
    return f"{bold_above(1, stats.geometric_mean(values))} ({bold_above(1, max(values))})"


def barriers(measured):
    """All of them: a barrier has no sizes, so that one table has every cluster."""
    cells = [(cluster, cell) for cluster, of in measured for cell in of if cell.collective == grid.BARRIER and cell.times]
    if not cells:
        return
    yield "Barrier, each mesh and number of ranks; bold is above the best peer:"
    yield ""
    yield from table(["", "ranks", "meshcoll (quartiles)", "best peer", "its time", "/ best peer", "/ forced", "persistent", "strategy"],
                     [barrier_row(cluster, cell) for cluster, cell in cells])


def barrier_row(cluster, cell):
    ratio, strategy = cell.over_peer(), cell.strategy()
    peer = [cell.best_peer, spread_text(cell.peers[cell.best_peer])] if cell.best_peer else ["-", "-"]
    return [cluster.key, cluster.ranks, spread_text(cell.ours), *peer, bold_above(1, ratio) if ratio else "-",
            ratio_text(cell.over_forced()), ratio_text(cell.over_persistent()), f"`{strategy}`" if strategy else "-"]


def glance(what, cells, value, show):
    """A row for each collective, a column for each size; nothing where nothing is known."""
    known = [(cell, value(cell)) for cell in cells if cell.size and value(cell) is not None]
    if not known:
        return
    wanted = sorted({grid.column(cell.size, cell.asked) for cell, _ in known})
    yield f"{what}:"
    yield ""
    by = {(cell.collective, grid.column(cell.size, cell.asked)): show(number) for cell, number in known}
    yield from table(["", *map(grid.size_text, wanted)],
                     [[name, *(by.get((name, size), "") for size in wanted)]
                      for name in dict.fromkeys(cell.collective for cell, _ in known)])


def glances(cells):
    large = [cell for cell in cells if cell.size > stats.BURST]
    for what, value in VIEWS:
        yield from glance(f"{what}; bold above 1.25", cells, value, lambda ratio: bold_above(1.25, ratio))
    yield from rounded(cells)
    yield from glance(f"Blocking calls over the bound, above {grid.size_text(stats.BURST)}", large,
                      stats.Cell.over_bound, ratio_text)
    yield from glance("Regret, bold above 25 %", cells, lambda cell: cell.regret.get("regret"),
                      lambda ratio: bold_above(0.25, ratio, percent_text))


def rounded(cells):
    """Which sizes are others than their column says by more than a little."""
    others = {(grid.column(cell.size, cell.asked), cell.size) for cell in cells if cell.size and cell.times}
    others = sorted((asked, size) for asked, size in others if not 0.9 < size / asked < 1.1)
    if others:
        yield "Where each rank has a block, " + ", ".join(f"{grid.size_text(asked)} is {grid.size_text(size)}"
                                                         for asked, size in others) + "."
        yield ""


def medians(cells):
    """Our times, for who wants seconds."""
    yield from glance("meshcoll's time, blocking calls", cells, lambda cell: cell.ours.median, time_text)


def tables(runs, measured):
    """The lines of tables.md: nothing in it is typed by hand."""
    yield "<!-- Written by bench/compare (tables.md); not to be edited. -->"
    yield ""
    for store in runs.stores:
        m = store.data["machine"]
        yield f"- {m['date'][:16].replace('T', ' ')} to {runs.end_of(store)[11:16]} UTC, commit {m['commit']}: `{m['command']}`"
    yield ""
    yield "## Targets"
    yield ""
    yield from targets_part(measured)
    yield from readme_part(measured)
    yield from all_part(measured)
    for cluster, cells in measured:
        if any(cell.times for cell in cells):
            yield f"## {cluster.title()}"
            yield ""
            yield from glances(cells)
            yield from medians(cells)
