#!/usr/bin/env bash
# The picture of a simulation: its messages are those of --trace; in Chromium, where it is, it shows them at their time.
. "$(dirname "$0")/lib.sh"

bcast=(simulate bcast --mesh box=4,gpu=4 --links lab --bytes 4M)

# moving SVG TRACE: every message has its dot at its time, and every animation one period.
moving() {
    python3 - "$1" "$2" <<'PYTHON' || fail "the picture $1"
import json, os, sys, xml.etree.ElementTree as xml
svg, trace = sys.argv[1:]
root, of = xml.parse(svg).getroot(), "{http://www.w3.org/2000/svg}"
assert os.path.getsize(svg) < 300_000, os.path.getsize(svg)
assert not list(root.iter(of + "script"))
events = json.load(open(trace))["traceEvents"]
periods = {a.get("dur") for a in root.iter() if a.get("dur")}
assert len(periods) == 1, periods
moments = []
for dot in root.iter(of + "animateMotion"):
    times, points = ([float(n) for n in dot.get(a).split(";")] for a in ("keyTimes", "keyPoints"))
    assert len(times) == len(points) and times == sorted(times) and times[0] == 0 and times[-1] == 1
    moments += [(times[i], times[i + 1]) for i in range(len(times) - 1) if points[i:i + 2] == [0, 1]]
whole = max(e["ts"] + e["dur"] for e in events) * 54 / 48
want = sorted((e["ts"] / whole, (e["ts"] + e["dur"]) / whole) for e in events)
assert len(moments) == len(want), (len(moments), len(want))
for a, b in zip(sorted(moments), want):
    assert abs(a[0] - b[0]) < 2e-4 and abs(a[1] - b[1]) < 2e-4, (a, b)
PYTHON
}

for strategy in "bcast:chain(box) bcast:star(gpu) segments=16" "bcast:mst(box*gpu)"; do
    run 0 "${bcast[@]}" --strategy "$strategy" --svg "$scratch/moves.svg" --trace "$scratch/trace.json"
    moving "$scratch/moves.svg" "$scratch/trace.json"
    picture=docs/pictures/bcast-$([[ $strategy == *mst* ]] && echo flat || echo composed).svg
    cmp -s "$scratch/moves.svg" "$picture" || fail "$picture is not what simulate --svg draws"
done
run 0 simulate allreduce --mesh box=4,gpu=4 --links "lab,box=gap:0us" --bytes 4M --strategy "hierarchical segments=8" \
    --svg "$scratch/many.svg" --trace "$scratch/trace.json"
moving "$scratch/many.svg" "$scratch/trace.json"

# Ranks in other places, boxes of unequal sizes; a rank alone.
run 0 simulate allreduce --mesh box=3+2+4 --bytes 1M --order 8,7,6,5,4,3,2,1,0 --svg "$scratch/order.svg" \
    --trace "$scratch/trace.json"
moving "$scratch/order.svg" "$scratch/trace.json"
run 0 simulate bcast --mesh gpu=1 --bytes 1M --svg "$scratch/alone.svg"
python3 -c 'import sys, xml.etree.ElementTree as t; t.parse(sys.argv[1])' "$scratch/alone.svg" || fail "one rank alone"
# Nothing, in no time.
run 0 simulate bcast --mesh x=4 --bytes 0 --links "x=alpha:0us;beta:1GB/s" --svg "$scratch/none.svg"
! grep -E '[";-](nan|inf)[";]' "$scratch/none.svg" || fail "numbers of no time"

# More ranks than a page shows: the links' loads, no motion.
run 0 simulate allreduce --mesh box=128,gpu=8 --links dgx-h100 --bytes 64M --network "tree=16:8:50GB/s/8:4:50GB/s;ecmp" \
    --svg "$scratch/large.svg"
for words in "leaf up, 512 links" "spine down, 256 links" "allreduce of 64 MiB on box=128,gpu=8" "lower bound"; do
    grep -qF ">$words<" "$scratch/large.svg" || fail "no '$words' in the picture of 1024 ranks"
done
run 0 simulate allreduce --mesh pod=8,box=160,gpu=8 --links dgx-h100 --bytes 1G --network tree=64:32:50GB/s/160 \
    --strategy "reduce_scatter:ring(gpu) allreduce:ring(pod*box) allgather:ring(gpu)" --svg "$scratch/large.svg"
grep -qF ">leaf up, 1280 links<" "$scratch/large.svg" || fail "the ring has 1280 links up to the spines"
! grep -q "<animate" "$scratch/large.svg" || fail "the picture of 1024 ranks moves"

refused "--svg goes without --top" "${bcast[@]}" --top 2 --svg "$scratch/none.svg"
run 1 "${bcast[@]}" --svg /nowhere/moves.svg
[[ $err == *"/nowhere/moves.svg cannot be written"* ]] || fail "strange: $err"

chromium=$(command -v chromium chromium-browser google-chrome | head -1)
browse() {
    timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$scratch/profile" \
        --enable-logging=stderr "$@" 2>&1
}
if [ -n "$chromium" ]; then browse --screenshot="$scratch/blank.png" about:blank >/dev/null; fi
if [ ! -s "$scratch/blank.png" ]; then
    [ $failures -eq 0 ] || finish
    echo "skipped: no Chromium that draws, to look at the picture with"
    exit 77
fi

# at SECONDS: a page with the picture, stopped there; it says where dots, cursor and the fills of tiles are.
at() {
    cat - docs/pictures/bcast-composed.svg <<<'<body style="margin:0">' >"$scratch/$1.html"
    cat >>"$scratch/$1.html" <<EOT
<script>
const svg = document.querySelector("svg"), middle = e => { const r = e.getBoundingClientRect();
    return [r.x + r.width / 2, r.y + r.height / 2]; };
svg.pauseAnimations();
svg.setCurrentTime($1);
requestAnimationFrame(() => requestAnimationFrame(() => console.log("JSON" + JSON.stringify({
    dots: [...svg.querySelectorAll("circle")].filter(c => c.firstChild).map(middle),
    ranks: [...svg.querySelectorAll("text.r")].map(middle),
    full: [...svg.querySelectorAll("rect.f[transform]")].map(r => r.height.animVal.value),
    cursor: middle(svg.querySelector("path > animateTransform").parentNode)[0]}) + "END")));
</script>
EOT
    browse --window-size=880,460 --screenshot="$scratch/$1.png" "file://$scratch/$1.html" |
        sed -n 's/.*JSON\({.*}\)END.*/\1/p' >"$scratch/$1.json"
}

# At the begin, at the end, and after a fifth of the period, 42 of 189 ms: each box has less than the one before it.
period=$(grep -om1 'dur="[0-9.]*' docs/pictures/bcast-composed.svg | cut -c6-)
moments=(0 "$(python3 -c "print($period * 0.2)")" "$(python3 -c "print($period * 0.97)")")
for moment in "${moments[@]}"; do
    at "$moment"
done
python3 - "$scratch" "${moments[@]}" <<'PYTHON' || fail "what Chromium shows"
import json, sys
start, middle, end = (json.load(open(f"{sys.argv[1]}/{t}.json")) for t in sys.argv[2:])
def under_way(page): # dots that no tile covers
    return sum(all(abs(x - rx) > 27 or abs(y - ry) > 20 for rx, ry in page["ranks"]) for x, y in page["dots"])
assert [under_way(p) for p in (start, end)] == [0, 0] and under_way(middle) >= 3, [under_way(p) for p in (start, middle, end)]
assert start["cursor"] < middle["cursor"] < end["cursor"], (start["cursor"], middle["cursor"], end["cursor"])
assert abs((middle["cursor"] - start["cursor"]) / (end["cursor"] - start["cursor"]) - 0.2 * 54 / 48) < 0.01
assert max(start["full"][1:]) < 1 and min(end["full"]) > 37, (start["full"], end["full"])
assert 37 < middle["full"][1] and 1 < middle["full"][12] < middle["full"][8] < middle["full"][4] < 37, middle["full"]
PYTHON
for pair in "0 1" "0 2" "1 2"; do
    first=$scratch/${moments[${pair% *}]}.png second=$scratch/${moments[${pair#* }]}.png
    [ -s "$first" ] && [ -s "$second" ] && ! cmp -s "$first" "$second" || fail "$first and $second show the same"
done
finish
