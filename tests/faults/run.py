#!/usr/bin/env python3
"""Jobs in which something goes wrong: every survivor must be told in time, of the right rank, and nothing may be left.

examples:
  run.py                                     each once in one of its places, as ctest runs it
  MESHCOLL_TESTS=all run.py                  a few of each in all of its places
  run.py --times 50                          fifty of each, one after the other
  run.py --only allreduce,stop --where lab   these, in the lab
  run.py --list"""

import argparse
import os
import signal
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

import places       # noqa: E402  (after the path is set)
import play         # noqa: E402
import scenarios    # noqa: E402

SOURCE = os.path.join(places.HERE, "..", "..")
BUILD = os.environ.get("MESHCOLL_BUILD_DIR", os.path.join(SOURCE, "build", "test"))


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("--times", type=int, metavar="N", help="how often each in all of its places")
    parser.add_argument("--only", metavar="A,B,…", help="these scenarios")
    parser.add_argument("--where", metavar="A,B,…", help=f"of {', '.join(scenarios.ALL)}")
    parser.add_argument("--job", default=os.path.join(BUILD, "tests", "faults", "fault_job"), help="the ranks' program")
    parser.add_argument("--list", action="store_true", help="print the scenarios")
    return parser, parser.parse_args()


def pick(parser, given, known, what):
    chosen = given.split(",") if given else list(known)
    for name in chosen:
        if name not in known:
            parser.error(f"there is no {what} '{name}'; there are {', '.join(known)}")
    return chosen


def has(name):
    """Does the library have this name? It stands in a public header."""
    folder = os.path.join(SOURCE, "include", "meshcoll")
    for header in os.listdir(folder):
        with open(os.path.join(folder, header), encoding="utf-8") as text:
            if name in text.read():
                return True
    return False


def is_long(args):
    return bool(args.times or args.only or args.where) or os.environ.get("MESHCOLL_TESTS") == "all"


def places_of(args, scenario, where, lab, number):
    """Where it is played: of a short run one of its places, others in turn."""
    possible = [one for one in places.PLACES
                if one.name in scenario.places and one.name in where and (lab.boxes or not one.apart)]
    return possible if is_long(args) or not possible else [possible[number % len(possible)]]


class Counts:
    passed = failed = skipped = 0


def run_one(args, scenario, place, lab, counts):
    """A scenario in a place, as often as asked for."""
    times = args.times or (scenario.short if is_long(args) else 1)
    good, asserted, slowest, begin = 0, 0, 0.0, time.monotonic()
    label = f"{scenario.name:<20} {place.name:<8}"
    for number in range(times):
        seconds, wrong = play.play(args.job, scenario, place, lab, number)
        if wrong:
            print(f"FAILED {label} run {number + 1} of {times}: {wrong}", flush=True)
            continue
        asserted += seconds is None
        good, slowest = good + 1, max(slowest, seconds or 0.0)
    counts.passed += good == times
    counts.failed += good < times
    note = f", {asserted} of them ended by an assertion of UCX" if asserted else ""
    print(f"{'       ' if good == times else 'FAILED '}{label} {good} of {times}, slowest {slowest:.2f} s{note} "
          f"({time.monotonic() - begin:.0f} s)", flush=True)


def run_all(args, chosen, where, lab, counts):
    for number, scenario in enumerate(chosen):
        if scenario.needs and not has(scenario.needs):
            print(f"skipped {scenario.name}: the library has no {scenario.needs} yet")
            counts.skipped += 1
            continue
        for place in places_of(args, scenario, where, lab, number):
            run_one(args, scenario, places.WIDE if scenario.job == "descriptors" else place, lab, counts)


def main():
    parser, args = read_arguments()
    known = {one.name: one for one in scenarios.SCENARIOS}
    chosen = [known[name] for name in pick(parser, args.only, known, "scenario")]
    where = pick(parser, args.where, scenarios.ALL, "place")
    if args.list:
        for one in chosen:
            print(f"{one.name:<20} {one.what} ({', '.join(one.places)})")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lab, counts = places.Lab(), Counts()
    lab.up()
    if lab.why:
        print(f"skipped lab: {lab.why}; the other places are this machine itself")
    begin = time.monotonic()
    try:
        run_all(args, chosen, where, lab, counts)
    finally:
        lab.down()
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped in {time.monotonic() - begin:.0f} s")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
