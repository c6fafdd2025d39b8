#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's own tests of torch.distributed, as its package contains them, with gloo and with shmem.

usage: distributed_tests.py [--size RANKS] [--nodes NODES] [--backends gloo,shmem] [--limit SECONDS] [PATTERN ...]

The tests are those that PyTorch runs with gloo on a machine without GPUs. Lists each one with its outcome for each
backend. Exits with 1 if one passes with gloo and not with shmem, unless PyTorch reserves it for gloo by name, or if hardly any
passes with gloo; with 77 if there is no torch, or no setuptools, which the tests of PyTorch import. With --nodes the ranks of shmem are as
on so many nodes: they share memory with some of the others only, and reach the rest through UCX.
"""

import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
import types

# PyTorch refuses monitored_barrier for other backends by name, whatever they can do: shmem_torch.monitored_barrier makes
# the same check (test_failures.py).
RESERVED = "*monitored_barrier*"
# What gloo passes by the number of ranks, at least: 83 with 2 ranks in PyTorch 1.13. With fewer, something else is wrong.
LEAST = {2: 70, 4: 90}


def load(backend, nodes):
    """The module with PyTorch's tests: what is run is chosen, by decorators, as for gloo."""
    os.environ |= {"BACKEND": "gloo", "WORLD_SIZE": os.environ.get("WORLD_SIZE", "2"), "OMP_NUM_THREADS": "1"}
    # Debian has no package with expecttest, of which PyTorch needs this much.
    import unittest.mock

    if "expecttest" not in sys.modules:
        stub = types.ModuleType("expecttest")
        stub.ACCEPT = False
        stub.TestCase = type("TestCase", (unittest.TestCase,), {})
        sys.modules["expecttest"] = stub
    arguments, sys.argv = sys.argv, sys.argv[:1]
    from torch.testing._internal.distributed import distributed_test

    sys.argv = arguments
    if backend != "gloo":
        import shmem_torch  # noqa: F401: registers the backend
    distributed_test.BACKEND = backend

    class Tests(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            import torch

            self._start_processes(torch.multiprocessing.get_context("fork").Process)  # they have torch already

    if backend == "gloo":
        return Tests

    class TestsOfAnother(Tests):
        """What PyTorch does for backends that it knows by name."""

        @classmethod
        def _run(cls, rank, *arguments, **more):
            if nodes > 1:
                os.environ["SHMEM_HOST_ID"] = f"node {rank * nodes // int(os.environ['WORLD_SIZE'])}"
            super()._run(rank, *arguments, **more)

        def _test_accumulate_gradients_no_sync(self, *arguments, **more):
            with unittest.mock.patch.object(distributed_test, "BACKEND", "gloo"):  # it makes a model for CPUs
                super()._test_accumulate_gradients_no_sync(*arguments, **more)

        def test_ddp_logging_data_cpu(self):
            # PyTorch 2 logs each backend that it does not know as this one.
            with unittest.mock.patch.object(distributed_test.dist, "get_backend", lambda group=None: "custom"):
                super().test_ddp_logging_data_cpu()

    return TestsOfAnother


def run_one(tests, name):
    import unittest

    result = unittest.TestResult()
    tests(name).run(result)
    if result.skipped:
        return "skipped", result.skipped[0][1]
    problems = result.failures + result.errors
    return ("failed", problems[0][1]) if problems else ("passed", "")


def run_all(backend, nodes, patterns, limit):
    """The outcome of each test, which runs in a process of its own that has loaded torch once."""
    import unittest

    tests = load(backend, nodes)
    names = unittest.TestLoader().getTestCaseNames(tests)
    for name in names:
        if patterns and not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            continue
        with tempfile.TemporaryFile("w+") as text:
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                os.setpgid(0, 0)
                os.dup2(text.fileno(), 1)
                os.dup2(text.fileno(), 2)
                import signal

                signal.alarm(limit)
                outcome, why = run_one(tests, name)
                print(f"\n{why}", flush=True)
                os._exit({"passed": 0, "failed": 1, "skipped": 2}[outcome])
            _, status = os.waitpid(pid, 0)
            try:
                os.killpg(pid, 9)  # ranks that hang
            except ProcessLookupError:
                pass
            outcome = {0: "passed", 1: "failed", 2: "skipped"}.get(os.waitstatus_to_exitcode(status), "timed out")
            print(f"{backend} {name} {outcome}", flush=True)
            if outcome not in ("passed", "skipped"):
                text.seek(0)
                print("".join(f"    {line}" for line in text.readlines()[-40:]), file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default=2, type=int)
    parser.add_argument("--nodes", default=1, type=int)
    parser.add_argument("--backends", default="gloo,shmem")
    parser.add_argument("--limit", default=120, type=int)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    os.environ["WORLD_SIZE"] = str(arguments.size)
    if arguments.run:
        return run_all(arguments.run, arguments.nodes, arguments.patterns, arguments.limit)
    import importlib.util

    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("shmem_torch") is None:
        print("skipped: there is no torch, or no shmem_torch")
        sys.exit(77)
    try:
        import setuptools.command.build_ext  # noqa: F401
    except ImportError as error:
        print(f"skipped: {error}: PyTorch's own tests need setuptools (Debian: python3-setuptools)")
        sys.exit(77)
    backends = arguments.backends.split(",")
    outcomes = {}
    for backend in backends:
        command = [sys.executable, __file__, "--run", backend, "--size", str(arguments.size)]
        command += ["--nodes", str(arguments.nodes), "--limit", str(arguments.limit), *arguments.patterns]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        for line in run.stdout.splitlines():
            fields = line.split(" ", 2)
            if len(fields) == 3 and fields[0] == backend:
                outcomes.setdefault(fields[1], {})[backend] = fields[2]
    worse = []
    for name, of in sorted(outcomes.items()):
        if set(of.values()) == {"skipped"}:
            continue
        print(f"{name:70}", *(f"{of.get(backend, '-'):10}" for backend in backends))
        if of.get("gloo") == "passed" and of.get("shmem") != "passed" and not fnmatch.fnmatch(name, RESERVED):
            worse.append(name)
    for backend in backends:
        counts = [of.get(backend) for of in outcomes.values()]
        print(f"{backend} with {arguments.size} ranks:", *(f"{counts.count(one)} {one}" for one in sorted(set(counts))))
    passed = sum(of.get("gloo") == "passed" for of in outcomes.values())
    least = LEAST.get(arguments.size, 1) if "gloo" in backends and not arguments.patterns else 0
    if passed < least:
        print(f"gloo passes {passed} tests, and not at least {least}: is torch.distributed complete here?")
    sys.exit(1 if worse or passed < least else 0)


if __name__ == "__main__":
    main()
