# SPDX-License-Identifier: Apache-2.0
"""torch.distributed._symmetric_memory on CPU tensors: buffers, signals and barriers of the ranks. PyTorch 2.6 and 2.14."""

import datetime
import gc
import os
import signal
import sys
import threading
import time
import unittest

import torch
from ranks import RanksTest, dist, torch_version

import shmem_torch

if not shmem_torch.HAS_SYMMETRIC_MEMORY:
    print(f"skipped: PyTorch {torch.__version__} has no torch.distributed._symmetric_memory that is supported")
    sys.exit(77)
import torch.distributed._symmetric_memory as symm_mem

COUNT = 100_000


def shared(*size, dtype=torch.float32, fill=None, group=None):
    tensor = symm_mem.empty(*size, dtype=dtype, device="cpu")
    if fill is not None:
        tensor.fill_(fill)
    return tensor, symm_mem.rendezvous(tensor, group if group is not None else dist.group.WORLD)


def buffers(rank, size):
    tensor, memory = shared(100, 1000, fill=rank + 1)
    assert (memory.rank, memory.world_size) == (rank, size)
    assert memory.buffer_size >= COUNT * 4 and len(memory.buffer_ptrs) == size
    assert not memory.multicast_ptr
    assert (tensor == rank + 1).all()  # what was in it before
    memory.barrier()
    for peer in range(size):
        assert (memory.get_buffer(peer, (100, 1000), torch.float32) == peer + 1).all()
    memory.barrier()
    # Each writes to its part of the tensors of all.
    for peer in range(size):
        memory.get_buffer(peer, (1000,), torch.float32, storage_offset=1000 * rank).fill_(100 + rank)
    memory.barrier(channel=1)
    for peer in range(size):
        assert (tensor[peer] == 100 + peer).all()
    assert symm_mem.rendezvous(tensor, dist.group.WORLD).buffer_ptrs == memory.buffer_ptrs  # the same one
    assert torch.equal(memory.get_buffer(rank, (5,), torch.int64, 3), tensor.flatten()[6:16].view(torch.int64))
    # A buffer outlives the tensor and the object.
    peer = memory.get_buffer((rank + 1) % size, (100, 1000), torch.float32)
    memory.barrier()
    del memory
    gc.collect()
    assert (peer[rank] == 100 + rank).all()
    dist.barrier()


def signals(rank, size):
    tensor, memory = shared(COUNT, dtype=torch.int64, fill=0)
    memory.barrier()
    right, left = (rank + 1) % size, (rank - 1) % size
    for step in range(200):
        memory.get_buffer(right, (COUNT,), torch.int64)[step] = 1000 * rank + step
        memory.put_signal(right, channel=2)
        memory.wait_signal(left, channel=2)
        assert tensor[step] == 1000 * left + step
    for channel in range(64):
        memory.barrier(channel, timeout_ms=60_000)
    dist.barrier()  # all have taken all signals
    for peer in range(size):  # pads end with zeros
        assert (memory.get_signal_pad(peer).view(torch.uint8) == 0).all()
    assert memory.get_signal_pad(0, (4,), torch.uint8).shape == (4,)
    dist.barrier()


def dtypes_and_shapes(rank, size):
    for dtype in (torch.bfloat16, torch.float8_e4m3fn, torch.bool, torch.uint8, torch.complex64):
        tensor, memory = shared((3, 5), dtype=dtype)
        tensor.view(torch.uint8).fill_(1)
        memory.barrier()
        assert torch.equal(
            memory.get_buffer((rank + 1) % size, (3, 5), dtype).view(torch.uint8), tensor.view(torch.uint8)
        )
        memory.barrier()
    tensor, memory = shared(0)
    assert memory.get_buffer(0, (0,), torch.float32).numel() == 0
    # The collective calls take it as any tensor.
    tensor, memory = shared(COUNT, fill=rank)
    if torch_version() >= (2, 14):
        assert symm_mem.get_backend("cpu") == "SHMEM"
        assert symm_mem.is_symm_mem_tensor(tensor) and symm_mem.is_symm_mem_tensor(tensor[5:])
        assert not symm_mem.is_symm_mem_tensor(torch.zeros(3))
        assert (memory.device.type, memory.offset) == ("cpu", 0)
        right = (rank + 1) % size
        memory.barrier()
        assert (memory.get_remote_tensor(right, (COUNT,), torch.float32) == right).all()
        memory.barrier()
    dist.all_reduce(tensor)
    assert (tensor == size * (size - 1) // 2).all()
    memory.barrier()


def wrong_arguments(rank, size):
    tensor, memory = shared(10)
    other = dist.new_group(list(range(size)))
    for call in (
        lambda: memory.get_buffer(size, (1,), torch.float32),
        lambda: memory.get_buffer(-1, (1,), torch.float32),
        lambda: memory.get_buffer(0, (11,), torch.float32),
        lambda: memory.get_buffer(0, (10,), torch.float32, 1),
        lambda: memory.get_buffer(0, (1 << 40, 1 << 40), torch.float32),
        lambda: memory.barrier(-1),
        lambda: memory.barrier(1 << 20),
        lambda: memory.put_signal(size, 0),
        lambda: memory.wait_signal(-1, 0),
        lambda: symm_mem.rendezvous(torch.zeros(10), dist.group.WORLD),
        lambda: symm_mem.rendezvous(tensor, other),
        # PyTorch 2.14 makes the tensor itself, and lets this one pass.
        lambda: memory.get_buffer(0, (1 if torch_version() < (2, 14) else 12,), torch.float32, -1),
    ):
        try:
            call()
        except (RuntimeError, ValueError):
            continue
        raise AssertionError("no exception")
    try:
        shared(1000 + 100_000 * rank)
    except RuntimeError as error:
        assert "rank 1" in str(error), error
    else:
        raise AssertionError("different sizes were accepted")
    memory.barrier()


def groups(rank, size):
    """Several groups, of any backend, each with memory of its own."""
    for backend in ("gloo", "shmem"):
        group = dist.new_group(list(reversed(range(size))), backend=backend)
        tensor, memory = shared(COUNT, fill=rank, group=group)
        memory.barrier()
        assert (memory.get_buffer(1 - rank, (COUNT,), torch.float32) == 1 - rank).all()
        memory.barrier()


def groups_in_threads(rank, size):
    """The ranks meet in two groups in two threads, and in the other order on the other rank."""
    met = [dist.new_group(list(range(size))) for _ in range(2)]
    tensors = [symm_mem.empty(COUNT, dtype=torch.float32, device="cpu") for _ in met]
    memories = [None, None]

    def meet(i):
        memories[i] = symm_mem.rendezvous(tensors[i], met[i])

    threads = [threading.Thread(target=meet, args=(i,)) for i in (rank, 1 - rank)]
    threads[0].start()
    time.sleep(1)  # until it waits for the other rank
    threads[1].start()
    for thread in threads:
        thread.join()
    for memory in memories:
        memory.barrier()


def mapped_kib():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("RssShmem")).split()[1])


def freed(rank, size):
    shared(1)
    before = mapped_kib()
    for _ in range(10):
        tensor, memory = shared(16 << 20, dtype=torch.uint8, fill=1)
        memory.barrier()
        del tensor, memory
    gc.collect()
    dist.barrier()
    assert mapped_kib() < before + 2 * (size + 1) * (16 << 10), (before, mapped_kib())


def late(rank, size):
    tensor, memory = shared(10)
    if rank == 1:
        dist.barrier()
        return None
    texts = []
    for call in (
        lambda: memory.barrier(timeout_ms=200),
        lambda: memory.wait_signal(1, 3, timeout_ms=100),
        lambda: (memory.put_signal(1, 4), memory.put_signal(1, 4, timeout_ms=100)),  # the first one is not taken
    ):
        try:
            call()
            texts.append("nothing was raised")
        except RuntimeError as error:
            texts.append(str(error))
    dist.barrier()
    return texts


def dying(rank, size):
    tensor, memory = shared(10)
    memory.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        memory.barrier()
    except RuntimeError as error:
        return str(error), time.monotonic() - began
    return "nothing was raised", 0


class SymmetricMemory(RanksTest):
    def test_two_ranks(self):
        self.run_all(2, [buffers, signals, dtypes_and_shapes, wrong_arguments, groups, groups_in_threads, freed])

    def test_three_ranks(self):
        self.run_all(3, [buffers, signals, dtypes_and_shapes])

    def test_a_timeout_names_the_rank(self):
        texts = self.on_ranks(2, late, timeout=datetime.timedelta(seconds=60))[0]
        self.assertRegex(texts[0], r"barrier\(channel 0\) timed out after 200 ms; it waited for rank 1")
        self.assertRegex(texts[1], r"wait_signal\(channel 3\) timed out after 100 ms; it waited for rank 1")
        self.assertRegex(texts[2], r"put_signal\(channel 4\) timed out after 100 ms; it waited for rank 1")

    def test_a_rank_that_dies_is_named(self):
        text, took = self.on_ranks(2, dying, dead=[1])[0]
        self.assertRegex(text, "rank 1.*dead")
        self.assertLess(took, 20)


if __name__ == "__main__":
    unittest.main(verbosity=0)
