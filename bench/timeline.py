#!/usr/bin/env python3
"""Draws a timeline that meshcoll-bench --timeline recorded: ranks down, time to the right.

Each rank has a lane per dimension it sends or receives along (sent above, received below) and one for
local work. A received message is drawn while it is under way, a sent one until its sender is done with
it; a thin line joins the two. Numbers are segments. A dark strip under each box says when messages
of two dimensions were under way at once. Needs nothing but Python.

  bench/timeline.py out/t.json                        # writes out/t.svg
  bench/timeline.py out/t.json --from 40 --to 90 --ranks 0-7 -o detail.svg
"""

import argparse
import json
import math
import os
import sys
from xml.sax.saxutils import escape

# Okabe and Ito's colours, as in plot.py: one per dimension, then local work.
DIM_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
LOCAL_COLOURS = {"copy": "#6f7782", "reduce": "#7b3294"}
NOTHING = "#b9bec6"
INK, GREY, FAINT, BAND = "#1d232b", "#5b6470", "#e3e7ec", "#f5f7fa"
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"

LEFT, RIGHT, TOP = 158, 24, 112
BAR, ROW, STRIP, LANE_GAP, RANK_GAP, BOX_GAP = 10, 4, 4, 3, 7, 16


class TimelineError(Exception):
    pass


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
        about = whole["otherData"]
        spans = [event for event in whole["traceEvents"] if event["ph"] == "X"]
        if about["program"] != "meshcoll-bench":
            raise ValueError("written by another program")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TimelineError(f"{path}: expected a timeline of meshcoll-bench; {error}") from None
    if not spans:
        raise TimelineError(f"{path}: there are no steps to draw")
    return about, spans


def parse_ranks(text, n):
    """"0-3,8" to a set; all n without a text."""
    if text is None:
        return set(range(n))
    try:
        ranks = set()
        for item in text.split(","):
            low, _, high = item.partition("-")
            ranks |= set(range(int(low), int(high or low) + 1))
    except ValueError:
        raise TimelineError(f"--ranks: expected numbers such as 0-3,8; came {text!r}") from None
    if not ranks & set(range(n)):
        raise TimelineError(f"--ranks: the ranks are 0 to {n - 1}; came {text!r}")
    return ranks & set(range(n))


def print_bytes(value):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} B"


def mix(colour, share):
    """`colour` with that share of white."""
    parts = [int(colour[i:i + 2], 16) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(part + (255 - part) * share):02x}" for part in parts)


def tick_step(span, wanted):
    """A step of 1, 2 or 5 times a power of ten that gives about that many ticks."""
    power = 10 ** math.floor(math.log10(span / wanted))
    return next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= wanted)


def coordinates(rank, dims):
    found = []
    for dim in reversed(dims):
        found.insert(0, rank % dim["extent"])
        rank //= dim["extent"]
    return found


def lane_key(event):
    """Which lane of its rank a span stands in, and which part of that lane."""
    if event["cat"] == "local":
        return "local", "work"
    return event["args"]["dim"], "out" if event["name"] == "send" else "in"


def pair_messages(spans):
    """Both ends of each message, where both are there: (send, recv)."""
    ends = {}
    for event in spans:
        if event["cat"] == "message":
            args, me = event["args"], event["pid"]
            pair = (me, args["peer"]) if event["name"] == "send" else (args["peer"], me)
            ends.setdefault((*pair, args["message"]), {})[event["name"]] = event
    return [(ends_of["send"], ends_of["recv"]) for ends_of in ends.values() if len(ends_of) == 2]


def two_at_once(messages):
    """Intervals in which messages of two dimensions are under way; milliseconds."""
    edges = []
    for _send, recv in messages:
        dim = recv["args"]["dim"]
        edges += [(recv["ts"] / 1e3, 1, dim), ((recv["ts"] + recv["dur"]) / 1e3, -1, dim)]
    found, flying, since = [], {}, None
    for at, by, dim in sorted(edges):
        flying[dim] = flying.get(dim, 0) + by
        both = sum(count > 0 for count in flying.values()) > 1
        if both and since is None:
            since = at
        elif not both and since is not None:
            found.append((since, at))
            since = None
    return found


class Lane:
    """A strip of one rank: sends above, receives below; overlapping ones share the height."""

    def __init__(self, rank, name, y, parts):
        self.rank, self.name, self.y, self.parts = rank, name, y, parts
        self.part_y, self.row = {}, {}
        for part in ("out", "in", "work"):
            if part in parts:
                height = max(BAR, ROW * len(parts[part]))
                self.part_y[part], self.row[part] = y, height / len(parts[part])
                y += height + 1
        self.height = y - 1 - self.y

    def bar(self, part, tid):
        """Top and height of a bar."""
        rows, height = self.parts[part], self.row[part]
        return self.part_y[part] + rows.index(tid) * height, height


class Picture:
    def __init__(self, about, spans, args):
        self.about, self.width = about, args.width
        self.dims = about["dims"]
        self.total = about["seconds"] * 1e3
        self.begin = args.begin if args.begin is not None else 0.0
        self.end = args.end if args.end is not None else self.total
        if not self.begin < self.end:
            raise TimelineError("--from and --to leave no time to draw")
        ranks = parse_ranks(args.ranks, about["ranks"])
        self.spans = [event for event in spans if event["pid"] in ranks]
        self.all_messages, self.messages = pair_messages(spans), pair_messages(self.spans)
        self.colour = {dim["name"]: DIM_COLOURS[i % len(DIM_COLOURS)]
                       for i, dim in enumerate(self.dims)}
        self.out = []
        self.segmented = any(event["args"]["segment"] > 0 for event in self.spans)
        self.place(sorted(ranks))

    def place(self, ranks):
        """Lanes from the top down, boxes apart."""
        used = {}
        for event in self.spans:
            lane, part = lane_key(event)
            rows = used.setdefault(event["pid"], {}).setdefault(lane, {}).setdefault(part, set())
            rows.add(event["tid"])
        top = next((i for i, dim in enumerate(self.dims) if dim["extent"] > 1), 0)
        self.top, self.at_top = self.dims[top]["name"], top
        self.strips = len({send["args"]["dim"] for send, _recv in self.all_messages}) > 1
        names = [dim["name"] for dim in self.dims] + ["local"]
        self.lanes, self.boxes, self.rank_y = {}, [], {}
        y, last = TOP, None
        for rank in ranks:
            box = coordinates(rank, self.dims)[top]
            if box != last:
                y = self.end_box(y) + BOX_GAP if last is not None else y
                self.boxes.append([box, y, y])
                last = box
            first = y
            for name in names:
                parts = used.get(rank, {}).get(name)
                if parts:
                    lane = Lane(rank, name, y, {part: sorted(tids) for part, tids in parts.items()})
                    self.lanes[rank, name] = lane
                    y += lane.height + LANE_GAP
            if y == first:      # a rank without a step
                y += BAR + LANE_GAP
            y -= LANE_GAP
            self.rank_y[rank] = (first, y)
            y += RANK_GAP
        self.bottom = self.end_box(y) + 8

    def end_box(self, y):
        """Closes the last box, with room for its strip."""
        self.boxes[-1][2] = y + STRIP if self.strips else y - RANK_GAP
        return self.boxes[-1][2]

    def x(self, milliseconds):
        share = (milliseconds - self.begin) / (self.end - self.begin)
        return LEFT + share * (self.width - LEFT - RIGHT)

    # Elements ----------------------------------------------------------------------------------

    def text(self, x, y, text, size=11, colour=INK, anchor="start", weight="normal", more=""):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" '
                        f'text-anchor="{anchor}" font-weight="{weight}"{more}>{escape(text)}</text>')

    def rect(self, x, y, width, height, fill, stroke=None, title=None, radius=1.0):
        line = f' stroke="{stroke}" stroke-width="0.7"' if stroke else ""
        inside = f"<title>{escape(title)}</title>" if title else ""
        self.out.append(f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
                        f'rx="{radius}" fill="{fill}"{line}>{inside}</rect>')

    def line(self, x1, y1, x2, y2, colour, width=1.0, opacity=1.0):
        self.out.append(f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" '
                        f'stroke="{colour}" stroke-width="{width}" opacity="{opacity:.2f}"/>')

    # Parts -------------------------------------------------------------------------------------

    def draw_head(self):
        about = self.about
        what = f"{about['collective']} of {print_bytes(about['bytes'])} on {about['mesh']}"
        if about.get("rate"):
            what += f", network {about['rate']}"
        self.text(16, 30, about["strategy"], 17, weight="bold")
        shares = " · ".join(f"{dim['name']} links busy {100 * dim['busy']:.0f} %"
                            for dim in self.dims)
        if len(self.dims) > 1:
            shares += f" · two dimensions at once {100 * about['two_at_once']:.1f} %"
        label = "" if about["label"] == about["strategy"] else f"{about['label']}: "
        self.text(16, 50, f"{label}{what}  ·  {self.total:.2f} ms  ·  {about['date'][:10]}", 12, GREY)
        self.text(16, 67, f"in the average {self.top}: {shares}", 12, GREY)

    def draw_legend(self):
        x, y = 16, 80
        items = []
        for name, colour in self.colour.items():
            if any(lane == name for _, lane in self.lanes):
                items += [(mix(colour, 0.72), colour, f"sent along {name}"),
                          (colour, None, f"received along {name}")]
        have = {event["name"] for event in self.spans if event["cat"] == "local"}
        items += [(LOCAL_COLOURS[name], None, f"local {name}") for name in LOCAL_COLOURS
                  if name in have]
        for fill, stroke, label in items:
            self.rect(x, y, 18, BAR, fill, stroke)
            self.text(x + 23, y + 9, label, 11)
            x += 38 + 6.6 * len(label)
        self.line(x, y + BAR, x + 18, y, GREY, 1.1, 0.8)
        self.text(x + 23, y + 9, "a message", 11)
        x += 100
        if self.strips:
            self.rect(x, y + 3, 18, STRIP, INK, radius=0)
            self.text(x + 23, y + 9, "two dimensions at once", 11)
            x += 180
        if self.segmented:
            self.text(x, y + 9, "numbers and shades: segments", 11, GREY)

    def draw_grid(self):
        for _box, y1, y2 in self.boxes:
            self.rect(8, y1 - 6, self.width - 16, y2 - y1 + 12, BAND, radius=4)
        step = tick_step(self.end - self.begin, 12)
        digits = max(0, -math.floor(math.log10(step)))
        at = math.ceil(self.begin / step - 1e-9) * step
        while at <= self.end + step * 1e-6:
            x = self.x(at)
            self.line(x, TOP - 8, x, self.bottom, FAINT)
            self.line(x, self.bottom, x, self.bottom + 5, GREY)
            self.text(x, self.bottom + 18, f"{at:.{digits}f}", 11, GREY, "middle")
            at += step
        self.line(LEFT, self.bottom, self.width - RIGHT, self.bottom, GREY)
        self.text((LEFT + self.width - RIGHT) / 2, self.bottom + 36,
                  "milliseconds since the first rank's start", 11, GREY, "middle")

    def draw_labels(self):
        inner = [i for i, dim in enumerate(self.dims) if dim["name"] != self.top
                 and dim["extent"] > 1]
        for box, y1, _y2 in self.boxes:
            self.text(16, y1 + 9, f"{self.top} {box}", 11.5, weight="bold")
        for rank, (y1, _y2) in self.rank_y.items():
            coord = coordinates(rank, self.dims)
            name = ", ".join(f"{self.dims[i]['name']} {coord[i]}" for i in inner)
            if name:
                self.text(64, y1 + 9, name, 10.5)
        for _box, _y1, y2 in self.boxes if self.strips else []:
            self.text(LEFT - 8, y2 + 1, "two at once", 9, GREY, "end")
        for lane in self.lanes.values():
            colour = self.colour.get(lane.name, GREY)
            self.text(LEFT - 8, lane.y + lane.height / 2 + 3.3, lane.name, 9, colour, "end")
            self.line(LEFT, lane.y + lane.height / 2, self.width - RIGHT,
                      lane.y + lane.height / 2, mix(colour, 0.8), 0.6)

    def draw_messages(self):
        """From the send's start to the receive's end."""
        opacity = min(0.75, max(0.12, 120 / (len(self.messages) + 1)))
        for send, recv in self.messages:
            y1, y2 = (self.lanes[event["pid"], event["args"]["dim"]] for event in (send, recv))
            (top1, high1), (top2, high2) = y1.bar("out", send["tid"]), y2.bar("in", recv["tid"])
            colour = self.colour[send["args"]["dim"]]
            self.line(self.x(send["ts"] / 1e3), top1 + high1 / 2,
                      self.x((recv["ts"] + recv["dur"]) / 1e3), top2 + high2 / 2,
                      colour, 0.8, opacity)

    def draw_strips(self):
        def box_of(event):
            return coordinates(event["pid"], self.dims)[self.at_top]

        for box, _y1, y2 in self.boxes if self.strips else []:
            mine = [pair for pair in self.all_messages if box in map(box_of, pair)]
            for begin, end in two_at_once(mine):
                x = self.x(begin)
                self.rect(x, y2 - STRIP, max(0.8, self.x(end) - x), STRIP, INK, radius=0,
                          title=f"two dimensions at once, {begin:.3f} ms + {end - begin:.3f} ms")

    def fills(self, event):
        shade = 0.28 if event["args"]["segment"] % 2 else 0.0
        if event["cat"] == "local":
            return mix(LOCAL_COLOURS.get(event["name"], NOTHING), shade), None, "#ffffff"
        colour = self.colour[event["args"]["dim"]]
        if event["name"] == "send":
            return mix(colour, 0.72 + shade / 3), colour, colour
        return mix(colour, shade), None, "#ffffff"

    def draw_bar(self, event):
        args = event["args"]
        name, part = lane_key(event)
        y, height = self.lanes[event["pid"], name].bar(part, event["tid"])
        x1 = self.x(event["ts"] / 1e3)
        width = max(1.2, self.x((event["ts"] + event["dur"]) / 1e3) - x1)
        fill, stroke, ink = self.fills(event)
        title = (f"rank {event['pid']}, step {args['step']}: {event['name']}"
                 + (f" {'to' if event['name'] == 'send' else 'from'} {args['peer']}"
                    if "peer" in args else "")
                 + f", chunks {args['chunks']}, segment {args['segment']}, "
                   f"{print_bytes(args['bytes'])}, {event['ts'] / 1e3:.3f} ms "
                   f"+ {event['dur'] / 1e3:.3f} ms")
        inset = 0.35 if stroke else 0
        self.rect(x1 + inset, y + inset, max(0.5, width - 2 * inset), height - 2 * inset, fill,
                  stroke, title)
        number = str(args["segment"])
        if self.segmented and height >= 8 and width > 5 + 5.5 * len(number):
            self.text(x1 + width / 2, y + height / 2 + 2.9, number, 8, ink, "middle")

    def draw(self):
        height = self.bottom + 50
        self.out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" '
                    f'height="{height:.0f}" viewBox="0 0 {self.width} {height:.0f}" '
                    f'font-family="{FONT}">',
                    f'<clipPath id="plot"><rect x="{LEFT}" y="0" '
                    f'width="{self.width - LEFT - RIGHT + 2}" height="{height:.0f}"/></clipPath>']
        self.rect(0, 0, self.width, height, "#ffffff", radius=0)
        self.draw_grid()
        self.draw_head()
        self.draw_legend()
        self.draw_labels()
        self.out.append('<g clip-path="url(#plot)">')
        self.draw_strips()
        self.draw_messages()
        for event in self.spans:
            self.draw_bar(event)
        self.out.append("</g></svg>\n")
        return "\n".join(self.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", metavar="FILE", nargs="+", help="JSON of meshcoll-bench --timeline")
    parser.add_argument("-o", "--output", metavar="SVG", help="default: FILE with .svg")
    parser.add_argument("--from", dest="begin", type=float, metavar="MS", help="draw from there …")
    parser.add_argument("--to", dest="end", type=float, metavar="MS", help="… to there")
    parser.add_argument("--ranks", metavar="LIST", help="these ranks only: 0-3,8")
    parser.add_argument("--width", type=int, default=1500, metavar="PIXELS", help="1500")
    args = parser.parse_args()
    if args.output and len(args.traces) > 1:
        parser.error("-o takes one FILE")
    try:
        for path in args.traces:
            drawn = Picture(*read(path), args).draw()
            with open(args.output or os.path.splitext(path)[0] + ".svg", "w",
                      encoding="utf-8") as file:
                file.write(drawn)
    except (TimelineError, OSError) as error:
        print(f"timeline.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
