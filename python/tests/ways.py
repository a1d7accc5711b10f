"""The ways in which torch trains one model on several ranks. Each is a function of the optimizer; it uses the default
group, and returns for each step the losses of all ranks and the norm of the gradient."""

import functools

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, WIDTH, FEATURES = 8, 16, 64, 10


def transformer():
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True)
    return torch.nn.Sequential(torch.nn.Linear(FEATURES, WIDTH), torch.nn.TransformerEncoder(layer, 2),
                               torch.nn.Linear(WIDTH, 3))


def batch(step, part):
    generator = torch.Generator().manual_seed(1000 * step + part)
    x = torch.randn(BATCH, 7, FEATURES, generator=generator)
    return x, torch.tanh(x[:, :, :3] * 2 - x[:, :, 3:6])


def of_all(value):
    """This value of every rank, in their order."""
    every = [torch.zeros(()) for _ in range(dist.get_world_size())]
    dist.all_gather(every, value.detach())
    return [float(v) for v in every]


def whole(norm):
    return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)


def train(net, optimizer, part, norm_of=None):
    """`part`: of the data, which ranks share whose model is one."""
    norm_of = norm_of or (lambda: torch.nn.utils.clip_grad_norm_(net.parameters(), 1e9))
    lines = []
    for step in range(STEPS):
        x, y = batch(step, part)
        optimizer.zero_grad()
        loss = mse_loss(net(x), y)
        loss.backward()
        norm = whole(norm_of())
        optimizer.step()
        lines.append([*of_all(loss), norm])
    return lines


def ddp(optimizer):
    net = DistributedDataParallel(transformer(), bucket_cap_mb=0.1)
    return train(net, optimizer(net.parameters()), dist.get_rank())


def zero1(optimizer):
    net = DistributedDataParallel(transformer())
    kind = type(optimizer([torch.zeros(1, requires_grad=True)]))
    sharded = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=kind, lr=1e-3)
    return train(net, sharded, dist.get_rank())


def fsdp1(optimizer):
    policy = functools.partial(transformer_auto_wrap_policy,
                               transformer_layer_cls={torch.nn.TransformerEncoderLayer})
    net = FullyShardedDataParallel(transformer(), auto_wrap_policy=policy, device_id=torch.device("cpu"))
    return train(net, optimizer(net.parameters()), dist.get_rank(), lambda: net.clip_grad_norm_(1e9))


def shard(mesh, optimizer):
    net = transformer()
    for layer in net[1].layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(net, mesh=mesh)
    return train(net, optimizer(net.parameters()), dist.get_rank())


def fsdp2(optimizer):
    return shard(init_device_mesh("cpu", (dist.get_world_size(),)), optimizer)


def hsdp(optimizer):
    """Replicated on two boxes, sharded in each."""
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("box", "gpu"))
    return shard(mesh, optimizer)


def tensor_parallel(optimizer):
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(FEATURES, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, WIDTH),
                              torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, 3))
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    net = parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel(),
                                         "3": ColwiseParallel(), "5": RowwiseParallel()})
    return train(net, optimizer(net.parameters()), 0)


def pipeline(optimizer):
    """A stage on each rank; the last one has the loss. The norm is that of the stage."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    widths = [FEATURES, *[WIDTH] * (size - 1), 3]
    stages = [torch.nn.Sequential(torch.nn.Linear(*pair), torch.nn.Tanh()) for pair in zip(widths, widths[1:])]
    net = stages[rank]
    schedule = Schedule1F1B(PipelineStage(net, rank, size, torch.device("cpu")), 2 * size, mse_loss)
    own = optimizer(net.parameters())
    lines = []
    for step in range(STEPS):
        x, y = batch(step, 0)
        losses = []
        own.zero_grad()
        arguments = [x] if rank == 0 else []
        schedule.step(*arguments, **(dict(target=y, losses=losses) if rank == size - 1 else {}))
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1e9)
        own.step()
        loss = torch.stack(losses).mean() if losses else torch.zeros(())
        lines.append([*reversed(of_all(loss)), *of_all(norm)])
    return lines


ALL = [ddp, zero1, fsdp1, fsdp2, hsdp, tensor_parallel]
# In torch 2.9 stages begin with messages of 8 bytes that are received as 4, of which Gloo dies.
HAS_PIPELINE = not hasattr(PipelineStage, "_get_init_p2p_neighbors_ops")
if HAS_PIPELINE:
    ALL.append(pipeline)
