"""One scheduling group for all processes of a lab.

Linux divides cores between groups first and inside each group then, and without cgroups every session is a
group (autogroup). A box is a session: a rank that yields would leave its core to its own box only, and a
rank with work wait for boxes whose ranks only wait. On a cluster boxes share no cores.
"""

import os
import time

AUTOGROUP = "/proc/sys/kernel/sched_autogroup_enabled"


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def find(proc="/proc/self"):
    """Where the cpu controller is mounted, or None; and the group in it that we are in."""
    mounts = [line.split() for line in read(f"{proc}/mounts").splitlines()]
    for line in read(f"{proc}/cgroup").splitlines():     # version 2 stands last
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            return next((m[1] for m in mounts if m[2] == "cgroup" and "cpu" in m[3].split(",")), None), path
        if not controllers:
            at = next((m[1] for m in mounts if m[2] == "cgroup2"), None)
            return at if "cpu" in read(f"{at}/cgroup.subtree_control").split() else None, path
    return None, "/"


def group(lab):
    """The folder of the lab's group; None where none can be made, or what we start is in one of ours already."""
    at, path = find()
    return os.path.join(at, f"meshcoll-lab-{lab}") if at and path == "/" else None


def make(lab):
    path = group(lab)
    try:
        if path:
            os.makedirs(path, exist_ok=True)
    except OSError:
        pass                    # divided() tells


def divided(lab):
    """Do boxes share the cores box by box?"""
    path = group(lab)
    return (read(AUTOGROUP).strip() == "1" and find()[1] == "/"
            and not (path and os.access(os.path.join(path, "cgroup.procs"), os.W_OK)))


def door(lab):
    """A descriptor: whoever writes 0 to it is in the lab's group. None: there is no group."""
    path = group(lab)
    try:
        return os.open(os.path.join(path, "cgroup.procs"), os.O_WRONLY) if path else None
    except OSError:
        return None


def remove(lab):
    """When its processes are dead, of which the last may take a moment to be gone."""
    path = group(lab)
    end = time.monotonic() + 1.0
    while path and os.path.isdir(path) and time.monotonic() < end:
        try:
            os.rmdir(path)
        except OSError:
            time.sleep(0.01)
