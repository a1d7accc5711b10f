"""One of four ranks is killed while all are training, while their groups are idle, or before it joins a group, or it
raises while the others are training. Where they are training every other rank raises within 5 s, naming it; in all
cases the others end their groups and their process at once. Starts the ranks itself, since torchrun would end the
others. On CUDA tensors the case is a loop of sums."""

import contextlib
import datetime
import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import device

RANKS, VICTIM = 4, 2
RAISES, DESTROYS = 5, 5  # seconds
ENDS = 20  # seconds; a process waits for others for 10 s at its end


def training():
    """Until it fails."""
    net = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(100, 500), torch.nn.Linear(500, 100)))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)

    def step():
        optimizer.zero_grad()
        net(torch.ones(8, 100)).sum().backward()
        optimizer.step()

    for _ in range(5):
        step()
    print("ready", flush=True)
    try:
        while True:
            step()
    except dist.DistBackendError as error:
        print(f"{time.time()} {error}", flush=True)


def summing():
    """Until it fails: on a GPU, whose streams end when the mesh fails."""
    x = torch.ones(1000)
    dist.all_reduce(x)
    print("ready", flush=True)
    try:
        while True:
            dist.all_reduce(x)
            device.double.synchronize()
    except dist.DistBackendError as error:
        print(f"{time.time()} {error}", flush=True)


def idle():
    """Until the others see that it is dead."""
    print("ready", flush=True)
    sys.stdin.readline()


def joining():
    """The victim is killed first; the others begin groups with it."""
    print("ready", flush=True)
    sys.stdin.readline()
    group = dist.new_group(timeout=datetime.timedelta(seconds=30))
    return group, dist.all_reduce(torch.ones(1), group=group, async_op=True)


class Mistake(Exception):
    """Of the program, caught by nobody."""


def raising():
    """As training, until the victim raises. A thread of its own waits for the others, and is joined before it ends."""
    other = dist.new_group()
    dist.all_reduce(torch.ones(1), group=other)
    if dist.get_rank() == VICTIM:
        threading.Thread(target=wait_in, args=(other,)).start()
        signal.signal(signal.SIGUSR1, raise_mistake)
    training()


def wait_in(group):
    try:
        dist.all_reduce(torch.ones(1), group=group)
    except dist.DistBackendError:
        pass


def raise_mistake(*_):
    raise Mistake("of the program")


def job(what, rank, port):
    import meshcoll.torch  # noqa: F401

    torch.set_num_threads(1)
    if device.TYPE != "cpu":
        device.install(rank)
    store = dist.TCPStore("127.0.0.1", port, None, False)
    dist.init_process_group("meshcoll", store=store, rank=rank, world_size=RANKS)
    for group in (None, dist.new_group()):
        dist.all_reduce(torch.ones(1), group=group)
    kept = what()  # noqa: F841  (what still runs)
    begin = time.monotonic()
    dist.destroy_process_group()
    print(f"destroyed in {time.monotonic() - begin:.1f} s", flush=True)


def start(what, port):
    return [
        subprocess.Popen([sys.executable, __file__, what.__name__, str(rank), str(port)], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
        for rank in range(RANKS)
    ]


def problems(what, rank, lines, seconds):
    """What is wrong with what a survivor printed, `seconds` after the kill at the latest."""
    *raised, last = lines or [""]
    if not last.startswith("destroyed in ") or float(last.split()[2]) > DESTROYS:
        return f"destroy_process_group: {lines}"
    if seconds > ENDS:
        return f"its process ended after {seconds:.1f} s"
    if what in RAISE and not (raised and f"rank {VICTIM} " in raised[0]):
        return f"does not name rank {VICTIM}: {lines}"
    if what is raising and "Mistake: of the program" not in raised[0]:
        return f"does not say why rank {VICTIM} ended: {lines}"
    return ""


def case(what):
    store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    ranks = start(what, store.port)
    for rank in ranks:
        assert rank.stdout.readline() == "ready\n", "a rank did not begin"
    time.sleep(0.5)
    killed = time.time()
    os.kill(ranks[VICTIM].pid, signal.SIGUSR1 if what is raising else signal.SIGKILL)
    ranks[VICTIM].wait(timeout=60)
    for rank in ranks:
        if rank is not ranks[VICTIM]:
            with contextlib.suppress(BrokenPipeError):  # told, and ended
                rank.stdin.write("\n")
                rank.stdin.flush()
    bad = []
    for number, rank in enumerate(ranks):
        if number == VICTIM:
            continue
        lines = rank.communicate(timeout=60)[0].splitlines()
        why = problems(what, number, lines, time.time() - killed)
        if what in RAISE and not why and float(lines[0].split()[0]) - killed > RAISES:
            why = f"raised after {float(lines[0].split()[0]) - killed:.1f} s"
        if why or rank.returncode != 0:
            bad.append(f"rank {number}, exit status {rank.returncode}: {why}")
    title = "a rank raises" if what is raising else f"a rank is killed, the others are {what.__name__}"
    print(f"{'failed' if bad else 'passed'}: {title}", *bad, sep="\n  ",
          flush=True)
    return bool(bad)


RAISE = [training, summing, raising]
CASES = [training, raising, idle, joining] if device.TYPE == "cpu" else [summing]

if __name__ == "__main__":
    if len(sys.argv) > 1:
        job(globals()[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3]))
    else:
        sys.exit(any([case(what) for what in CASES]))
