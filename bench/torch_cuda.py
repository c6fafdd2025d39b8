#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times all_reduce of CUDA tensors with gloo and with shmem, whose memory of the host is pinned or not, on a machine with a GPU.

usage: torch_cuda.py [--ranks N] [--bytes N,N,...] [--seconds S]

All ranks use all devices in turn: one is enough. For each size, in microseconds, medians of rounds on the slowest rank:
a call with gloo, with shmem and pinned memory, with shmem and other memory (SHMEM_TORCH_PINNED=0), and a copy of as many
bytes to the host and back, pinned; and how many times faster than gloo shmem is. gloo and shmem take turns. Exits with 77
without a device. Set PYTHONPATH to build/lib/python.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist

BYTES = (4, 1024, 4096, 65536, 1 << 20, 16 << 20, 64 << 20)


def timed(make, rounds):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(rounds):
        make()
    torch.cuda.synchronize()
    return 1e6 * (time.perf_counter() - begin) / rounds


def slowest(value):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.item()


def check(rank, size, shmem):
    tensor = torch.full((1 << 20,), float(rank + 1), device="cuda")
    tensor *= 2  # on the stream, before the call
    dist.all_reduce(tensor, group=shmem)
    expected = float(size * (size + 1))
    if not bool((tensor == expected).all()):
        raise SystemExit(f"rank {rank}: wrong result: {tensor[:3]} instead of {expected}")


def measure(rank, size, folder, arguments, results):
    import shmem_torch  # noqa: F401

    torch.cuda.set_device(rank % torch.cuda.device_count())
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    shmem = dist.new_group(backend="shmem")
    check(rank, size, shmem)
    for count in arguments.bytes:
        tensor = torch.zeros(max(count // 4, 1), device="cuda")
        host = torch.zeros_like(tensor, device="cpu").pin_memory()
        makes = {
            "gloo": lambda t=tensor: dist.all_reduce(t),
            "shmem": lambda t=tensor: dist.all_reduce(t, group=shmem),
            "copies": lambda t=tensor, h=host: (h.copy_(t), t.copy_(h)),
        }
        rounds = {}
        for name, make in makes.items():
            timed(make, 3)
            rounds[name] = max(1, min(2000, int(arguments.seconds * 2e5 / slowest(timed(make, 3)))))
        samples = {name: [] for name in makes}
        for _ in range(5):
            for name, make in makes.items():
                dist.barrier()
                samples[name].append(slowest(timed(make, rounds[name])))
        if rank == 0:
            results.put((count, {name: statistics.median(values) for name, values in samples.items()}))
    if rank == 0:
        results.put(None)
    dist.barrier()


def run(arguments, pinned):
    """{bytes: {way: microseconds}}"""
    os.environ["SHMEM_TORCH_PINNED"] = pinned
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        results = context.Queue()
        ranks = [
            context.Process(target=measure, args=(rank, arguments.ranks, folder, arguments, results), daemon=True)
            for rank in range(arguments.ranks)
        ]
        for process in ranks:
            process.start()
        rows = {}
        while (result := results.get(timeout=300)) is not None:
            rows[result[0]] = result[1]
        for process in ranks:
            process.join(60)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", type=lambda text: [int(one) for one in text.split(",")], default=BYTES)
    parser.add_argument("--seconds", type=float, default=0.3)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print(f"skipped: PyTorch {torch.__version__} sees no CUDA device here")
        sys.exit(77)
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, {arguments.ranks} ranks")
    pinned, other = run(arguments, "1"), run(arguments, "0")
    print(f"{'bytes':>10} {'gloo us':>10} {'pinned us':>10} {'other us':>10} {'copies us':>10} {'times faster':>13}")
    for count, row in pinned.items():
        print(
            f"{count:>10} {row['gloo']:>10.1f} {row['shmem']:>10.1f} {other[count]['shmem']:>10.1f} {row['copies']:>10.1f} "
            f"{row['gloo'] / row['shmem']:>13.2f}"
        )


if __name__ == "__main__":
    main()
