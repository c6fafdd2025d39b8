#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times calls of torch.distributed with gloo and with shmem, in one run.

usage: torch_backends.py [--sizes 2,4,8] [--seconds 0.3] [--calls ...] [--bytes ...] [--dtypes ...] [--svg FILE]
                         [--nodes N] [--neighbours N]

For each number of ranks, call and size: the time of a call (median of rounds, slowest rank) with each backend, and with
shmem's on tensors in symmetric memory, taken in turns; and how many times faster than gloo shmem is. Last, how long it
takes all ranks to copy as many bytes at the same time: an all_reduce reads and writes no less. Calls that compute are
sums, of each dtype ("-": it cannot be measured); the others move bytes, as float32. For each number of ranks a verdict says whether
shmem is as fast as it is to be. With --nodes the ranks take themselves to be on so many nodes, in turn. There symmetric
memory makes calls no faster, and two times more are measured: of the same call among the ranks of a node, and of a
message of as many bytes to another node and back. With --neighbours other processes compute meanwhile. Set PYTHONPATH to
build/lib/python. --svg needs python3-matplotlib.
"""

import argparse
import contextlib
import multiprocessing
import os
import statistics
import sys
import tempfile
import time

try:
    import torch
    import torch.distributed as dist

    import shmem_torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

torch.set_num_threads(1)
CALLS = ("barrier", "all_reduce", "reduce", "broadcast", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "send")
COMPUTING = ("all_reduce", "reduce", "reduce_scatter")
BYTES = (4, 64, 1024, 4096, 65536, 1 << 20, 16 << 20, 64 << 20)
DTYPES = ("float32", "bfloat16", "float16", "int64")


def maker(call, size, count, dtype, group, allocate):
    """A function that makes one call. Zeros: a sum in place of them never overflows."""
    tensor = allocate(max(count, 1), dtype).fill_(0)
    output = torch.zeros(max(count, 1), dtype=dtype)
    if call == "barrier":
        return lambda: dist.barrier(group=group)
    if call == "copy":
        return lambda: output.copy_(tensor)
    if call == "all_reduce":
        return lambda: dist.all_reduce(tensor, dist.ReduceOp.SUM, group=group)
    if call == "reduce":
        return lambda: dist.reduce(tensor, 0, dist.ReduceOp.SUM, group=group)
    if call == "broadcast":
        return lambda: dist.broadcast(tensor, 0, group=group)
    if call == "send":  # from each rank to the next one, around
        return lambda: pass_on(tensor, output, group)
    if call == "all_to_all":
        outputs = torch.zeros(count * size, dtype=dtype)
        given = allocate(count * size, dtype).fill_(0)
        return lambda: dist.all_to_all_single(outputs, given, group=group)
    if call == "reduce_scatter":
        given = list(allocate(count * size, dtype).fill_(0).chunk(size))
        return lambda: dist.reduce_scatter(output[:count], given, dist.ReduceOp.SUM, group=group)
    parts = [torch.zeros(count, dtype=dtype) for _ in range(size)]
    if call == "all_gather":
        return lambda: dist.all_gather(parts, tensor, group=group)
    mine = parts if dist.get_rank() == 0 else None
    if call == "gather":
        return lambda: dist.gather(tensor, mine, 0, group=group)
    return lambda: dist.scatter(tensor, mine, 0, group=group)


def pass_on(tensor, output, group):
    rank, size = dist.get_rank(), dist.get_world_size()
    sent = dist.isend(tensor, (rank + 1) % size, group=group)
    dist.recv(output, (rank - 1) % size, group=group)
    sent.wait()


def answer(tensor, output, group):
    """A message from rank 0 to rank 1, and one back."""
    rank = dist.get_rank()
    if rank == 0:
        sent = dist.isend(tensor, 1, group=group)
    if rank < 2:
        dist.recv(output, 1 - rank, group=group)
    if rank == 1:
        sent = dist.isend(tensor, 0, group=group)
    if rank < 2:
        sent.wait()


def timed(make, rounds):
    """Mean seconds of one of the calls."""
    begin = time.perf_counter()
    for _ in range(rounds):
        make()
    return (time.perf_counter() - begin) / rounds


def slowest(value, group):
    tensor = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX, group=group)
    return tensor.item()


def element_size(name):
    return torch.empty(0, dtype=getattr(torch, name)).element_size()


def cases(arguments, size):
    """(call, dtype, bytes) in the order in which they are measured."""
    for call in arguments.calls:
        for name in arguments.dtypes if call in COMPUTING else ("float32",):
            for count in (0,) if call == "barrier" else arguments.bytes:
                is_large = call in ("all_gather", "gather", "scatter", "reduce_scatter", "all_to_all") and count * size > 256 << 20
                if not is_large and (count == 0 or count >= element_size(name)):
                    yield call, name, count


def can(make):
    try:
        make()
    except RuntimeError:  # before anything was sent: gloo does not know the call or the dtype
        return False
    return True


def times_of(makes, seconds, group):
    """The median seconds of each call, on the slowest rank."""
    rounds = {}
    for name, make in makes.items():
        timed(make, 3)
        one = slowest(timed(make, 3), group)
        rounds[name] = max(1, min(2000, int(seconds / 5 / one)))
    samples = {name: [] for name in makes}
    for _ in range(5):  # in turns: both see the same machine
        for name, make in makes.items():
            dist.barrier(group=group)
            samples[name].append(slowest(timed(make, rounds[name]), group))
    return {name: statistics.median(values) for name, values in samples.items()}


def measure(rank, size, folder, arguments, results):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    if arguments.nodes > 1:
        os.environ["SHMEM_HOST_ID"] = f"node-{rank % arguments.nodes}"
    shmem = dist.new_group(backend="shmem")
    nodes = [dist.new_group(range(node, size, arguments.nodes), backend="shmem") for node in range(arguments.nodes)]
    ways = {
        "gloo": (dist.group.WORLD, lambda count, dtype: torch.empty(count, dtype=dtype)),
        "shmem": (shmem, lambda count, dtype: torch.empty(count, dtype=dtype)),
        "symmetric": (shmem, lambda count, dtype: shmem_torch.empty(count, dtype, group=shmem)),
    }
    if arguments.nodes > 1:
        del ways["symmetric"]
    for call, name, count in cases(arguments, size):
        dtype = getattr(torch, name)
        elements = count // element_size(name)
        makes = {way: maker(call, size, elements, dtype, *how) for way, how in ways.items()}
        makes["copy"] = maker("copy", size, elements, dtype, *ways["gloo"])
        if arguments.nodes > 1 and call in ("barrier", "all_reduce"):
            makes["node"] = maker(call, size, elements, dtype, nodes[rank % arguments.nodes], ways["gloo"][1])
            there, back = (torch.zeros(max(elements, 1), dtype=dtype) for _ in range(2))
            makes["trip"] = lambda: answer(there, back, shmem)
        if not can(makes["gloo"]):
            del makes["gloo"]
        row = times_of(makes, arguments.seconds, shmem)
        if rank == 0:
            results.put((call, name, count, row))
    if rank == 0:
        results.put(None)
        results.close()
        results.join_thread()
    dist.barrier()
    os._exit(0)


def run(size, arguments):
    """Yields (call, dtype, bytes, {way: microseconds})."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        results = context.Queue()
        ranks = [context.Process(target=measure, args=(rank, size, folder, arguments, results)) for rank in range(size)]
        for process in ranks:
            process.start()
        try:
            while (result := results.get(timeout=300)) is not None:
                call, name, count, row = result
                yield call, name, count, {way: 1e6 * value for way, value in row.items()}
            for process in ranks:
                process.join(60)
        finally:
            for process in ranks:
                process.kill()


def compute():
    while True:
        pass


@contextlib.contextmanager
def neighbours(count):
    """Other processes that compute."""
    processes = [multiprocessing.get_context("fork").Process(target=compute, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()


def factor_aimed_at(size, call, count):
    """How many times faster than gloo a call is to be."""
    if size > 2:
        return 1
    if call == "barrier" or count <= 4096:
        return 20
    return 4 if 65536 <= count <= 64 << 20 else 1


def misses_on_nodes(table):
    for call, name, count, row in table:
        what = f"{call} {name} {count} bytes"
        most = 1.3 * row["trip"] + row["node"] if "trip" in row and count <= 4096 else None
        if most and row["shmem"] > most:
            yield f"{what}: {row['shmem']:.1f} us are more than 1.3 round trips and the node's part, {most:.1f} us"
        if (call, count) == ("all_reduce", 64 << 20) and "gloo" in row and row["gloo"] / row["shmem"] < 1.5:
            yield f"{what}: shmem is {row['gloo'] / row['shmem']:.2f} times as fast as gloo, not 1.5"


def misses(size, table):
    """What is slower than it is to be, as text."""
    for call, name, count, row in table:
        what = f"{call} {name} {count} bytes"
        for way in ("shmem", "symmetric") if "gloo" in row else ():
            aim, times = factor_aimed_at(size, call, count), row["gloo"] / row[way]
            if times < aim:
                yield f"{what}: {way} is {times:.1f} times as fast as gloo, not {aim}"
        if (size, call, count) == (2, "all_reduce", 64 << 20) and row["copy"] / row["symmetric"] < 0.7:
            yield f"{what}: symmetric reaches {100 * row['copy'] / row['symmetric']:.0f} % of the copy's speed, not 70 %"


def draw(rows, file):
    """A chart for each number of ranks: how many times faster than gloo."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "torch_backends", "font.size": 9})
    from matplotlib import pyplot

    figure, plots = pyplot.subplots(1, len(rows), figsize=(5 * len(rows), 5), sharey=True, squeeze=False)
    for plot, (size, table) in zip(plots[0], rows.items()):
        for number, call in enumerate(CALLS):
            points = [
                (count, row["gloo"] / row["shmem"])
                for one, name, count, row in table
                if (one, name) == (call, "float32") and "gloo" in row  # gloo has not all calls
            ]
            if not points:
                continue
            if call == "barrier":
                plot.axhline(points[0][1], color=f"C{number}", linestyle="--", linewidth=1, label=call)
            else:
                plot.plot(*zip(*points), color=f"C{number}", marker="o", markersize=3, label=call)
        plot.axhline(1, color="black", linewidth=1)
        plot.set(title=f"{size} ranks", xlabel="bytes", xscale="log", yscale="log")
        plot.grid(True, which="major", linewidth=0.3)
    plots[0][0].set_ylabel("times faster than gloo")
    plots[0][-1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def text_of(number, digits):
    return f"{number:{digits}.1f}" if number is not None else f"{'-':>{digits}}"


def show(size, call, name, count, row):
    gloo = row.get("gloo")
    shmem, symmetric, copy = row["shmem"], row.get("symmetric"), row["copy"]
    print(
        f"{size:5} {call:14} {name:9} {count:9} {text_of(gloo, 10)} {shmem:10.1f} {text_of(gloo and gloo / shmem, 13)} "
        f"{text_of(symmetric, 13)} {text_of(gloo and symmetric and gloo / symmetric, 13)} {copy:10.1f}"
        + (f" {row['node']:10.1f} {row['trip']:10.1f}" if "trip" in row else ""),
        flush=True,
    )


def among(choices):
    """Parses a list of some of them."""

    def parse(text):
        wrong = [one for one in text.split(",") if one not in choices]
        if wrong:
            raise argparse.ArgumentTypeError(f"{wrong[0]} is not one of {', '.join(choices)}")
        return text.split(",")

    return parse


def numbers(text):
    return [int(one) for one in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2,4,8", type=numbers, help="numbers of ranks")
    parser.add_argument("--seconds", default=0.3, type=float, help="for each call, size and backend")
    parser.add_argument("--calls", default=CALLS, type=among(CALLS))
    parser.add_argument("--bytes", default=BYTES, type=numbers)
    parser.add_argument("--dtypes", default=DTYPES, type=among(DTYPES), help="of the calls that compute")
    parser.add_argument("--nodes", default=1, type=int, help="that the ranks take themselves to be on")
    parser.add_argument("--neighbours", default=0, type=int, help="other processes that compute meanwhile")
    parser.add_argument("--svg", help="write a chart to this file")
    arguments = parser.parse_args()
    print(
        "ranks call           dtype         bytes    gloo_us   shmem_us  times_faster  symmetric_us  times_faster    copy_us"
        + ("    node_us    trip_us" if arguments.nodes > 1 else "")
    )
    rows = {}
    for size in arguments.sizes:
        rows[size] = []
        with neighbours(arguments.neighbours):
            for row in run(size, arguments):
                rows[size].append(row)
                show(size, *row)
    for size, table in rows.items():
        missed = list(misses(size, table) if arguments.nodes == 1 else misses_on_nodes(table))
        print(f"verdict, {size} ranks: {len(table)} calls, {len(missed)} aims missed")
        for one in missed:
            print(f"  {one}")
    if arguments.svg:
        draw(rows, arguments.svg)


if __name__ == "__main__":
    main()
