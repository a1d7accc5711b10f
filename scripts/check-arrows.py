#!/usr/bin/env python3
"""Dependencies in the sources point one way: between rooms, and between files.

usage: scripts/check-arrows.py [repository root]

Rooms: a folder of src/ includes only what MAY lists for it. A room is a folder with sources; `compose/cost` is one,
and so is `base`.

Files: no circles. A file needs the headers that it includes, and the files that define what it names: functions and
data with external linkage (mc_… and meshcoll_…). A header needs the same for its inline functions. A source and its
own header count as one way: X.c needs X.h, never the reverse.

Names: no two files of src have one name, and no two types that begin with mc_. TWICE lists those that are left.

The way of a call: the tree of functions in docs/dev/architecture.md. Each is in the room that stands beside it, and the
file of the one that leads to it calls it, by its name or as an operation of a table.

Exit 1 and one line per breach.
"""

import pathlib
import re
import sys

CORE = ["base", "mesh", "mesh/link", "plan"]
ALGORITHMS = ["ring", "mst", "direct", "doubling"]
COMPOSE = ["compose/cost", "compose/algorithms", "compose/strategy", "compose/pace", "compose/price",
           "compose/planner"]
TRANSPORT = ["transport", "transport/shm/bytes", "transport/shm"]

# room -> rooms whose headers it may include, besides its own and the public ones; each may use all before it
RUNTIME = ["runtime/element", "runtime/bind", "runtime/place", "runtime/execute",
           "runtime/choose", "runtime/adapt", "runtime/handle", "runtime/progress", "runtime/connect",
           "runtime/call", "runtime/message", "runtime/diagnose/waits", "runtime/diagnose/status",
           "runtime/diagnose", "runtime/api", "runtime/jobs", "runtime/calibrate", "runtime/create", "runtime/family"]
GPU = ["gpu/proxy", "gpu/mesh", "gpu/launch", "gpu/call"]
MAY = {
    "base": [],
    "base/system": ["base"],
    "mesh": ["base"],
    "mesh/link": ["base", "mesh"],
    "plan": ["base", "mesh"],
    "plan/verify": CORE,
    **{room: CORE for room in ALGORITHMS},
    "transport": ["base", "mesh"],
    "transport/shm/bytes": ["base", "transport"],
    "transport/shm": ["base", "mesh", "transport", "transport/shm/bytes"],
}
for i, room in enumerate(COMPOSE):
    MAY[room] = CORE + ALGORITHMS + COMPOSE[:i]
for i, room in enumerate(RUNTIME):
    MAY[room] = CORE + COMPOSE + TRANSPORT + RUNTIME[:i]
MAY["job/network"] = ["base"]
MAY["job/handshake"] = ["base", "job/network"]
MAY["job/environment"] = ["base", "job/handshake"]
MAY["job/bootstrap"] = ["base", "job/network", "job/handshake", "job/environment"]
MAY["job/monitor"] = ["base", "job/network", "job/handshake"]
for room in RUNTIME[RUNTIME.index("runtime/handle"):]:
    MAY[room].append("job/monitor")
for room in ("runtime/jobs", "runtime/diagnose/status"):
    MAY[room].append("job/network")
MAY["runtime/create"] += ["job/network", "job/environment", "job/bootstrap"]
MAY["runtime/element"] = ["base"]
MAY["runtime/bind"] = CORE + ["transport", "runtime/element"]
MAY["runtime/place"] = CORE + TRANSPORT
MAY["gpu/program"] = CORE + ["runtime/element", "runtime/bind"]
MAY["gpu/kernel"] = ["gpu/program", "runtime/element"]
MAY["gpu/cuda"] = ["base"]
MAY["gpu/stream"] = [*MAY["gpu/program"], "gpu/program", "gpu/cuda"]
MAY["gpu/route"] = [*MAY["gpu/program"], "gpu/program", "transport"]
for i, room in enumerate(GPU):      # on top of the runtime's calls; the runtime includes none of them
    MAY[room] = [*MAY["runtime/api"], "gpu/program", "gpu/cuda", "gpu/stream", "gpu/route", *GPU[:i]]
MAY["runtime/execute"] = [*CORE, *TRANSPORT, "compose/pace", "compose/algorithms", "runtime/bind", "runtime/element"]
for room in MAY:
    if room.startswith(("transport", "job", "runtime", "gpu")):
        MAY[room] = [*MAY[room], "base/system"]
MAY["network"] = [*CORE[:3], "base/system"]     # of the command, not of the library
MAY["contention"] = CORE + ["doubling"] + COMPOSE + ["network"]
MAY["simulate"] = CORE + COMPOSE + ["network"]
LIBRARY = list(MAY)
MAY["mpi"] = []
COMMANDS = ["tools/" + name for name in ("count", "export", "list", "overlay", "plan", "run", "simulate", "status", "topo", "trace", "tune", "verify")]
MAY["tools/common"] = [*LIBRARY, "mpi"]
MAY["tools/gpu"] = ["base", "mesh", "gpu/cuda", "runtime/place"]
for command in COMMANDS:
    MAY[command] = [*LIBRARY, "mpi", "tools/common", "tools/gpu"]
MAY["tools"] = LIBRARY + ["tools/common", *COMMANDS]

# Names of files and types that are left twice or more, each with how often. Rename one, and lower its number.
TWICE = {
    "arena.c": 2, "arena.h": 2, "calibrated.h": 2, "call.h": 3, "check.h": 2, "direct.h": 2, "explain.c": 2, "explain.h": 2,
    "join.c": 3, "limits.c": 2, "mesh.c": 2, "network.c": 2, "network.h": 2, "open.c": 2, "program.c": 2, "request.h": 2,
    "state.h": 3, "wait.h": 3,
    "mc_network_t": 2, "mc_peer_t": 2, "mc_word_t": 2,
}

# Algorithms do arithmetic on ranks and chunks: nothing that moves or reads bytes.
OUTSIDE = re.compile(r"^(mpi|ucp/|ucs/|uct/|cuda|nccl|hwloc|pthread|sys/socket)")
PURE = ["base", "plan", "plan/verify", *ALGORITHMS, *COMPOSE]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def breach(root, room, quote, target):
    """The rule that `#include target` breaks in `room` (None: a public header), or None."""
    if target.startswith("meshcoll/"):
        return None if (root / "include" / target).is_file() else "there is no include/" + target
    if quote == "<":
        if room in PURE and OUTSIDE.match(target):
            return f"{room}/ works on ranks and chunks: no {target} there"
        return None
    if room is None:
        return "a public header includes public and system headers only"
    if not (root / "src" / target).is_file():
        return 'write it from src/ as root: "folder/file.h"'
    other = str(pathlib.PurePath(target).parent)
    if other != room and other not in MAY[room]:
        return f"{room}/ may include {', '.join(MAY[room]) or 'nothing else'}; not {other}/"
    return None


def check_rooms(root, files):
    bad = []
    for path, text in files.items():
        room = str(pathlib.PurePath(path).relative_to("src").parent) if path.startswith("src/") else None
        if room is not None and room not in MAY:
            bad.append(f"{path}:1: src/{room} is no known room: expected one of {', '.join(MAY)}")
            continue
        for found in INCLUDE.finditer(text):
            rule = breach(root, room, *found.groups())
            if rule:
                line = text.count("\n", 0, found.start(1)) + 1
                bad.append(f"{path}:{line}: {found.group().strip()}: {rule}")
    return bad


# Circles ------------------------------------------------------------------------------------------

def blank(text):
    """Without comments, strings and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)
    text = re.sub(r'"(\\.|[^"\\\n])*"', '""', text)
    return re.sub(r"^[ \t]*#(\\\n|[^\n])*", "", text, flags=re.MULTILINE)


def top_level(text):
    """(head, body) of what stands at top level; declarations have no body."""
    depth = start = body = 0
    for i, c in enumerate(text):
        if c == "{":
            depth += 1
            body = i if depth == 1 else body
        elif c == "}":
            depth -= 1
            if depth == 0:
                yield text[start:body].strip(), text[body:i + 1]
                start = i + 1
        elif c == ";" and depth == 0:
            yield text[start:i].strip(), ""
            start = i + 1


def defined(head, body):
    """The name with external linkage that it defines, or None."""
    if not body or re.match(r"(static|typedef)\b", head):
        return None
    found = re.search(r"((?:mc|meshcoll)_\w+)\s*(\[[^\]]*\]\s*)*=$", head) or \
        re.match(r"[\w\s*]*?\b((?:mc|meshcoll)_\w+)\s*\(", head)
    return found.group(1) if found else None


def needs_of(files):
    """file -> {file that it needs: why}"""
    parts = {path: list(top_level(blank(text))) for path, text in files.items()}
    owner = {}
    for path, chunks in parts.items():
        for head, body in chunks:
            name = defined(head, body) if path.endswith(".c") else None
            if name:
                owner[name] = path
    needs = {path: {} for path in files}
    for path, text in files.items():
        for quote, target in INCLUDE.findall(text):
            for there in ("src/" + target, str(pathlib.PurePath(path).parent / target)):
                if quote == '"' and there in files:
                    needs[path][there] = "#include"
                    break
        for head, body in parts[path]:
            if path.endswith(".h") and not head.startswith("static"):
                continue
            for name in re.findall(r"\b(?:mc|meshcoll)_\w+", body):
                there = owner.get(name, path)
                if there != path and there[:-2] != path[:-2]:
                    needs[path].setdefault(there, name)
    return needs


def circle_in(needs):
    """A list of files each of which needs the next, and the last the first; or None."""
    done, trail = set(), []

    def follow(path):
        if path in trail:
            return trail[trail.index(path):]
        if path in done:
            return None
        trail.append(path)
        for there in needs[path]:
            found = follow(there)
            if found:
                return found
        trail.pop()
        done.add(path)
        return None

    sys.setrecursionlimit(10000)
    for path in needs:
        found = follow(path)
        if found:
            return found
    return None


def check_gpu(needs):
    """The runtime reaches src/gpu by its table only, which runtime/handle/no_gpu.c gives where that is not built."""
    return [f"{path} names {why} of {there}: the runtime knows GPUs by runtime/handle/device.h"
            for path in needs if path.startswith(("src/runtime/", "src/job/"))
            for there, why in needs[path].items() if there.startswith("src/gpu/")]


def check_circles(files):
    needs = needs_of(files)
    found = circle_in(needs)
    if not found:
        return check_gpu(needs)
    names = [f"{a} needs {b} ({needs[a][b]})" for a, b in zip(found, found[1:] + found[:1])]
    return ["a circle: " + ", ".join(names)]


# Names --------------------------------------------------------------------------------------------

TYPEDEF = re.compile(r"^typedef (?:struct|union|enum) ?(\w*)(?: \{)?$|"      # begins here, with this tag
                     r"^\} (mc_\w+_t);|"                                     # ends here
                     r"^typedef (?:(?:struct|union|enum) )?(\w+) (mc_\w+_t);", re.MULTILINE)


def types_in(path, text):
    """(name, what it is: its tag or, without one, the file that defines it)"""
    tag = ""
    for begun, ended, what, name in TYPEDEF.findall(text):
        if ended:
            yield ended, tag or path
        elif name:
            yield name, what if what.startswith("mc_") else path
        tag = begun


def check_names(files):
    seen = {}
    for path, text in files.items():
        if path.startswith("src/"):
            seen.setdefault(pathlib.PurePath(path).name, set()).add(path)
            for name, what in types_in(path, text):
                seen.setdefault(name, {}).setdefault(what, path)
    bad = []
    for name, homes in sorted(seen.items()):
        if len(homes) > TWICE.get(name, 1):
            where = sorted(homes.values() if isinstance(homes, dict) else homes)
            bad.append(f"{name} is the name of {len(homes)}, in {', '.join(where)}: give one another name")
    return bad


# The way of a call -----------------------------------------------------------------------------------

WAY_LINE = re.compile(r"^((?:  )*)(mc_\w+) +([a-z]+)\b")


def homes_of(name, room, files):
    """Files of that room, or of one within it, that define the function."""
    definition = re.compile(r"^[a-z][\w\s*]*?\b%s\([^;{]*\)\s*\{" % name, re.MULTILINE)
    return [path for path, text in files.items()
            if re.match(r"src/(runtime/)?%s/" % room, path) and definition.search(text)]


def calls(path, name, files):
    """Does the file call it, by its name or as an operation of a table?"""
    if re.search(rf"\b{name}\(", files[path]):
        return True
    tables = re.compile(rf"\.(\w+) = {name}\b")
    operations = {found for text in files.values() for found in tables.findall(text)}
    return any(f"->{operation}(" in files[path] for operation in operations)


def check_way(root, files):
    page = "docs/dev/architecture.md"
    bad, above = [], []
    text = (root / page).read_text(encoding="utf-8") if (root / page).is_file() else ""
    for number, line in enumerate(text.splitlines(), 1):
        found = WAY_LINE.match(line)
        if not found:
            continue
        depth, name, room = len(found.group(1)) // 2, found.group(2), found.group(3)
        homes = homes_of(name, room, files)
        del above[depth:]
        if not homes:
            bad.append(f"{page}:{number}: {room}/ does not define {name}")
        elif above and not any(calls(path, name, files) for path in above[-1]):
            bad.append(f"{page}:{number}: nothing in {', '.join(above[-1])} calls {name}")
        above.append(homes)
    return bad


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])

    def read(*folders):
        paths = sorted(p for d in folders for p in (root / d).rglob("*.*")
                       if p.suffix in (".c", ".h", ".cu"))
        return {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in paths}

    library = read("src", "include")
    bench = read("bench/meshcoll-bench")
    bad = check_rooms(root, library) + check_circles(library) + check_circles(bench) + check_way(root, library)
    bad += check_names(library)
    for line in bad:
        print(line)
    files = len(library) + len(bench)
    if bad:
        print(f"arrows: {len(bad)} broken in {files} files")
        return 1
    print(f"arrows: {files} files, all point one way, and none in a circle")
    return 0


if __name__ == "__main__":
    sys.exit(main())
