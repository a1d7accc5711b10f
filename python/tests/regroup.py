"""Groups that a group is made into: split_group, merge, reconfigure; and torch's flight recorder of them.
torchrun --nproc-per-node 4 regroup.py [BACKEND]"""

import datetime
import json
import sys
import time

import torch
import torch.distributed as dist

import common
from common import raises

LIMIT = datetime.timedelta(seconds=30)


def summed(group, ranks):
    x = torch.full((100,), float(dist.get_rank()))
    dist.all_reduce(x, group=group)
    assert x[99] == sum(ranks), f"{x[99]}, expected {sum(ranks)}"


def splits(rank, size):
    """Halves, an order of its own, and a split that some ranks are not in; parts of parts."""
    half = size // 2
    halves = [list(range(half)), list(range(half, size))]
    group = dist.split_group(None, halves, timeout=LIMIT)
    mine = halves[rank // half]
    assert dist.get_process_group_ranks(group) == mine
    summed(group, mine)
    summed(dist.split_group(group, [[0], [1]]), [rank])  # on all ranks: torch counts groups for their names
    backwards = list(reversed(range(size)))
    group = dist.split_group(None, [backwards])
    assert dist.get_rank(group) == size - 1 - rank
    x = torch.tensor([float(rank)])
    dist.broadcast(x, group_src=0, group=group)
    assert x[0] == size - 1
    part = dist.split_group(None, [[1, 2]])
    if rank in (1, 2):
        summed(part, [1, 2])
    else:
        assert part == dist.GroupMember.NON_GROUP_MEMBER
    dist.barrier()


def split_sums_of_sparse(rank, size):
    """Over Gloo of the same ranks."""
    torch.sparse.check_sparse_tensor_invariants.enable()  # else torch warns
    group = dist.split_group(None, [[0, 1], [2, 3]])
    x = torch.sparse_coo_tensor([[rank]], [1.0], (size,))
    dist.all_reduce(x, group=group)
    want = torch.zeros(size)
    want[rank // 2 * 2:rank // 2 * 2 + 2] = 1
    assert torch.equal(x.to_dense(), want)


def handles_of(pg, name, ranks):
    """Of these ranks, in their order, exchanged over the store."""
    store = dist.distributed_c10d._get_default_store()
    store.set(f"{name}/{dist.get_rank()}", pg.get_reconfigure_handle())
    return [store.get(f"{name}/{r}").decode() for r in ranks]


def opts_of(uuid, handles):
    from torch._C._distributed_c10d import ReconfigureOptions
    options = ReconfigureOptions()
    options.uuid, options.handles, options.timeout = uuid, handles, LIMIT
    return options


def backend_of(rank, size, name):
    """A backend of the kind of the world's that begins with reconfigure."""
    store = dist.PrefixStore(name, dist.distributed_c10d._get_default_store())
    if dist.get_backend() == "gloo":
        options = dist.ProcessGroupGloo._Options()
        options.enable_reconfigure, options._devices = True, [dist.ProcessGroupGloo.create_default_device()]
        return dist.ProcessGroupGloo(store, rank, size, options)
    from meshcoll import torch as backend
    return backend._make(store, rank, size, LIMIT, [], begins=False)


def reconfigures(rank, size):
    """All ranks, then all but one, in an order of the program's, then all in one of the backend's."""
    pg = backend_of(rank, size, "reconfigured")
    assert pg.supports_reconfigure
    raises(RuntimeError, [], lambda: pg.allreduce([torch.ones(1)]).wait())
    for uuid, ranks in enumerate([list(range(size)), [3, 1, 2], list(range(size))]):
        handles = handles_of(pg, f"handles/{uuid}", range(size))
        dist.barrier()
        if rank in ranks:
            given = [handles[r] for r in ranks]
            pg.reconfigure(opts_of(uuid, set(given) if uuid == 2 else given)).wait()
            assert pg.size() == len(ranks) and (uuid == 2 or pg.rank() == ranks.index(rank))
            x = torch.full((1000,), float(rank))
            pg.allreduce([x]).wait()
            assert x[999] == sum(ranks), f"uuid {uuid}: {x[999]}"
            owners = torch.zeros(pg.size())
            owners[pg.rank()] = rank
            pg.allreduce([owners]).wait()
            assert sorted(owners.tolist()) == sorted(ranks), f"uuid {uuid}: {owners}"
    common.raises(ValueError, ["not among"], lambda: pg.reconfigure(opts_of(9, ["other"]))) if \
        dist.get_backend() != "gloo" else None
    dist.barrier()


def reconfigured_while_one_waits(rank, size):
    """What is begun on the ranks before fails, also where it waits for one that does not come; the others go on."""
    pg = backend_of(rank, size, "waiting")
    handles = handles_of(pg, "waiting/handles", range(size))
    pg.reconfigure(opts_of(1, handles)).wait()
    work = pg.allreduce([torch.ones(10)]) if rank < 3 else None
    dist.barrier()
    if rank < 3:
        time.sleep(0.1)
        pg.reconfigure(opts_of(2, handles[:3])).wait()
        x = torch.ones(10)
        pg.allreduce([x]).wait()
        assert x[9] == 3
        raises(RuntimeError, [], work.wait)
    dist.barrier()


def recorded(rank, size):
    """A collective that is complete reads so in a dump, one that waits does not."""
    name = dist.get_backend()
    group = dist.new_group(group_desc="recorded")
    store = dist.distributed_c10d._get_default_store()
    x = torch.ones(12345)
    dist.all_reduce(x, group=group)
    late = None
    if rank > 0:
        late = dist.all_reduce(torch.ones(54321), group=group, async_op=True)
        dump = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(backend=name))
        retired = {e["input_sizes"][0][0]: e["retired"] for e in dump["entries"] if e["process_group"][1] == "recorded"}
        assert retired == {12345: True, 54321: False}, f"{retired}"
        store.set(f"dumped/{rank}", "")
    else:
        store.wait([f"dumped/{r}" for r in range(1, size)], LIMIT)
        dist.all_reduce(torch.ones(54321), group=group)
    if late:
        late.wait()
    dist.destroy_process_group(group)


def main():
    rank, size = common.begin(*sys.argv[1:])
    assert size == 4
    cases = common.Cases()
    base = torch._C._distributed_c10d.Backend
    cases.run("split_group", splits, rank, size)
    cases.run("split_group, sparse sums", split_sums_of_sparse, rank, size)
    if hasattr(base, "reconfigure"):
        cases.run("reconfigure", reconfigures, rank, size)
        cases.run("reconfigure while one waits", reconfigured_while_one_waits, rank, size)
    if hasattr(torch._C._distributed_c10d, "FlightRecorderHook"):
        cases.run("flight recorder", recorded, rank, size)
    cases.end()


main()
