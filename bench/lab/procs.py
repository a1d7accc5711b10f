"""Processes and their namespaces, read from /proc."""

import os
import signal
import time

KINDS = ("net", "pid", "mnt", "uts", "ipc")


def pids():
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def environ(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            pairs = f.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def status(pid):
    """The fields of /proc/PID/status; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    except OSError:
        return {}


def is_running(pid):
    return status(pid).get("State", "Z")[0] not in "ZX"


def nspid(pid):
    """The process's number in each pid namespace, ours first."""
    return [int(n) for n in status(pid).get("NSpid", "").split()]


def namespaces(pid):
    found = set()
    for kind in KINDS:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
        except OSError:
            pass
    return found


def foreign_namespaces(some_pids):
    """Namespaces of these processes that are not our own: ours must never be swept."""
    found = set()
    for pid in some_pids:
        found |= namespaces(pid)
    return found - namespaces("self")


def inside(spaces):
    """Running processes that are in at least one of these namespaces."""
    return [p for p in pids() if namespaces(p) & spaces and is_running(p)]


def command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def kill(some_pids, signum=signal.SIGKILL):
    for pid in some_pids:
        try:
            os.kill(pid, signum)
        except OSError:
            pass


def kill_until_none(find, patience=10.0):
    """Kill what find() returns until it returns nothing; all pids ever killed, and what stayed.

    Again and again, because a process may fork between the look and the kill.
    """
    killed = set()
    end = time.monotonic() + patience
    pause = 0.002
    while True:
        victims = find()
        if not victims or time.monotonic() > end:
            return killed, victims
        killed.update(victims)
        kill(victims)
        time.sleep(pause)
        pause = min(2 * pause, 0.1)
