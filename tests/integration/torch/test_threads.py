# SPDX-License-Identifier: Apache-2.0
"""The threads of a rank, and calls of one that cannot start any."""

import ctypes
import os
import pathlib
import re
import signal
import unittest

import torch
from ranks import RanksTest, dist

libc = ctypes.CDLL(None, use_errno=True)
ORDINARY = 8 << 20
MORE_THAN_THERE_IS = 1 << 46


def set_stack_of_new_threads(size):
    """With a stack that no address space has room for, pthread_create fails with EAGAIN."""
    attributes = ctypes.create_string_buffer(256)
    assert libc.pthread_attr_init(attributes) == 0
    assert libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(size)) == 0
    assert libc.pthread_setattr_default_np(attributes) == 0


def blocked():
    return signal.pthread_sigmask(signal.SIG_BLOCK, [])


def without_threads(rank, size):
    before = blocked()
    if rank == 0:
        set_stack_of_new_threads(MORE_THAN_THERE_IS)
    for number in range(3):
        tensor = torch.full((4,), float(number))
        dist.all_reduce(tensor)
        assert (tensor == number * size).all(), (rank, number, tensor)
    tensor = torch.ones(4)
    work = dist.all_reduce(tensor, async_op=True)
    assert (work.get_future().wait()[0] == size).all()
    assert blocked() == before
    # All ranks get the exception of a call that one of them cannot make.
    try:
        dist.all_reduce(tensor, dist.ReduceOp.BAND if rank == 0 else dist.ReduceOp.SUM)
        raise AssertionError("nothing was raised")
    except (RuntimeError, ValueError):
        pass
    if rank == 0:
        set_stack_of_new_threads(ORDINARY)
    tensor = torch.ones(4)
    dist.all_reduce(tensor, async_op=True).get_future().wait()
    assert (tensor == size).all()
    return len(blocked() - before)


def signals_of_threads(rank, size):
    """The numbers of the signals that each thread does not block, but for the main one, which has called the group."""
    dist.all_reduce(torch.ones(4), async_op=True).get_future().wait()
    always = {signal.SIGKILL, signal.SIGSTOP, 32, 33}  # which two glibc keeps for itself
    signals = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        status = (task / "status").read_text()
        blocked = int(re.search(r"^SigBlk:\s*(\w+)", status, re.M).group(1), 16)
        if int(task.name) != os.getpid():
            name = re.search(r"^Name:\s*(.*)", status, re.M).group(1)
            signals.append((name, {i for i in range(1, 65) if not blocked >> (i - 1) & 1} - always))
    return signals


class Threads(RanksTest):
    def test_they_leave_signals_to_the_program_but_for_faults_of_memory(self):
        for nodes in (1, 2):
            for threads in self.on_ranks(2, signals_of_threads, nodes=nodes):
                self.assertIn("shmem-torch", [name for name, _ in threads])
                for name, signals in threads:
                    self.assertEqual(signals, {signal.SIGBUS}, name)

    def test_calls_stay_in_order_and_signals_as_they_were(self):
        self.assertEqual(self.on_ranks(2, without_threads), [0, 0])


if __name__ == "__main__":
    unittest.main(verbosity=0)
