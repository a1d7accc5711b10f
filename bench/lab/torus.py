"""A torus of boxes: a NIC for each dimension, into the switch of the box's line along it.

A box has one address, whatever NIC a packet takes: routes tell. To a box of the same line it leaves by that
line's NIC; to any other it goes dimension by dimension, outermost first, through the boxes on the way, which
forward it (dimension-order routing: Dally and Seitz 1987).
"""

import math
import re

TEXT = re.compile(r"\d+(x\d+)+")


def parse(text):
    """The extents of '4x4', outermost first; None where that is none."""
    extents = [int(one) for one in text.split("x")] if TEXT.fullmatch(text) else []
    return extents if extents and min(extents) >= 2 else None


def coordinates(extents, index):
    found = []
    for extent in reversed(extents):
        index, at = divmod(index, extent)
        found.insert(0, at)
    return found


def index_of(extents, at):
    index = 0
    for extent, one in zip(extents, at):
        index = index * extent + one
    return index


def line(extents, dim, index):
    """Which of the lines along `dim` a box is on."""
    at = coordinates(extents, index)
    return index_of(extents[:dim] + extents[dim + 1:], at[:dim] + at[dim + 1:])


def lines(extents):
    """Every line, as (dim, number)."""
    return [(dim, number) for dim, extent in enumerate(extents) for number in range(math.prod(extents) // extent)]


def next_hop(extents, source, target):
    """(the dimension a packet leaves along, the box it comes to)."""
    here, there = coordinates(extents, source), coordinates(extents, target)
    dim = next(d for d in range(len(extents)) if here[d] != there[d])
    return dim, index_of(extents, here[:dim] + [there[dim]] + here[dim + 1:])


def box_routes(extents, source, address):
    """Commands for a box's routes; eth0 leads to its whole subnet where none says otherwise."""
    commands = []
    for target in range(math.prod(extents)):
        if target == source:
            continue
        dim, hop = next_hop(extents, source, target)
        via = "" if hop == target else f"via {address(hop)} "
        onlink = " onlink" if via else ""
        commands.append(f"ip route add {address(target)}/32 {via}dev eth{dim} src {address(source)}{onlink}")
    return commands


# Packets come in by another NIC than answers leave by, and transit is no mistake to tell the sender of.
FORWARD = """
    echo 1 > /proc/sys/net/ipv4/ip_forward
    for scope in /proc/sys/net/ipv4/conf/*; do
        echo 0 > $scope/rp_filter
        echo 0 > $scope/send_redirects
        echo 0 > $scope/accept_redirects
    done"""
