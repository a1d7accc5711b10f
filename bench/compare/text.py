"""Small pieces of a report: numbers as people read them, and tables."""


def time_text(seconds):
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.2f} us"


def ratio_text(value):
    return "-" if value is None else f"{value:.2f}"


def exact_text(value):
    """A miss by less than half a hundredth must not read as none."""
    digits = next((n for n in (2, 3, 4) if f"{value:.{n}f}" != f"{1:.{n}f}"), 2)
    return f"{value:.{digits}f}"


def percent_text(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def spread_text(times):
    if times.median is None:
        return "-"
    if times.turns < 2:
        return f"{time_text(times.median)} ({'1 turn' if times.turns else 'screening'})"
    return f"{time_text(times.median)} ({time_text(times.low)} to {time_text(times.high)})"


def count_text(cells):
    return "1 cell" if cells == 1 else f"{cells} cells"


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(str(one).replace("|", "\\|") for one in row) + " |"
    yield ""
