"""Regret of the planner's choice: its time over that of the best strategy, all plausible ones tried.

First all are screened, in turn, with few iterations. Where another one than the choice was faster, the
choice and the fastest are measured again, in turn, with more: the least of many noisy times is too small,
and a winner's luck does not come twice. Which of two strategies is faster also differs from one start of the
program to the next: where the second race shows a regret to speak of, it is run from further starts, and the
medians over all its starts count, whoever they favour."""

import json
import statistics

import programs
from contenders import OURS_PERSISTENT, mine
from grid import BARRIER, ELEMENT
from measure import SCREENING, OutOfTime, bench
from store import now

FINALISTS = 3
STARTS = 3          # of the second race, where its first start shows more regret than this:
SMALL = 0.05
CLOSE = 0.99        # another one must have been faster than so much of the choice's time to be looked at again


def to_measure(session, cluster):
    def known(cell):
        have = session.store.regret(cluster.key, *cell)
        return have and "failed" not in have
    return [cell for cell in session.wanted(cluster) if not known(cell)]


def measure_regrets(session, cluster):
    for collective, size in to_measure(session, cluster):
        try:
            record = measure_cell(session, cluster, collective, size)
        except OutOfTime:
            record = {"failed": f"the budget of {session.settings['budget']:g} s was over"}
            session.store.add_regret(cluster.key, collective, size, record)
            raise
        except BaseException:
            session.store.add_regret(cluster.key, collective, size, {"failed": "interrupted"})
            raise
        session.store.add_regret(cluster.key, collective, size, {**record, "date": now()})
        session.say(f"{cluster.key} {collective} {size}: " + (record.get("failed") or
                    f"regret {100 * record['regret']:.1f} %, best {record['best']}"))


def measure_cell(session, cluster, collective, size):
    expected, top, named, left_out = candidates(session, cluster, collective, size)
    contender = mine(cluster, session.tune_file)[OURS_PERSISTENT]
    s = session.settings
    # one time of a long operation is worth as much as many of a short one
    dear = expected > s["cell_seconds"] / 4
    # in one box alone, as cells are: in turn each would find the caches full of another one's scratch memory
    again = ["--again", "1"] if cluster.boxes == 1 else []
    few = [*again, "-n", "1" if dear else str(s["iterations"]), "--max-time", f"{s['cell_seconds'] / 4:g}", "-w", "0"]
    rows = []

    def race(strategies, options):
        rows.clear()
        return bench(session, cluster, contender, collective, [size], ["best", *strategies], options,
                     lambda found, _meta: rows.extend(found))
    outcome = race([*top, *named], few)
    tried = by_text(rows)
    choice = next((row["strategy"] for row in rows if row["label"] == "best"), None)
    if choice is None:
        return {"failed": outcome.reason()}
    record = {"choice": choice, "tried": list(tried.values()), "left_out": left_out}
    if outcome.status != 0:
        record["trouble"] = outcome.reason()
    finalists = faster(tried, choice)
    more = [*again, "-n", str(max(s["iterations"], 5)), "--max-time", f"{s['cell_seconds']:g}", "-w", "0"]
    starts = []
    while finalists and len(starts) < (STARTS if starts and regret_of(starts, choice)["regret"] > SMALL else 1):
        outcome = race(finalists, more)
        starts.append(by_text(rows))
        if choice not in starts[-1] or len(starts[-1]) < 2:
            return {**record, "failed": f"second race: {outcome.reason()}"}
        record["final"] = [{**row, "start": i} for i, start in enumerate(starts) for row in start.values()]
    wrong = sum(start[choice]["wrong"] for start in [tried, *starts])
    if wrong:
        return {**record, "failed": f"the choice gave {wrong} wrong elements"}
    return {**record, **(regret_of(starts, choice) if starts else {"best": choice, "regret": 0.0})}


def regret_of(starts, choice):
    """By the medians over the starts in which a strategy ran without a wrong element; of how many it won."""
    def median_of(text, among):
        return statistics.median(start[text]["median_s"] for start in among)

    def lead(text):
        among = [start for start in starts if text in start]
        return median_of(choice, among) / median_of(text, among) - 1
    good = {text for start in starts for text in start} - {text for start in starts for text, row in start.items()
                                                            if row["wrong"]}
    best = max(good, key=lead)
    ahead = [start for start in starts if best in start and start[best]["median_s"] < start[choice]["median_s"]]
    return {"best": best, "regret": lead(best), "starts": len(starts), "ahead": len(ahead)}


def faster(tried, choice):
    limit = CLOSE * tried[choice]["median_s"]
    found = [text for text, row in tried.items() if text != choice and not row["wrong"] and row["median_s"] < limit]
    return sorted(found, key=lambda text: tried[text]["median_s"])[:FINALISTS]


def by_text(rows):
    """One row for each strategy's text: a name and its text are the same strategy."""
    found = {}
    for row in rows:
        kept = {key: row[key] for key in ("strategy", "label", "median_s", "min_s", "iterations", "predicted_s",
                                          "wrong")}
        found.setdefault(row["strategy"], kept)
    return found


def candidates(session, cluster, collective, size):
    """What the cheapest should take, the planner's top N, named strategies that are none of them, and the names of
    those priced too high to be plausible. The choice itself is left out."""
    chosen = (session.store.cell(cluster.key, SCREENING, OURS_PERSISTENT, collective, size) or {}).get("strategy")
    tuned = session.store.data["tunes"][cluster.key]
    if collective == BARRIER:       # what meshcoll's is made of
        collective, size = "allreduce", ELEMENT
    command = [session.tool("meshcoll"), "plan", collective, "--mesh", tuned["mesh"], "--links", tuned["links"],
               "--bytes", str(size), "--json"]

    def plan(*more):
        return json.loads(programs.output_of([*command, *more]) or '{"strategies": []}')["strategies"]
    ranked = plan("--top", str(session.settings["top"]))
    top = [one["strategy"] for one in ranked]
    named, left_out = [], []
    for one in named_strategies(session, tuned["mesh"], collective):
        if one["strategy"] in top:
            continue
        priced = plan("--strategy", one["strategy"])
        limit = session.settings["plausible"]
        if priced and ranked and priced[0]["seconds"] > limit * ranked[0]["seconds"]:
            left_out.append(one["name"])
        else:
            named.append(one["name"])
    return ranked[0]["seconds"] if ranked else 0, rivals(top, chosen), named, left_out


def rivals(top, chosen):
    """The library may take other segments than the planner's first (docs/command.md, plan): then that is a rival too."""
    return [text for text in top if text != chosen]


def named_strategies(session, mesh, collective):
    listed = programs.output_of([session.tool("meshcoll"), "list", "strategies", "--mesh", mesh, "--json"])
    return [one for one in json.loads(listed or '{"strategies": []}')["strategies"]
            if one["collective"] == collective and one["strategy"]]
