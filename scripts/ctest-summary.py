#!/usr/bin/env python3
"""Counts ctest's JUnit files: names what failed or was skipped, and why.

usage: scripts/ctest-summary.py <junit.xml>…
Last line: passed failed skipped, as three numbers.
"""

import sys
import xml.etree.ElementTree as ElementTree


def reason(case):
    """The line of a skipped test that says why: the first one with 'skip', else its first one."""
    lines = [s.strip() for s in (case.findtext("system-out") or "").splitlines() if s.strip()]
    said = [s for s in lines if "skip" in s.lower()]
    return (said or lines or ["it printed no reason"])[0].removeprefix("skipped: ")


def main():
    passed = failed = skipped = 0
    for path in sys.argv[1:]:
        suite = ElementTree.parse(path).getroot()
        for case in suite.iter("testcase"):
            name, skip = case.get("name"), case.find("skipped")
            if case.get("status") == "run":
                passed += 1
            # A program that was not built is "skipped" too, with another message.
            elif skip is not None and skip.get("message", "").startswith("SKIP_RETURN_CODE"):
                skipped += 1
                print(f"skipped: {name}: {reason(case)}")
            else:
                failed += 1
                print(f"FAILED: {name} ({path})")
    print(passed, failed, skipped)


if __name__ == "__main__":
    main()
