# SPDX-License-Identifier: Apache-2.0
"""A process group from its begin to its end: timeouts, hooks, sequence numbers, abort() and shutdown()."""

import datetime
import os
import signal
import threading
import time
import unittest

import torch
from ranks import RanksTest, dist, note, torch_version, until

import shmem_torch

IS_NEW = torch_version() >= (2, 14)
SOON = 20  # seconds, of calls with a timeout of 60


def backend():
    return dist.distributed_c10d._get_default_group()._get_backend(torch.device("cpu"))


def text_of(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return "nothing was raised"


def seconds(number):
    return datetime.timedelta(seconds=number)


def abort_of_another(rank, size):
    """Rank 1 aborts while all wait for rank 2, which comes afterwards, in collective calls or for a message of it."""
    tensor = torch.zeros(1)

    def abort():
        until("waits")
        time.sleep(0.3)  # until both wait
        shmem_torch.abort()
        note("aborted")

    dist.barrier()
    began = time.monotonic()
    if rank == 2:
        until("aborted")
        texts = [text_of(dist.barrier)]
    else:
        works = [dist.all_reduce(torch.zeros(100_000), async_op=True) for _ in range(3)]
        works.append(dist.irecv(tensor, 2))
        if rank == 1:
            threading.Thread(target=abort).start()
        else:
            note("waits")
        texts = [text_of(work.wait) for work in works]
    texts.append(text_of(dist.barrier))
    return texts, time.monotonic() - began


def abort_in_place(rank, size):
    """By PyTorch's own calls."""
    dist.barrier()
    group = dist.new_group(list(range(size)))
    work = dist.all_reduce(torch.zeros(10), group=group, async_op=True) if rank == 0 else None
    if rank == 1:
        group.abort()
    text = text_of(work.wait if work else lambda: dist.barrier(group))
    error = group._get_backend(torch.device("cpu")).get_error()
    # Other groups are not affected, and all can be aborted at once.
    dist.barrier()
    dist.distributed_c10d._abort_process_group()
    return text, error.name, dist.is_initialized()


def hooks_of_abort(rank, size):
    called = []
    backend().register_abort_hook(1, lambda: called.append("one"))
    backend().register_abort_hook(2, lambda: called.append("two"))
    backend().unregister_abort_hook(2)
    backend().register_abort_hook(3, lambda: 1 / 0)  # its exception is not the group's business
    dist.barrier()
    if rank == 0:
        backend().abort()
        backend().abort()
    text = text_of(dist.barrier)
    return called, text, backend().get_error().name


def hooks_of_death(rank, size):
    called = []
    backend().register_abort_hook(1, lambda: called.append(time.monotonic()))
    dist.barrier()
    assert backend().get_error().name == "SUCCESS"
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    text = text_of(dist.barrier)
    return len(called), text, backend().get_error().name


def timeouts(rank, size):
    dist.barrier()
    backend().set_timeout(seconds(0.3))
    assert backend().options._timeout == seconds(0.3)
    if rank == 1:
        until("timed out")
        return "", "", 0
    began = time.monotonic()
    work = dist.all_reduce(torch.zeros(1), async_op=True)
    text = text_of(work.wait)
    note("timed out")
    return text, backend().get_error().name, time.monotonic() - began


def extended_timeouts(rank, size):
    """An extension is for the works from then on, until the first of them is over."""
    dist.barrier()
    backend().set_timeout(seconds(0.5))
    backend()._add_ephemeral_timeout(seconds(30))
    backend()._add_ephemeral_timeout(seconds(29))
    if rank == 1:
        time.sleep(2)
    dist.barrier()  # of a minute, nearly
    # Now it is half a second again.
    if rank == 1:
        until("timed out")
        return ""
    text = text_of(dist.barrier)
    note("timed out")
    return text


def sequence_numbers(rank, size):
    group = dist.distributed_c10d._get_default_group()
    before = group._get_sequence_number_for_group()
    for _ in range(5):
        dist.all_reduce(torch.zeros(1))
    dist.broadcast(torch.zeros(1), 0)
    right = dist.isend(torch.zeros(1), (rank + 1) % size)
    dist.recv(torch.zeros(1), (rank - 1) % size)
    right.wait()
    assert group._get_sequence_number_for_group() == before + 6  # messages do not count
    dist.barrier()


def pending_works(rank, size):
    group = dist.distributed_c10d._get_default_group()
    ended = []
    group._register_on_completion_hook(ended.append)
    tensors = [torch.ones(10_000) for _ in range(8)]
    for tensor in tensors:
        dist.all_reduce(tensor, async_op=True)
    got = torch.zeros(4)
    dist.isend(torch.full((4,), float(rank)), (rank + 1) % size)
    dist.irecv(got, (rank - 1) % size)
    group._wait_for_pending_works()
    assert all((tensor == size).all() for tensor in tensors)
    assert (got == (rank - 1) % size).all()
    names = sorted(one.op_type.name for one in ended)
    assert names == ["ALLREDUCE"] * 8 + ["RECV", "SEND"], names
    assert all(one.time_finished >= one.time_started for one in ended)
    numbers = [one.seq for one in ended if one.op_type.name == "ALLREDUCE"]
    assert numbers == sorted(numbers) and len(set(numbers)) == 8
    del ended[:]
    dist.barrier()


def after_shutdown(rank, size):
    group = dist.distributed_c10d._get_default_group()
    dist.barrier()
    tensor = torch.ones(3)
    work = dist.all_reduce(tensor, async_op=True)
    (group if hasattr(group, "shutdown") else backend()).shutdown()
    work.wait()  # what was under way is made
    assert (tensor == size).all()
    return text_of(dist.barrier)


class Life(RanksTest):
    def test_abort_ends_the_calls_of_all_ranks(self):
        for nodes in (1, 2):
            with self.subTest(nodes=nodes):
                for texts, took in self.on_ranks(3, abort_of_another, nodes=nodes):
                    self.assertLess(took, SOON)
                    for text in texts:
                        self.assertIn("rank 1", text)
                        self.assertIn("abort", text)

    @unittest.skipUnless(IS_NEW, "PyTorch has no abort() of groups")
    def test_abort_of_torch(self):
        for rank, (text, error, initialized) in enumerate(self.on_ranks(2, abort_in_place)):
            self.assertIn("rank 1 has aborted", text)
            self.assertEqual(error, "COMM_ERROR" if rank == 1 else "REMOTE_ERROR")
            self.assertFalse(initialized)

    @unittest.skipUnless(IS_NEW, "PyTorch has no abort hooks")
    def test_abort_hooks_are_called_once(self):
        for called, text, error in self.on_ranks(2, hooks_of_abort):
            self.assertEqual(called, ["one"])
            self.assertIn("rank 0 has aborted", text)
            self.assertIn(error, ("COMM_ERROR", "REMOTE_ERROR"))

    @unittest.skipUnless(IS_NEW, "PyTorch has no abort hooks")
    def test_abort_hooks_are_called_after_a_death(self):
        for outcome in self.on_ranks(3, hooks_of_death, dead=[1]):
            if outcome is not None:
                called, text, error = outcome
                self.assertEqual(called, 1)
                self.assertIn("rank 1", text)
                self.assertIn(error, ("COMM_ERROR", "REMOTE_ERROR"))

    @unittest.skipUnless(IS_NEW, "PyTorch cannot set the timeout of a backend")
    def test_a_new_timeout_holds_for_later_calls(self):
        text, error, took = self.on_ranks(2, timeouts)[0]
        self.assertIn("Timed out after 300 ms", text)
        self.assertIn("rank 1", text)
        self.assertEqual(error, "TIMEOUT")
        self.assertLess(took, SOON)

    @unittest.skipUnless(IS_NEW, "PyTorch cannot extend timeouts")
    def test_extended_timeouts_end_with_a_work(self):
        self.assertIn("Timed out after 500 ms", self.on_ranks(2, extended_timeouts)[0])

    @unittest.skipUnless(IS_NEW, "PyTorch asks only backends that it knows for sequence numbers")
    def test_sequence_numbers_count_collective_calls(self):
        self.on_ranks(3, sequence_numbers)

    @unittest.skipUnless(torch_version() >= (2, 6), "PyTorch has no completion hooks")
    def test_completion_hooks_and_pending_works(self):
        self.on_ranks(3, pending_works)

    @unittest.skipUnless(IS_NEW, "PyTorch has no shutdown() of backends")
    def test_shutdown_makes_the_calls_that_are_left(self):
        for text in self.on_ranks(2, after_shutdown):
            self.assertIn("was shut down", text)


if __name__ == "__main__":
    unittest.main()
