#!/usr/bin/env python3
"""Folder dependencies point one way: checks every #include in src/ and include/.

usage: scripts/check-arrows.py [repository root]
Exit 1 and one line per breach: file:line, what it includes, the rule.
"""

import pathlib
import re
import sys

# folder -> folders it may include, besides itself and the public headers
MAY = {
    "base": [],
    "mesh": ["base"],
    "plan": ["base", "mesh"],
    "ring": ["base", "mesh", "plan"],
    "mst": ["base", "mesh", "plan"],
    "direct": ["base", "mesh", "plan"],
    "doubling": ["base", "mesh", "plan"],
    "compose": ["base", "mesh", "plan", "ring", "mst", "direct", "doubling"],
    "transport": ["base", "mesh"],
    "runtime": ["base", "mesh", "plan", "ring", "mst", "direct", "doubling", "compose",
                "transport"],
}
MAY["tools"] = list(MAY)

# Algorithms do arithmetic on ranks and chunks: nothing that moves or reads bytes.
OUTSIDE = re.compile(r"^(mpi|ucp/|ucs/|uct/|cuda|nccl|hwloc|pthread|sys/socket)")
PURE = ["base", "plan", "ring", "mst", "direct", "doubling", "compose"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def breach(root, folder, quote, target):
    """The rule that `#include target` breaks in `folder` (None: a public header), or None."""
    first = target.split("/")[0]
    if first == "meshcoll":
        if not (root / "include" / target).is_file():
            return "there is no include/" + target
        return None
    if quote == "<":
        if folder in PURE and OUTSIDE.match(target):
            return f"{folder}/ works on ranks and chunks: no {target} there"
        return None
    if folder is None:
        return "a public header includes public and system headers only"
    if first not in MAY or "/" not in target:
        return 'write it from src/ as root: "folder/file.h"'
    if first != folder and first not in MAY[folder]:
        allowed = ", ".join(MAY[folder]) or "nothing else"
        return f"{folder}/ may include {allowed}; not {first}/"
    return None


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    files = sorted(p for d in ("src", "include") for p in (root / d).rglob("*.[ch]"))
    bad = 0

    for path in files:
        name = path.relative_to(root)
        folder = name.parts[1] if name.parts[0] == "src" else None
        if folder is not None and folder not in MAY:
            print(f"{name}:1: src/{folder} is no known folder: expected one of {', '.join(MAY)}")
            bad += 1
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = INCLUDE.match(line)
            rule = found and breach(root, folder, *found.groups())
            if rule:
                print(f"{name}:{number}: {line.strip()}: {rule}")
                bad += 1

    if bad:
        print(f"arrows: {bad} broken in {len(files)} files")
        return 1
    print(f"arrows: {len(files)} files, all point one way")
    return 0


if __name__ == "__main__":
    sys.exit(main())
