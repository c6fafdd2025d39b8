# SPDX-License-Identifier: Apache-2.0
"""Tensors of CUDA devices, by a driver library of the tests' own: its devices have memory that the host cannot access."""

import datetime
import os
import threading
import unittest

import fake_cuda
import torch
from ranks import RanksTest, dist, text_of

# Newer versions of PyTorch ask what kind of device it is.
torch.cuda.get_device_capability = lambda device=None: (9, 0)

PINNED = os.environ.get("SHMEM_TORCH_PINNED") != "0"
OUT_OF_MEMORY = 2
NO_DEVICE = 100


def device(values, index=0, dtype=torch.float32):
    return fake_cuda.to_device(torch.as_tensor(values, dtype=dtype), index)


def of(rank, count=1000):
    return torch.arange(count, dtype=torch.float32) + 1000.0 * rank


def equal(tensor, expected):
    assert tensor.device.type == "cuda", tensor.device
    seen = fake_cuda.to_host(tensor)
    assert torch.equal(seen, torch.as_tensor(expected, dtype=seen.dtype)), (seen, expected)


def reduces(rank, size):
    expected = sum(of(one) for one in range(size))
    for index in (0, 1):
        tensor = device(of(rank), index)
        dist.all_reduce(tensor)
        equal(tensor, expected)
    tensor = device(of(rank))
    dist.reduce(tensor, 1)
    if rank == 1:
        equal(tensor, expected)
    for dtype in (torch.float64, torch.int64, torch.bfloat16, torch.bool):
        tensor = device([0, 1, 1], dtype=dtype)
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        equal(tensor, [0, 1, 1])
    # More than what is kept in one piece of memory, and nothing.
    large = device(torch.full((3 << 20,), float(rank)))
    dist.all_reduce(large)
    equal(large, torch.full((3 << 20,), float(sum(range(size)))))
    dist.all_reduce(device(torch.empty(0)))


def gathers(rank, size):
    outputs = [device(torch.zeros(1000)) for _ in range(size)]
    dist.all_gather(outputs, device(of(rank)))
    for one in range(size):
        equal(outputs[one], of(one))
    whole = device(torch.zeros(1000 * size))
    dist._all_gather_base(whole, device(of(rank)))
    equal(whole, torch.cat([of(one) for one in range(size)]))
    outputs = [device(torch.zeros(1000), one % 2) for one in range(size)] if rank == 0 else None
    dist.gather(device(of(rank)), outputs, 0)
    for one in range(size if rank == 0 else 0):
        equal(outputs[one], of(one))


def scatters(rank, size):
    tensor = device(of(rank))
    dist.broadcast(tensor, 1)
    equal(tensor, of(1))
    tensor = device(torch.zeros(1000))
    dist.scatter(tensor, [device(of(one)) for one in range(size)] if rank == 0 else None, 0)
    equal(tensor, of(rank))
    dist.reduce_scatter(tensor, [device(of(one)) for one in range(size)])
    equal(tensor, size * of(rank))
    whole = device(torch.cat([of(one) for one in range(size)]))
    dist._reduce_scatter_base(tensor, whole)
    equal(tensor, size * of(rank))


def exchanges(rank, size):
    output = device(torch.zeros(10 * size))
    dist.all_to_all_single(output, device(of(rank, 10 * size)))
    equal(output, torch.cat([of(one, 10 * size)[10 * rank : 10 * rank + 10] for one in range(size)]))
    outputs = [device(torch.zeros(5)) for _ in range(size)]
    dist.all_to_all(outputs, [device([rank * 10.0 + one] * 5) for one in range(size)])
    for one in range(size):
        equal(outputs[one], [one * 10.0 + rank] * 5)


def sends(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    got = device(torch.zeros(1000))
    sent = dist.isend(device(of(rank)), after)
    dist.recv(got, before)
    sent.wait()
    equal(got, of(before))
    for tensor in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, device(of(rank, 5)), after), dist.P2POp(dist.irecv, got.narrow(0, 0, 5), before)]
    ):
        tensor.wait()
    equal(got.narrow(0, 0, 5), of(before, 5))


def several(rank, size):
    tensors = [device(of(rank)), torch.full((3,), float(rank)), device([rank * 2.0], 1)]
    dist.distributed_c10d._get_default_group().allreduce_coalesced([tensors[0], tensors[2]]).wait()
    equal(tensors[0], sum(of(one) for one in range(size)))
    equal(tensors[2], [2.0 * sum(range(size))])
    # Some ranks' tensors are of a device, others' are not.
    mixed = device(of(rank)) if rank % 2 else of(rank)
    dist.all_reduce(mixed)
    assert torch.equal(fake_cuda.to_host(mixed) if rank % 2 else mixed, sum(of(one) for one in range(size)))


def takes_parts(rank, size):
    """Tensors that are not contiguous."""
    whole = device(torch.zeros(2, 10))
    columns = whole.t()
    fake_cuda.write_later(columns, of(rank, 20).reshape(10, 2))
    fake_cuda.finish()
    dist.all_reduce(columns)
    expected = sum(of(one, 20) for one in range(size)).reshape(10, 2)
    equal(columns, expected)
    equal(whole, expected.t().contiguous())
    every_second = device(torch.zeros(20)).as_strided((10,), (2,))
    dist.broadcast(every_second if rank else device(of(0, 10)), 0)
    if rank:
        equal(every_second, of(0, 10))
    outputs = [device(torch.zeros(2, 10)).t() for _ in range(size)]
    dist.all_gather(outputs, columns)
    equal(outputs[0], expected)
    got = device(torch.zeros(20)).as_strided((10,), (2,))
    work = dist.isend(columns.select(1, 0), (rank + 1) % size)
    dist.recv(got, (rank - 1) % size)
    work.wait()
    equal(got, expected[:, 0].contiguous())


def follows_streams(rank, size):
    """A call takes what the stream has been given before it, and does not make the program wait for that."""
    tensor = device(torch.zeros(1000))
    fake_cuda.write_later(tensor, of(rank))
    work = dist.all_reduce(tensor, async_op=True)
    fake_cuda.finish()
    work.wait()
    equal(tensor, sum(of(one) for one in range(size)))
    # wait() may be called before the stream is over.
    fake_cuda.write_later(tensor, of(rank))
    work = dist.all_reduce(tensor, async_op=True)
    threading.Timer(0.1, fake_cuda.finish).start()
    work.wait()
    equal(tensor, sum(of(one) for one in range(size)))
    sent = device(torch.zeros(10))
    fake_cuda.write_later(sent, of(rank, 10))
    threading.Timer(0.1, fake_cuda.finish).start()
    got = device(torch.zeros(10))
    work = dist.isend(sent, (rank + 1) % size)
    dist.recv(got, (rank - 1) % size)
    work.wait()
    equal(got, of((rank - 1) % size, 10))


def keeps_memory(rank, size):
    """Memory that is pinned is used again."""
    tensor = device(of(rank))
    dist.all_reduce(tensor)
    before = fake_cuda.counts()
    for _ in range(20):
        dist.all_reduce(tensor)
    after = fake_cuda.counts()
    assert after["registered"] == before["registered"], (before, after)
    copies = "pinned_copies" if PINNED else "pageable_copies"
    assert after[copies] - before[copies] == 40, (before, after)
    assert after["bytes_to_host"] - before["bytes_to_host"] == 20 * 4000, (before, after)
    assert after["registered"] == 0 or PINNED, after


def refuses(rank, size):
    tensor = device(of(rank))
    group = dist.distributed_c10d._get_default_group()
    # One rank's device has a fault: all ranks get an exception that says so, and the group goes on.
    if rank == 1:
        fake_cuda.fail("cuMemcpyDtoHAsync_v2", OUT_OF_MEMORY, 1)
    text = text_of(lambda: dist.all_reduce(tensor))
    assert "rank 1" in text and "a tensor cannot be copied from its device: cuMemcpyDtoHAsync: CUDA_ERROR_OUT_OF_MEMORY" in text, text
    dist.all_reduce(tensor)
    if rank == 1:
        fake_cuda.fail("cuMemcpyHtoDAsync_v2", OUT_OF_MEMORY, 1)
    text = text_of(lambda: dist.all_reduce(tensor))
    assert text == ("cuMemcpyHtoDAsync: CUDA_ERROR_OUT_OF_MEMORY" if rank == 1 else "nothing was raised"), text
    # Without memory that can be pinned it goes on with other memory.
    fake_cuda.fail("cuMemHostRegister_v2", OUT_OF_MEMORY, 1)
    large = device(torch.full((5 << 20,), 1.0))
    dist.all_reduce(large)
    equal(large, torch.full((5 << 20,), float(size)))
    # A device that never makes its tensor.
    late = device(of(rank))
    dist.barrier()
    options = dist.AllreduceOptions()
    options.timeout = datetime.timedelta(seconds=1 if rank == 0 else 60)
    if rank == 0:
        fake_cuda.write_later(late, of(rank))
    text = text_of(lambda: group.allreduce([late], options).wait())
    assert "rank 0" in text and "the device has not made the tensor within 1000 ms" in text, text


def counts_nothing_wrong(rank, size):
    counts = fake_cuda.counts()
    assert counts["wrong"] == 0, counts
    assert counts["recorded"] > 0 and (counts["registered"] > 0) == PINNED, counts


class CudaTest(RanksTest):
    def test_calls_give_what_they_give_on_the_cpu(self):
        bodies = (reduces, gathers, scatters, exchanges, sends, several, takes_parts, follows_streams, keeps_memory)
        self.run_all(3, [*bodies, counts_nothing_wrong])

    def test_faults_are_exceptions(self):
        self.on_ranks(2, lambda rank, size: (refuses(rank, size), counts_nothing_wrong(rank, size))[0])

    def test_says_why_the_driver_cannot_be_used(self):
        def body(rank, size):
            fake_cuda.fail("cuInit", NO_DEVICE, 1)
            for _ in range(2):
                text = text_of(lambda: dist.all_reduce(device(of(rank))))
                end = "a tensor is on cuda:0, and CUDA's driver cannot be used: cuInit: CUDA_ERROR_NO_DEVICE"
                assert text == "shmem:all_reduce: " + end, text
            tensor = of(rank)
            dist.all_reduce(tensor)
            assert torch.equal(tensor, sum(of(one) for one in range(size)))

        self.on_ranks(2, body)

    def test_two_nodes(self):
        self.on_ranks(2, lambda rank, size: [body(rank, size) for body in (reduces, gathers, sends)], nodes=2)


if __name__ == "__main__":
    unittest.main()
