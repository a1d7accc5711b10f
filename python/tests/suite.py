"""PyTorch's own tests of a backend, which its wheel ships (torch.testing._internal.distributed.distributed_test), over
meshcoll. What they run over Gloo alone, they run over meshcoll as well: the module is compiled with "meshcoll" wherever
it compares its backend's name with "gloo", or lists backends with Gloo among them. So are the alltoalls of MPI alone.

usage: suite.py RANKS [NAME…]     only tests whose name has one of these texts
"""

import ast
import importlib.util
import inspect
import logging
import os
import sys
import tempfile
import time
import unittest

import torch

SUITE = "torch.testing._internal.distributed.distributed_test"
COMMON = "torch.testing._internal.common_distributed"

MONITORED = ["gloo", "gloo_subgroup", "failure_order", "wait_all_ranks"]


def known_failures():
    """By test words of its error and the reason, which docs/training.md has, too."""
    known = {"test_ddp_logging_data_cpu": ("'custom' != 'meshcoll'",
                                           "DDP's log says custom for all but torch's own backends")}
    refused = "monitored_barrier is only implemented for GLOO"
    if refused in inspect.getsource(torch.distributed.monitored_barrier):
        for name in MONITORED:
            known[f"test_monitored_barrier_{name}"] = (refused, "this torch refuses it to all but Gloo")
    return known


class Also(ast.NodeTransformer):
    """Adds meshcoll where the suite knows Gloo."""

    def __init__(self):
        self.changed = 0

    @staticmethod
    def is_gloo(node):
        return getattr(node, "value", None) == "gloo" or getattr(node, "attr", None) == "GLOO"

    @staticmethod
    def is_mpi(node):
        return getattr(node, "value", None) == "mpi"

    def visit_collection(self, node):
        self.generic_visit(node)
        if any(self.is_gloo(e) for e in node.elts):
            node.elts.append(ast.Constant("meshcoll"))
            self.changed += 1
        return node

    visit_Set = visit_List = visit_collection

    def visit_Compare(self, node):
        self.generic_visit(node)
        other = node.comparators[0]
        if getattr(node.left, "id", "") == "BACKEND" and (self.is_gloo(other) or self.is_mpi(other)):
            same = isinstance(node.ops[0], ast.Eq)
            both = ast.Tuple([other, ast.Constant("meshcoll")], ast.Load())
            node = ast.Compare(node.left, [ast.In() if same else ast.NotIn()], [both])
            self.changed += 1
        return node


def load(name):
    """Imports a module of torch with meshcoll in it."""
    spec = importlib.util.find_spec(name)
    tree = Also()
    code = tree.visit(ast.parse(spec.loader.get_source(name)))
    assert tree.changed, f"{name} knows no Gloo: has torch changed its tests?"
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    exec(compile(ast.fix_missing_locations(code), spec.origin, "exec"), module.__dict__)
    return module


def cases(suite):
    class Meshcoll(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            # forked, not spawned: importing torch takes longer than most tests
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

        def _check_return_codes(self, function, seconds):
            super()._check_return_codes(function, seconds)
            codes = {p.exitcode for p in self.processes}
            assert len(codes) == 1 or function in self.skip_return_code_checks, f"exit codes {codes}"

    return Meshcoll


class Lines(unittest.TestResult):
    """A line for each test; those that were skipped are counted by their reason."""

    def __init__(self, known):
        super().__init__()
        self.known, self.why, self.began = known, {}, 0.0

    @staticmethod
    def name(test):
        return test.id().rpartition(".")[2]

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def say(self, test, error=""):
        name = self.name(test)
        took = f"{name} ({time.monotonic() - self.began:.1f} s)"
        words, why = self.known.get(name, ("", ""))
        if error and words and words in error:
            print(f"passed: {took}: fails as expected: {why}")
        elif error:
            print(f"failed: {took}\n{error}")
        elif words:
            print(f"failed: {took}: passes, but is listed as failing: take it from known_failures and docs/training.md")
        else:
            print(f"passed: {took}")
        sys.stdout.flush()

    def addSuccess(self, test):
        self.say(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.say(test, self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.say(test, self.errors[-1][1])

    def addSkip(self, test, reason):
        self.why.setdefault(reason, []).append(self.name(test))


def run(names):
    load(COMMON).DistTestCases.backend_feature["plugin"].add("meshcoll")
    suite = load(SUITE)
    logging.disable(logging.CRITICAL)
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(cases(suite))
    lines = Lines(known_failures())
    unittest.TestSuite(t for t in tests if not names or any(n in t.id() for n in names)).run(lines)
    for reason, which in sorted(lines.why.items()):
        print(f"skipped: {len(which)} tests: {reason}")


def main():
    import meshcoll.torch  # noqa: F401

    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(BACKEND="meshcoll", WORLD_SIZE=sys.argv[1], TEMP_DIR=folder, KINETO_LOG_LEVEL="9",
                          INIT_METHOD=f"file://{folder}/init", DISTRIBUTED_TESTS_DEFAULT_TIMEOUT="100")
        run(sys.argv[2:])


if __name__ == "__main__":
    main()
