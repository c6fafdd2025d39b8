# SPDX-License-Identifier: Apache-2.0
"""c10d::Window: ranks write to each other's tensors, and signal it. PyTorch 2.14 and later."""

import datetime
import gc
import os
import signal
import sys
import threading
import time
import unittest

import numpy as np
import torch
from ranks import RanksTest, dist, text_of, torch_version

if torch_version() < (2, 14):
    print(f"skipped: PyTorch {torch.__version__} has no windows")
    sys.exit(77)

import shmem_torch

c10d = torch._C._distributed_c10d
COUNT = 100_000


def window_of(tensor=None):
    return dist.distributed_c10d._new_window(tensor)


def puts(rank, size, tensor, **options):
    """Each rank writes its part of the tensors of all, and signals it to all."""
    window = window_of(tensor)
    part = COUNT // size
    for step in range(20):
        for peer in range(size):
            window.put(torch.full((part,), step * 10.0 + rank), peer, rank * part, True).wait()
            window.signal(peer, False)
        for peer in range(size):
            window.wait_signal(peer, step % 2 == 0, **options).wait()
            assert (tensor[peer * part : (peer + 1) * part] == step * 10 + peer).all()
        dist.barrier()
    window.tensor_deregister()
    return window


def ordinary_tensors(rank, size):
    tensor = torch.full((COUNT,), -1.0)
    before = tensor.numpy()
    window = window_of()
    assert dist.distributed_c10d._supports_window()
    kept = tensor[5:10]
    window.tensor_register(tensor)
    assert (tensor == -1).all()  # what was in it
    kept.fill_(7)
    assert (tensor[5:10] == 7).all()  # a view is one still
    window.tensor_deregister()
    assert tensor[5] == 7 and (before == -1).all()  # the array refers to memory that is there still
    puts(rank, size, tensor)
    # Deregistered, it is a tensor as any other.
    dist.all_reduce(tensor)
    del tensor, window
    gc.collect()
    dist.barrier()


def symmetric_tensors(rank, size):
    whole = shmem_torch.empty(COUNT + 8)
    address = whole.data_ptr()
    puts(rank, size, whole[8:])
    assert whole.data_ptr() == address


def parameters(rank, size):
    """A tensor that has an offset in its storage, one with gradients, an empty one, one of several dimensions."""
    storage = torch.zeros(100)
    window = window_of(storage[10 + rank : 50 + rank])
    window.put(torch.tensor([1.0 + rank]), (rank + 1) % size, 3, False)
    dist.barrier()
    assert storage.nonzero().flatten().tolist() == [13 + rank]
    parameter = torch.nn.Parameter(torch.zeros(2, 3, dtype=torch.float64))
    other = window_of(parameter)
    other.put(torch.full((3,), 5.0, dtype=torch.float64), rank, 3, False)
    assert parameter.tolist() == [[0] * 3, [5] * 3]
    there = other.map_remote_tensor((rank + 1) % size)
    assert there.shape == (2, 3) and there.dtype == torch.float64
    dist.barrier()
    assert there[1, 0] == 5
    there[0, rank] = 9
    dist.barrier()
    assert parameter[0, (rank - 1) % size] == 9
    assert other.get_attr(0).access_type == c10d.WindowAccessType.UNIFIED
    empty = window_of(torch.zeros(0))
    empty.put(torch.zeros(0), 0, 0, False)
    assert empty.map_remote_tensor(0).shape == (0,)
    # It keeps the tensor, and a mapped tensor keeps the memory.
    del parameter
    gc.collect()
    other.put(torch.full((1,), 6.0, dtype=torch.float64), rank, 0, False)
    dist.barrier()
    del other, empty, window
    gc.collect()
    assert there[0, 0] == 6
    dist.barrier()


def sizes_differ(rank, size):
    window = window_of(torch.zeros(10 * (rank + 1), dtype=torch.int32))
    assert [window.map_remote_tensor(peer).numel() for peer in range(size)] == [10 * (peer + 1) for peer in range(size)]
    last = size - 1
    if rank == 0:
        window.put(torch.tensor([8], dtype=torch.int32), last, 10 * size - 1, False)
    dist.barrier()
    assert window.map_remote_tensor(last)[-1] == 8
    dist.barrier()


def signals_are_counted(rank, size):
    window = window_of(torch.zeros(1))
    if rank == 0:
        for _ in range(5):
            window.signal(1, True)
    dist.barrier()
    if rank == 1:
        works = [window.wait_signal(0, True) for _ in range(6)]
        for work in works[:5]:
            assert work.is_completed()
            work.wait()
        assert not works[5].is_completed()
        threading.Timer(0.3, dist.barrier).start()
        works[5].wait()
    else:
        dist.barrier()
        window.signal(1, False)
    dist.barrier()


def wrong_arguments(rank, size):
    window = window_of()
    texts = [text_of(lambda: window.put(torch.zeros(1), 0, 0, False))]
    matrix = torch.zeros(4, 4)
    texts.append(text_of(lambda: window.tensor_register(matrix.t() if rank == 1 else matrix)))
    texts.append(text_of(lambda: window.tensor_register(torch.from_numpy(np.zeros(4)))))
    texts.append(text_of(lambda: window.tensor_register(shmem_torch.empty(4) if rank == 0 else shmem_torch.empty(4).clone())))
    window.tensor_register(matrix)
    texts.append(text_of(lambda: window.tensor_register(torch.zeros(1))))
    texts.append(text_of(lambda: window.put(torch.zeros(17), 0, 0, False)))
    texts.append(text_of(lambda: window.put(torch.zeros(1), 0, 16, False)))
    texts.append(text_of(lambda: window.put(torch.zeros(1), 0, -1, False)))
    texts.append(text_of(lambda: window.put(torch.zeros(1, dtype=torch.int32), 0, 0, False)))
    for call in (window.map_remote_tensor, window.get_attr, lambda one: window.signal(one, False)):
        texts.append(text_of(lambda: call(size)))
        texts.append(text_of(lambda: call(-1)))
    dist.barrier()
    window.put(torch.ones(16), 0, 0, False)  # it works still
    dist.barrier()
    assert rank != 0 or (matrix == 1).all()
    dist.barrier()
    return texts


def late_and_dead(rank, size):
    window = window_of(torch.zeros(8))
    options = c10d.WaitSignalOptions()
    options.timeout = datetime.timedelta(milliseconds=300)
    text = text_of(lambda: window.wait_signal(1, False, options)) if rank == 0 else ""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    waited = text_of(lambda: window.wait_signal(1, True).wait())
    polled = window.wait_signal(1, True)
    while not polled.is_completed():
        assert time.monotonic() - began < 60
    assert not polled.is_success() and "rank 1" in str(polled.exception())
    took = time.monotonic() - began
    return text, waited, text_of(lambda: window.put(torch.zeros(1), 1, 0, False)), took


def aborted(rank, size):
    window = window_of(torch.zeros(8))
    dist.barrier()
    if rank == 1:
        time.sleep(0.3)
        shmem_torch.abort()
    return text_of(lambda: window.wait_signal(1 - rank, False))


def on_nodes(rank, size):
    return text_of(lambda: window_of(torch.zeros(8)))


class Windows(RanksTest):
    def test_ordinary_tensors(self):
        for size in (1, 2, 4):
            with self.subTest(size=size):
                self.on_ranks(size, ordinary_tensors)

    def test_symmetric_tensors(self):
        self.on_ranks(2, symmetric_tensors)

    def test_tensors_of_all_kinds(self):
        self.run_all(3, [parameters, sizes_differ])

    def test_signals_are_counted(self):
        self.on_ranks(2, signals_are_counted)

    def test_wrong_arguments_raise(self):
        for rank, texts in enumerate(self.on_ranks(2, wrong_arguments)):
            parts = ["has no tensor", "not contiguous" if rank == 1 else "rank 1 cannot register", "allocator"]
            parts += ["not in the same symmetric memory", "has a tensor already", "exceed the 16", "exceed the 16", "exceed"]
            parts += ["that of rank 0 is float32"] + ["there is no rank"] * 6
            for part, text in zip(parts, texts, strict=True):
                self.assertIn(part, text)

    def test_a_rank_that_is_late_or_dies_is_named(self):
        outcomes = self.on_ranks(3, late_and_dead, dead=[1])
        for rank in (0, 2):
            text, waited, put, took = outcomes[rank]
            if rank == 0:
                self.assertIn("timed out after 300 ms; it waited for rank 1", text)
            self.assertIn("rank 1", waited)
            self.assertIn("rank 1", put)
            self.assertLess(took, 20)

    def test_abort_ends_waits(self):
        for text in self.on_ranks(2, aborted):
            self.assertIn("rank 1 has aborted", text)

    def test_ranks_on_several_nodes_are_refused(self):
        for text in self.on_ranks(2, on_nodes, nodes=2):
            self.assertIn("windows are for ranks of one node", text)


if __name__ == "__main__":
    unittest.main()
