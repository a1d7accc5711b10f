"""One of four ranks is killed while all are training: every other rank raises within 5 s, naming it. Starts the ranks
itself, since torchrun would end the others."""

import os
import signal
import subprocess
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANKS, VICTIM, SECONDS = 4, 2, 5


def step(net, optimizer):
    optimizer.zero_grad()
    net(torch.ones(8, 100)).sum().backward()
    optimizer.step()


def job(rank, port):
    import meshcoll.torch  # noqa: F401

    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, None, False)
    dist.init_process_group("meshcoll", store=store, rank=rank, world_size=RANKS)
    net = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(100, 500), torch.nn.Linear(500, 100)))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    for _ in range(5):
        step(net, optimizer)
    print("ready", flush=True)
    try:
        while True:
            step(net, optimizer)
    except dist.DistBackendError as error:
        print(f"{time.time()} {error}", flush=True)
    begin = time.monotonic()
    dist.destroy_process_group()
    print(f"destroyed in {time.monotonic() - begin:.1f} s", flush=True)


def main():
    store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    ranks = [
        subprocess.Popen([sys.executable, __file__, str(rank), str(store.port)], stdout=subprocess.PIPE, text=True)
        for rank in range(RANKS)
    ]
    for rank in ranks:
        assert rank.stdout.readline() == "ready\n", "a rank did not begin"
    time.sleep(0.5)
    killed = time.time()
    os.kill(ranks[VICTIM].pid, signal.SIGKILL)
    bad = []
    for number, rank in enumerate(ranks):
        out, _ = rank.communicate(timeout=60)
        if number == VICTIM:
            continue
        at, _, sentence = out.partition(" ")
        print(f"rank {number} after {float(at) - killed:.2f} s: {sentence.strip()}")
        if float(at) - killed > SECONDS or f"rank {VICTIM} " not in sentence or "destroyed in" not in sentence:
            bad.append(number)
        if rank.returncode != 0:
            bad.append(number)
    print(f"{'failed' if bad else 'passed'}: a rank is killed")
    sys.exit(bool(bad))


if __name__ == "__main__":
    job(int(sys.argv[1]), int(sys.argv[2])) if len(sys.argv) > 1 else main()
