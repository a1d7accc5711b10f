"""Groups over stores as programs have them: of the program's own, with what a store needs alone; used again, by
processes that had a group and by new ones; and where one rank cannot make its group. Starts the ranks itself:
torchrun's environment would be in the way."""

import datetime
import importlib.util
import os
import shutil
import sys
import time

import torch
import torch.distributed as dist

import jobs
from common import raises
from meshcoll import _torch

RANKS = 3
LIMIT = 60  # seconds of the groups


class Own(dist.Store):
    """set, get, add and wait, and nothing else."""

    def __init__(self, port):
        super().__init__()
        self.tcp = dist.TCPStore("127.0.0.1", port, None, False)

    def set(self, key, value):
        self.tcp.set(key, value)

    def get(self, key):
        return self.tcp.get(key)

    def add(self, key, number):
        return self.tcp.add(key, number)

    def wait(self, keys, timeout=datetime.timedelta(seconds=LIMIT)):
        end = time.monotonic() + timeout.total_seconds()
        while not self.tcp.check(keys):
            if time.monotonic() >= end:
                raise LookupError(f"no {keys} within {timeout}")
            time.sleep(0.001)


class Broken(Own):
    """It cannot wait."""

    def wait(self, keys, timeout=None):
        raise OSError("this store is broken")


class Slow(Own):
    """It has what it tells only a second later."""

    def get(self, key):
        time.sleep(1)
        return super().get(key)


def tcp(port):
    return dist.TCPStore("127.0.0.1", port, None, False)


def begin(store, rank, size=RANKS, seconds=LIMIT):
    dist.init_process_group("meshcoll", store=store, rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=seconds))


def use(group=None):
    x = torch.full((1000,), float(dist.get_rank(group)))
    dist.all_reduce(x, group=group)
    n = dist.get_world_size(group)
    assert x[999] == n * (n - 1) / 2, f"{x[999]} of {n} ranks"


def own(rank, port):
    """Groups, several at a time, and barriers that a store makes, which the program does not keep."""
    begin(Own(port), rank)
    use()
    groups = [dist.new_group() for _ in range(3)] + [dist.new_group([0, 1])]
    for group in groups[:3] + groups[3:] * (rank < 2):
        use(group)
    for _ in range(3):
        dist.monitored_barrier()
    dist.destroy_process_group()


def own_is_broken(rank, port):
    """Rank 1 is told by its store, the others by rank 1: no limit ends."""
    begin(Broken(port) if rank == 1 else Own(port), rank)
    words = ["this store is broken"] if rank == 1 else ["rank 1 could not make the group", "this store is broken"]
    raises(dist.DistBackendError, words, use)


def late_to_broken(rank, port):
    """The others come when rank 1 has ended."""
    gone = tcp(port)
    if rank != 1:
        gone.wait(["gone"])
    begin(Broken(port) if rank == 1 else Own(port), rank)
    raises(dist.DistBackendError, ["this store is broken"] + ["rank 1"] * (rank != 1), use)
    gone.set("gone", "")


def other_mesh(rank, port):
    """A group that was not made is told of, and made again over the same store."""
    store = tcp(port)
    if rank == 0:
        os.environ["MESHCOLL_MESH"] = "nonsense"
    begin(store, rank)
    raises(dist.DistBackendError, ["nonsense"], use)
    dist.destroy_process_group()
    os.environ.pop("MESHCOLL_MESH", None)
    begin(store, rank)
    use()
    dist.destroy_process_group()


def survivors(rank, port):
    """Rank 1 is another process each time; over one store, and over prefixes of it."""
    store = tcp(port)
    for attempt in range(4):
        if rank == 1 and attempt > 0:
            if os.fork():  # the one that had a group ends
                os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
            os.execv(sys.executable, [sys.executable, __file__, "fresh", str(attempt), str(port)])
        begin(store if attempt < 2 else dist.PrefixStore(f"attempt {attempt}", store), rank)
        use()
        use(dist.new_group())
        dist.destroy_process_group()
    if rank == 1:
        return


def fresh(attempt, port):
    """A new process in the place of rank 1 of survivors; it starts the next one."""
    store = tcp(port)
    begin(store if attempt < 2 else dist.PrefixStore(f"attempt {attempt}", store), 1)
    use()
    use(dist.new_group())
    dist.destroy_process_group()
    if attempt < 3:
        os.execv(sys.executable, [sys.executable, __file__, "fresh", str(attempt + 1), str(port)])


def left_at_once(rank, port):
    """Rank 0 leaves a group that it has not used, while another rank still reads what it answered. A store without
    deletion has no such trouble."""
    begin(tcp(port), rank)
    use()
    store = Slow(port) if rank == 1 else tcp(port)
    group = _torch.create(store=dist.PrefixStore("short", store), rank=rank, size=RANKS, timeout=20.0, mesh=None, name="",
                          tag=0)
    x = torch.full((10,), float(rank))
    if rank == 1:
        group.send([x], 2, 0).wait()
    elif rank == 2:
        group.recv([x], 1, 0).wait()
        assert x[9] == 1
    group.shutdown()
    dist.barrier()
    dist.destroy_process_group()


def thousand_years(rank, port):
    """A limit that no clock counts."""
    begin(tcp(port), rank, seconds=1000 * 365.25 * 86400)
    use()
    dist.monitored_barrier()
    x = torch.ones(1)
    dist.all_reduce(x, async_op=True).wait(datetime.timedelta(days=1000 * 365))
    dist.destroy_process_group()


def trainer_and_server(rank, port):
    """Ranks 0 and 1 are a job with a mesh of its own; rank 2 is of another, as a server that takes weights."""
    os.environ["MESHCOLL_MESH"] = "gpu=2" if rank < 2 else "gpu=1"
    os.environ["WORLD_SIZE"] = "2" if rank < 2 else "1"
    store = tcp(port)
    if rank < 2:
        begin(dist.PrefixStore("trainer", store), rank, 2)
        use()
    options = {"group_name": "weights", "timeout": datetime.timedelta(seconds=LIMIT)}
    weights, _ = dist.distributed_c10d._new_process_group_helper(RANKS, rank, [], "meshcoll", store, **options)
    x = torch.full((1000,), float(rank))
    weights.broadcast([x], dist.BroadcastOptions()).wait()
    assert x[0] == 0
    if rank < 2:
        use(dist.new_group([0, 1]))


def no_etcd():
    """Why there is none; None where there is."""
    if not importlib.util.find_spec("etcd"):
        return "python-etcd is not installed (pip install python-etcd)"
    return None if shutil.which("etcd") else "there is no etcd (Debian: etcd-server)"


def etcd_store(rank, port):
    """torch's, which has no deleteKey; rank 0 starts its server."""
    import etcd
    from torch.distributed.elastic.rendezvous.etcd_server import EtcdServer
    from torch.distributed.elastic.rendezvous.etcd_store import EtcdStore

    ranks = tcp(port)
    if rank == 0:
        server = EtcdServer()
        server.start()
        ranks.set("etcd", str(server.get_port()))
    client = etcd.Client("127.0.0.1", int(ranks.get("etcd")), allow_reconnect=True)
    for turn in range(2):  # again over the same store
        begin(EtcdStore(client, "/job"), rank)
        use()
        part = dist.new_group([0, 2])
        if rank != 1:
            use(part)
        dist.destroy_process_group()
    ranks.add("ended", 1)
    while rank == 0 and ranks.add("ended", 0) < RANKS:
        time.sleep(0.01)
    if rank == 0:
        server.stop()


if __name__ == "__main__":
    why, cases = no_etcd(), [own, own_is_broken, late_to_broken, other_mesh, survivors, left_at_once, thousand_years,
                             trainer_and_server]
    if why and len(sys.argv) == 1:
        print(f"skipped: etcd_store: {why}")
    jobs.main_of_cases(cases + ([] if why else [etcd_store]), RANKS, LIMIT - 10, [fresh])
