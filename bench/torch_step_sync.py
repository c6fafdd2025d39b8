#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what the ranks of a serving engine do before each step, with each backend of torch.distributed: an all_gather of 6
int64 and an all_reduce (MAX) of 4. Then kills a rank, and times until all others know.

usage: torch_step_sync.py [--sizes 2,4,8] [--nodes 1,2] [--neighbours 0,1] [--seconds S] [--kills N] [--svg FILE]

The backends are gloo and shmem, and where PyTorch has MPI (Debian testing) that, by Open MPI's own collectives and by UCC
(coll/ucc). They take turns in one run: two, if there is MPI, of which each has gloo and shmem. Times are those of a step in
microseconds: median, mean and 99th percentile of all steps of the rank that is slowest. With two nodes, ranks take
themselves to be on one of them in turn, and all that passes between processes of different nodes is TCP; with Open MPI and
UCC all is. Neighbours are other processes that compute. Set PYTHONPATH to build/lib/python. --svg needs python3-matplotlib.
"""

import argparse
import contextlib
import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist

LIMIT = 120  # seconds
TURNS = 5


def step(gathered, mine, agreed, group):
    dist.all_gather(gathered, mine, group=group)
    dist.all_reduce(agreed, dist.ReduceOp.MAX, group=group)


class Steps:
    """The steps of one group."""

    def __init__(self, group, rank, size):
        self.group = group
        self.mine = torch.arange(6) + 100 * rank
        self.gathered = [torch.zeros(6, dtype=torch.int64) for _ in range(size)]
        self.agreed = torch.zeros(4, dtype=torch.int64)
        self.rank, self.size = rank, size

    def make(self, count):
        """Seconds of each step."""
        times = []
        for _ in range(count):
            self.agreed.fill_(self.rank)
            begin = time.perf_counter()
            step(self.gathered, self.mine, self.agreed, self.group)
            times.append(time.perf_counter() - begin)
        if self.agreed.tolist() != [self.size - 1] * 4 or any(
            one.tolist() != [100 * rank + i for i in range(6)] for rank, one in enumerate(self.gathered)
        ):
            raise SystemExit(f"rank {self.rank}: wrong results: {self.agreed}, {self.gathered}")
        return times


def all_max(values):
    tensor = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.tolist()


def measure(rank, size, seconds, with_mpi):
    import shmem_torch  # noqa: F401

    groups = {"gloo": dist.group.WORLD, "shmem": dist.new_group(backend="shmem")}
    if with_mpi:
        groups["mpi"] = dist.new_group(backend="mpi")
    steps = {name: Steps(group, rank, size) for name, group in groups.items()}
    counts = {}
    for name, one in steps.items():
        one.make(10)
        counts[name] = max(20, int(seconds / TURNS / all_max([statistics.mean(one.make(20))])[0]))
    times = {name: [] for name in steps}
    for _ in range(TURNS):
        for name, one in steps.items():
            dist.barrier()
            times[name] += one.make(min(counts[name], 20_000))
    rows = {}
    for name, mine in times.items():
        mine.sort()
        figures = [statistics.median(mine), statistics.mean(mine), mine[len(mine) * 99 // 100]]
        rows[name] = [1e6 * value for value in all_max(figures)]
    return rows


def lose_a_rank(rank, size, backend, folder):
    """Rank 1 kills itself; the others say when they knew, and what they were told."""
    if backend == "shmem":
        import shmem_torch  # noqa: F401
    steps = Steps(dist.group.WORLD if backend != "mpi" else dist.new_group(backend="mpi"), rank, size)
    steps.make(200)
    if rank == 1:
        with open(f"{folder}/killed", "w", encoding="utf-8") as file:
            print(time.monotonic(), file=file)
        os.kill(os.getpid(), signal.SIGKILL)
    text = ""
    try:
        steps.make(1 << 30)
    except Exception as error:  # noqa: BLE001: whatever it is
        text = str(error).splitlines()[0]
    with open(f"{folder}/knows-{rank}", "w", encoding="utf-8") as file:
        json.dump([time.monotonic(), text], file)


def init_mpi():
    """PyTorch calls MPI in a thread of its own, and would say so to no one: UCC ends a process that does that."""
    multiple = 3  # MPI_THREAD_MULTIPLE
    ctypes.CDLL("libmpi.so.40").MPI_Init_thread(None, None, multiple, ctypes.byref(ctypes.c_int()))


def run_rank(arguments):
    if arguments.mpi or arguments.kill == "mpi":
        init_mpi()
    rank = int(os.environ.get("OMPI_COMM_WORLD_RANK", arguments.rank))
    if arguments.nodes > 1:
        os.environ["SHMEM_HOST_ID"] = f"node-{rank % arguments.nodes}"
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    world = arguments.kill if arguments.kill == "shmem" else "gloo"
    if world == "shmem":
        import shmem_torch  # noqa: F401
    dist.init_process_group(
        world, init_method=f"file://{arguments.folder}/store", rank=rank, world_size=arguments.size
    )
    if arguments.kill:
        lose_a_rank(rank, arguments.size, arguments.kill, arguments.folder)
    else:
        rows = measure(rank, arguments.size, arguments.seconds, arguments.mpi)
        if rank == 0:
            with open(f"{arguments.folder}/rows", "w", encoding="utf-8") as file:
                json.dump(rows, file)
        dist.barrier()
    os._exit(0)


def command_of(size, nodes, folder, *more):
    return [sys.executable, __file__, "--rank", "0", "--size", str(size), "--on-nodes", str(nodes), "--folder", folder, *more]


def mpirun(size, nodes, with_ucc):
    words = ["mpirun.openmpi" if shutil.which("mpirun.openmpi") else "mpirun", "-n", str(size), "--oversubscribe", "--bind-to", "none"]
    words += ["--mca", "coll_ucc_enable", str(int(with_ucc)), "--mca", "coll_ucc_priority", "100"]
    if nodes > 1:
        words += ["--mca", "pml", "ob1", "--mca", "btl", "self,tcp"]
    return words


def environment(nodes):
    added = {"OMP_NUM_THREADS": "1"}
    if os.geteuid() == 0:
        added.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if nodes > 1:
        added["UCX_TLS"] = "tcp,self"
    return {**os.environ, **added}


def run(words, size, nodes, of_mpi, *more):
    """The processes, until they end; what their folder has then, and the output and end of a launcher."""
    with tempfile.TemporaryDirectory() as folder:
        launcher = mpirun(size, nodes, of_mpi == "ucc") if of_mpi else []
        starts = 1 if of_mpi else size
        processes = []
        for rank in range(starts):
            command = command_of(size, nodes, folder, *words)
            command[command.index("--rank") + 1] = str(rank)
            processes.append(
                subprocess.Popen(launcher + command, env=environment(nodes), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            )
        try:
            outputs = [process.communicate(timeout=LIMIT)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        ended = time.monotonic()
        files = {}
        for name in os.listdir(folder):
            with contextlib.suppress(ValueError, UnicodeDecodeError), open(f"{folder}/{name}", encoding="utf-8") as file:
                files[name] = json.load(file)
        return files, "\n".join(outputs), ended


def runs():
    """Those that have all backends between them: "": without MPI's launcher."""
    return ["mpi", "ucc"] if dist.is_mpi_available() else [""]


def figures(arguments):
    from torch_backends import neighbours

    print(f"{'nodes':>5} {'ranks':>5} {'neighbours':>10} {'backend':>8} {'median us':>10} {'mean us':>9} {'99 % us':>9} {'as fast as gloo':>16}")
    table = []
    for nodes in arguments.nodes_of_runs:
        for size in arguments.sizes:
            for count in arguments.neighbours:
                for of_mpi in runs():
                    with neighbours(count):
                        words = ["--seconds", str(arguments.seconds), *(["--mpi"] if of_mpi else [])]
                        files, output, _ = run(words, size, nodes, of_mpi)
                    if "rows" not in files:
                        raise SystemExit(f"no figures of {size} ranks:\n{output}")
                    for name, row in files["rows"].items():
                        if of_mpi == "ucc" and name != "mpi":
                            continue  # both runs have them: the first one's are shown
                        name = "ucc" if of_mpi == "ucc" else name
                        times = files["rows"]["gloo"][0] / row[0]
                        table.append((nodes, size, count, name, *row, times))
                        print(f"{nodes:>5} {size:>5} {count:>10} {name:>8} {row[0]:>10.1f} {row[1]:>9.1f} {row[2]:>9.1f} {times:>16.2f}", flush=True)
    return table


def kills(arguments):
    print(f"\n{'backend':>8} {'ranks':>5}  until all others know, ms (median of {arguments.kills}), and what one is told")
    for backend, of_mpi in (("gloo", ""), ("shmem", ""), *((("mpi", "mpi"),) if dist.is_mpi_available() else ())):
        for size in (one for one in arguments.sizes if one > 1):
            times, text = [], ""
            for _ in range(arguments.kills):
                files, output, ended = run(["--kill", backend], size, 1, of_mpi)
                knows = [files[name] for name in files if name.startswith("knows-")]
                last = max(at for at, _ in knows) if len(knows) == size - 1 else ended
                times.append(1e3 * (last - files["killed"]))
                text = knows[0][1] if knows else "the launcher ends them: " + next((line for line in output.splitlines() if "signal" in line), "")
            print(f"{backend:>8} {size:>5}  {statistics.median(times):.0f}  {text}", flush=True)


def draw(table, file):
    """A chart for each number of nodes and neighbours: microseconds over ranks."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "torch_step_sync", "font.size": 9})
    from matplotlib import pyplot

    cases = sorted({(row[0], row[2]) for row in table})
    figure, plots = pyplot.subplots(1, len(cases), figsize=(3.2 * len(cases), 3.6), sharey=True, squeeze=False)
    for plot, (nodes, count) in zip(plots[0], cases):
        for number, name in enumerate(("gloo", "shmem", "mpi", "ucc")):
            points = [(row[1], row[5]) for row in table if (row[0], row[2], row[3]) == (nodes, count, name)]
            if points:
                plot.plot(*zip(*points), color=f"C{number}", marker="o", markersize=3, label={"mpi": "Open MPI", "ucc": "Open MPI with UCC"}.get(name, name))
        beside = "" if count == 0 else f", {count} busy neighbour" + ("s" if count > 1 else "")
        plot.set(title=f"{nodes} node{'s' if nodes > 1 else ''}{beside}", xlabel="ranks", yscale="log")
        plot.grid(True, which="major", linewidth=0.3)
    plots[0][0].set_ylabel("mean of a step, us")
    plots[0][-1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def numbers(text):
    return [int(one) for one in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="2,4,8", type=numbers, help="numbers of ranks")
    parser.add_argument("--nodes", dest="nodes_of_runs", default="1,2", type=numbers)
    parser.add_argument("--neighbours", default="0,1", type=numbers, help="numbers of other processes that compute")
    parser.add_argument("--seconds", default=1, type=float, help="for each backend")
    parser.add_argument("--kills", default=5, type=int, help="for each backend and number of ranks")
    parser.add_argument("--svg", help="write a chart to this file")
    for name, kind in (("--rank", int), ("--size", int), ("--folder", str), ("--kill", str)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--on-nodes", dest="nodes", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--mpi", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank is not None:
        run_rank(arguments)
    print(f"PyTorch {torch.__version__}, load {os.getloadavg()[0]:.2f}, {len(os.sched_getaffinity(0))} processors")
    table = figures(arguments)
    if arguments.kills:
        kills(arguments)
    if arguments.svg:
        draw(table, arguments.svg)


if __name__ == "__main__":
    main()
