"""What one training step does when: computation by block, and communication by bucket."""

import contextlib
import time

import torch.distributed as dist


class Timeline:
    """Records the step of this number; with None it records nothing and changes nothing.

    Spans are dicts of `kind` (forward, backward, optimizer, bucket), `name`, and `begin` and `end` in seconds from the
    step's begin.
    """

    def __init__(self, step):
        self.step, self.spans = step, []
        self.is_on, self.zero, self.open = False, 0.0, {}

    def begin_step(self, step):
        self.is_on = step == self.step
        self.zero = time.perf_counter()

    def end_step(self):
        self.is_on = False

    def begin(self, kind, name):
        if self.is_on:
            self.open[kind, name] = time.perf_counter() - self.zero

    def end(self, kind, name):
        if (kind, name) in self.open:
            self.spans.append({"kind": kind, "name": name, "begin": self.open.pop((kind, name)),
                               "end": time.perf_counter() - self.zero})

    @contextlib.contextmanager
    def span(self, kind, name=""):
        self.begin(kind, name)
        yield
        self.end(kind, name)

    def watch(self, model):
        """The blocks of the model, forward and backward."""
        if self.step is None:
            return
        parts = {f"block {i + 1}": block for i, block in enumerate(model.blocks)}
        for name, part in {**parts, "head": model.head}.items():
            part.register_forward_pre_hook(lambda _m, _x, name=name: self.begin("forward", name))
            part.register_forward_hook(lambda _m, _x, _y, name=name: self.end("forward", name))
            part.register_full_backward_pre_hook(lambda _m, _g, name=name: self.begin("backward", name))
            part.register_full_backward_hook(lambda _m, _g, _h, name=name: self.end("backward", name))

    def watch_buckets(self, model):
        """The sums of gradients of a DistributedDataParallel: it does as before, and says when."""
        if self.step is None:
            return

        def sum_bucket(_state, bucket):
            name = f"bucket {bucket.index() + 1}: {bucket.buffer().nbytes / 1e6:.1f} MB"
            gradients = bucket.buffer().div_(dist.get_world_size())
            self.begin("bucket", name)
            future = dist.all_reduce(gradients, async_op=True).get_future()

            def summed(done):
                self.end("bucket", name)
                return done.value()[0]

            return future.then(summed)

        model.register_comm_hook(None, sum_bucket)
