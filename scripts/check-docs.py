#!/usr/bin/env python3
"""What pages and comments point to is there: links and headings of Markdown pages, and files by their name or path.

usage: scripts/check-docs.py [repository root]

A path (`plan/builder.h`) may be written from the root, from src, include, docs, tests and a few others, or from the folder
of the file that names it; a name alone (`builder.h`) is one of any folder. Lines of pages have at most 120 columns, but in
tables and code."""

import functools
import os
import re
import sys

ROOT = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("src", "include", "tests", "bench", "examples", "docs", "python", "scripts", "cmake")
FROM = ("", "src", "include", "docs", "tests", "docs/lab-notes", "python", "bench", "src/runtime", "src/transport")
CODE = r"\.(?:c|h|cpp|cu|py|sh|cmake)$|CMakeLists\.txt$"
PATH = re.compile(r"(?<![\w/.~$<{*%:@+-])((?:[\w.-]+/)*[\w-][\w.-]*\.(?:md|h|hpp|c|cpp|cu|py|sh|cmake))(?![\w/*(-]|\.\w)")
LINK = re.compile(r"\]\(([^)\s]*)\)")
COLUMNS = 120
# Files of others, and what a test, an example or an installation writes.
OTHERS = ("sys/", "linux/", "netinet/", "net/", "arpa/", "ucp/", "uct/", "ucs/", "c10/", "torch/", "hwloc/", "openssl/",
          "criterion/", "out/", "build/")
NAMES = {"mpi.h", "cuda.h", "cuda_runtime.h", "nccl.h", "hwloc.h", "slurm.h", "program.c", "PERFORMANCE.md", "REFERENCE.md",
         "report.md", "tables.md", "uct_iface.h", "tcp_iface.c", "tcp_ep.c"}
MADE_UP = {"tests/cli/test_arrows.sh", "tests/cli/test_check_docs.sh"}  # they name files that they write


@functools.lru_cache(None)
def files():
    found = [name for name in os.listdir(ROOT) if name.endswith(".md") or name == "CMakeLists.txt"]
    for folder in FOLDERS:
        for here, folders, names in os.walk(os.path.join(ROOT, folder)):
            folders[:] = [f for f in folders if not f.startswith((".", "__")) and f not in ("build", "out")]
            found += [os.path.relpath(os.path.join(here, name), ROOT) for name in names]
    return sorted(found)


@functools.lru_cache(None)
def names():
    return {os.path.basename(file) for file in files()} | NAMES


@functools.lru_cache(None)
def is_there(path):
    return os.path.exists(os.path.join(ROOT, path))


def is_found(path, folder):
    if "/" not in path:
        return path in names()
    return any(is_there(os.path.normpath(os.path.join(start, path))) for start in (*FROM, folder))


@functools.lru_cache(None)
def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    seen, names = {}, set()
    fenced = False
    for line in open(os.path.join(ROOT, page), encoding="utf-8"):
        fenced ^= line.startswith("```")
        heading = re.match(r"#+ +(.*)", line)
        if fenced or not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).strip().lower()
        name = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        names.add(name if name not in seen else f"{name}-{seen[name]}")
        seen[name] = seen.get(name, 0) + 1
    return names


def comments(file, text):
    """The text of a source without its code, line by line."""
    if file.endswith((".c", ".h", ".cpp", ".cu")):
        kept = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.S)
        out, last = [], 0
        for m in kept.finditer(text):
            out.append("\n" * text.count("\n", last, m.start()))
            out.append(m.group() if m.group()[0] == "/" else "")
            last = m.end()
        return "".join(out).split("\n")
    return [line[line.index("#"):] if "#" in line else "" for line in text.split("\n")]


def check_paths(file, lines):
    for number, line in enumerate(lines, 1):
        for match in PATH.finditer(line):
            path = match.group(1)
            if not path.startswith(OTHERS) and "NAME" not in path and not is_found(path, os.path.dirname(file)):
                yield f"{file}:{number}: {path} is not there"


def check_page(file, lines):
    fenced = False
    for number, line in enumerate(lines, 1):
        fenced ^= line.lstrip().startswith("```")
        if len(line) > COLUMNS and not fenced and not re.match(r"\s*(\||!?\[)|.*https?://|.*</?\w", line):
            yield f"{file}:{number}: {len(line)} columns, at most {COLUMNS} are allowed"
        if fenced:
            continue
        for target in LINK.findall(line):
            if re.match(r"\w+:", target):
                continue
            page, _, anchor = target.partition("#")
            at = os.path.normpath(os.path.join(os.path.dirname(file), page)) if page else file
            if not target or not is_there(at):
                yield f"{file}:{number}: the link {target} leads nowhere"
            elif anchor and at.endswith(".md") and anchor not in anchors(at):
                yield f"{file}:{number}: {at} has no heading for #{anchor}"


def main():
    failed = 0
    for file in files():
        is_page = file.endswith(".md") or re.search(r"\.[17]$", file)
        if file in MADE_UP or not is_page and not re.search(CODE, file):
            continue
        with open(os.path.join(ROOT, file), encoding="utf-8") as text:
            text = text.read()
        lines = text.split("\n") if is_page else comments(file, text)
        for complaint in (*check_paths(file, lines), *(check_page(file, lines) if file.endswith(".md") else ())):
            print(complaint)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
