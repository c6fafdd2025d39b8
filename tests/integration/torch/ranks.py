# SPDX-License-Identifier: Apache-2.0
"""Tests of process groups: each runs a function in forked processes, one for each rank. Exits with 77 without torch."""

import datetime
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
import unittest
import warnings

try:
    import torch
    import torch.distributed as dist

    import shmem_torch  # registers the backend
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

warnings.filterwarnings("ignore", message=".*will be deprecated")
# Each rank would start a thread for each processor.
torch.set_num_threads(1)


def torch_version():
    """(2, 14)"""
    return tuple(int(number) for number in torch.__version__.split(".")[:2])


def text_of(call):
    """That of its exception."""
    try:
        call()
    except (RuntimeError, ValueError) as error:
        return str(error)
    return "nothing was raised"


LIMIT = datetime.timedelta(seconds=60)


def note(event):
    """Tells the other ranks of it."""
    open(os.environ["RANKS_FOLDER"] + f"/{event}", "w").close()


def until(*events):
    """Waits until ranks have noted them."""
    while not all(os.path.exists(os.environ["RANKS_FOLDER"] + f"/{event}") for event in events):
        time.sleep(0.01)


def _rank(body, rank, size, folder, results, timeout, node, prepare, backend):
    if node is not None:
        os.environ["SHMEM_HOST_ID"] = node
    os.environ["RANKS_FOLDER"] = folder
    try:
        prepare()
        dist.init_process_group(
            backend, init_method=f"file://{folder}/store", rank=rank, world_size=size, timeout=timeout
        )
        result = body(rank, size)
        if dist.is_initialized():
            dist.destroy_process_group()
        results.put((rank, result))
    except BaseException:
        results.put((rank, AssertionError(traceback.format_exc())))
    results.close()
    results.join_thread()
    os._exit(0)


class RanksTest(unittest.TestCase):
    def on_ranks(self, size, body, dead=(), timeout=LIMIT, nodes=1, prepare=lambda: None, backend="shmem"):
        """Calls body(rank, size) on all ranks; returns what they return. Those in `dead` end without a result. The ranks
        are on one node, or take themselves to be on several. Each calls prepare() before it makes the group."""
        context = multiprocessing.get_context("fork")
        results = context.Queue()
        with tempfile.TemporaryDirectory() as folder:
            node = [None if nodes == 1 else f"node-{rank % nodes}" for rank in range(size)]
            ranks = [
                context.Process(
                    target=_rank, args=(body, rank, size, folder, results, timeout, node[rank], prepare, backend)
                )
                for rank in range(size)
            ]
            for process in ranks:
                process.start()
            outcomes = {}
            try:
                while len(outcomes) < size - len(dead):
                    rank, outcome = results.get(timeout=300)
                    if isinstance(outcome, AssertionError):
                        raise AssertionError(f"rank {rank}:\n{outcome}")
                    outcomes[rank] = outcome
            finally:
                for process in ranks:
                    process.join(10 if len(outcomes) == size - len(dead) else 0.1)
                    if process.is_alive():
                        process.kill()
                        process.join()
        return [outcomes.get(rank) for rank in range(size)]

    def run_all(self, size, bodies):
        """Calls each of these on all ranks of one group."""

        def body(rank, size):
            for one in bodies:
                one(rank, size)

        self.on_ranks(size, body)
