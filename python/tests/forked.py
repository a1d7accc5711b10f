"""Children of fork, after each kind of use in the parent: they make groups of their own, and the parent's live on.
Starts the ranks itself, so that children find a store of their own."""

import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import jobs
from common import raises

RANKS, LIMIT = 2, 60  # seconds of groups


def begin(rank, port, name):
    store = dist.PrefixStore(name, dist.TCPStore("127.0.0.1", port, None, False))
    dist.init_process_group("meshcoll", store=store, rank=rank, world_size=RANKS,
                            timeout=datetime.timedelta(seconds=LIMIT))


def futures(group=None):
    """Two, of which one is complete in the other's callback."""
    x, y = torch.ones(1000), torch.ones(1000)

    def then(_):
        dist.all_reduce(y, group=group)
        return y[0]

    got = dist.all_reduce(x, group=group, async_op=True).get_future().then(then).wait()
    assert got == RANKS, got


def train(group=None):
    net = DistributedDataParallel(torch.nn.Linear(100, 100), process_group=group)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(8, 100)).sum().backward()
        optimizer.step()


def use(group=None):
    futures(group)
    train(group)
    dist.monitored_barrier(group) if group is None else dist.barrier(group)


def in_child(function, *arguments):
    """Runs it in a forked child; returns what waits for it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function(*arguments)
            status = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(status)
    return lambda: os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def anew(rank, port, name="child"):
    begin(rank, port, name)
    use()
    use(dist.new_group())
    dist.destroy_process_group()


def ended(rank, port):
    """The parent's groups have ended; children of a child, too."""
    anew(rank, port, "parent")

    def child():
        anew(rank, port)
        assert in_child(anew, rank, port, "grandchild")() == 0, "a child of the child failed"

    assert in_child(child)() == 0, "the child failed"
    anew(rank, port, "parent again")


def alive(rank, port):
    """The parent's groups go on, with a work that is not complete. The child may only forget them."""
    begin(rank, port, "parent")
    group = dist.new_group()
    use(), use(group)
    x = torch.ones(1)
    work = dist.irecv(x, 1) if rank == 0 else None

    def child():
        words = ["a forked process cannot use the process group of its parent"]
        raises(RuntimeError, words, dist.all_reduce, torch.ones(1))
        if work:
            raises(RuntimeError, words, work.wait)
            raises(RuntimeError, words, work.get_future)
        group._get_backend(torch.device("cpu")).abort()
        begun = time.monotonic()
        dist.destroy_process_group()
        assert time.monotonic() - begun < LIMIT / 2
        anew(rank, port)

    wait = in_child(child)
    use(), use(group)
    assert wait() == 0, "the child failed"
    dist.send(torch.full((1,), 7.0), 0) if rank == 1 else work.wait()
    assert rank == 1 or x[0] == 7
    use(), use(group)
    dist.destroy_process_group()


def leaving(rank, port):
    """A child that ends as a program does, with its atexit handlers, does not wait for the parent's groups."""
    begin(rank, port, "parent")
    use()
    if os.fork() == 0:
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
    use()
    dist.destroy_process_group()


if __name__ == "__main__":
    jobs.main_of_cases([ended, alive, leaving], RANKS, LIMIT)
