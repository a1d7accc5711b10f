#!/usr/bin/env bash
# Pages show what the command prints: each example that begins with `meshcoll` is the beginning of what it
# prints here, but for the times that it took; lines may be left out where it has a line with an ellipsis alone. And the
# race that README and docs/demo.md show has the sizes of scripts/demo.sh.
. "$(dirname "$0")/lib.sh"

PATH=$(dirname "$MESHCOLL"):$PATH python3 - docs/command.md docs/simulate.md <<'PYTHON' || fail "a page shows something else"
import re, subprocess, sys

def examples(text):
    for block in re.findall(r"^```\n(\$ .*?)^```", text, re.S | re.M):
        for one in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = one.partition("\n")
            if command.startswith("meshcoll "):
                yield command, shown

def lines(text):
    return [re.sub(r"in [0-9.]+ m?s$", "in a while", line.rstrip()) for line in text.strip().splitlines()]

seen, failed = 0, 0
pages = "\n".join(open(page, encoding="utf-8").read() for page in sys.argv[1:])
for command, shown in examples(pages):
    seen += 1
    printed = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False).stdout
    want, got = lines(shown), lines(printed)
    at = 0
    for before, a in zip([None] + want, want):
        if a == "…":
            continue
        if before == "…":
            at = got.index(a, at) if a in got[at:] else len(got)
        b = got[at] if at < len(got) else None
        at += 1
        if a != b:
            print(f"{command}\n  shown:   {a}\n  printed: {b}")
            failed += 1
            break
print(f"{seen} examples, {failed} that differ")
sys.exit(failed > 0 or seen < 5)
PYTHON

python3 - <<'PYTHON' || fail "README or docs/demo.md shows another race than scripts/demo.sh runs"
import re, sys

def read(path):
    return open(path, encoding="utf-8").read()

def name(size):
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"

of = r"\d+ [KM]iB"
run = [name(int(size)) for size in re.search(r"sizes=([\d,]+) plan", read("scripts/demo.sh")).group(1).split(",")]
drawn = re.findall(f">({of})</text>", read("docs/pictures/race.svg"))
columns = re.findall(of, re.search(r"predicted -> measured, ms (.*)", read("docs/demo.md")).group(1))
ends = re.findall(of, re.search(f"broadcasts of {of} to {of}", read("README.md")).group())
print(f"run: {run}, drawn: {drawn}, columns: {columns}, README: {ends}")
sys.exit(drawn != run or not columns or not set(columns) <= set(run) or ends != [run[0], run[-1]])
PYTHON
finish
