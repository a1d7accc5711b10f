#!/usr/bin/env python3
"""way.py PROGRAM [-v]: the functions and rooms of src/runtime that a blocking call passes, on a miss of the cache of
calls and on a hit, as callgrind sees them.

PROGRAM: meshcoll-bench-own of a build without inlining:
  cmake -S . -B /tmp/o0 -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS='-O0 -fno-inline' && make -C /tmp/o0 meshcoll-bench-own
A way into a room is a caller outside and a function inside. -v: names the functions.
"""

import os
import re
import subprocess
import sys
import tempfile


def calls_of(program, operations):
    """(caller, callee) -> number of calls; each is (file, function)."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=" + out,
                        "--toggle-collect=own_blocking", program, "-n", str(operations), "--mesh", "x=1",
                        "--collective", "blocking"], check=True, capture_output=True)
        with open(out, encoding="utf-8") as lines:
            return parse(lines)


def parse(lines):
    names, calls, at = {}, {}, {}

    def name(key, text):
        number, _, rest = text.partition(" ")
        table = names.setdefault("file" if key.endswith(("l", "i", "e")) else "function", {})
        return table.setdefault(number, rest) if rest else table[number]

    for line in lines:
        key, _, text = line.rstrip("\n").partition("=")
        if key in ("fl", "fi", "fe", "fn", "cfi", "cfl", "cfn"):
            at["cfl" if key == "cfi" else key] = name(key, text)
        if key == "fn":
            at["caller"] = (at["fl"], at["fn"])
        elif key == "calls":
            edge = (at["caller"], (at.pop("cfl", at["fl"]), at["cfn"]))
            calls[edge] = calls.get(edge, 0) + int(text.split()[0])
    return calls


def room(function):
    found = re.search(r"/src/runtime/(\w+)/", function[0])
    return found.group(1) if found else None


def show(title, edges, verbose):
    inside = [(a, b) for a, b in edges if room(b)]
    functions = {b for _, b in inside}
    ways = {(a, b) for a, b in inside if room(a) != room(b)}
    rooms = sorted({room(b) for b in functions})
    print(f"{title}: {len(functions)} functions in {len(rooms)} rooms, {len(ways)} ways into a room")
    for r in rooms:
        own = sorted({b[1] for b in functions if room(b) == r})
        into = sum(room(b) == r for _, b in ways)
        print(f"  {r:10} {len(own):3} functions, {into:3} ways into it" + (": " + ", ".join(own) if verbose else ""))


def main():
    program, verbose = sys.argv[1], "-v" in sys.argv
    one, two, three = (calls_of(program, n) for n in (1, 2, 3))
    show("miss", one, verbose)
    show("hit", [edge for edge in three if three[edge] > two.get(edge, 0)], verbose)


if __name__ == "__main__":
    main()
