# SPDX-License-Identifier: Apache-2.0
"""A process forked from a rank: each call on the group that it has inherited raises, and the ranks go on. And children of
any kind do not hide that their rank was killed."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest

import torch
from ranks import RanksTest, dist, note, until

import shmem_torch


def ones():
    return torch.ones(4)


def calls(size, works):
    pair = [torch.zeros(2) for _ in range(size)]
    group = dist.distributed_c10d._get_default_group()
    return {
        "all_reduce": lambda: dist.all_reduce(ones()),
        "all_reduce of another size": lambda: dist.all_reduce(torch.ones(7), async_op=True),
        "sparse all_reduce": lambda: dist.all_reduce(ones().to_sparse()),
        "all_reduce_coalesced": lambda: dist.all_reduce_coalesced([ones(), ones()]),
        "refused all_reduce": lambda: dist.all_reduce(ones(), dist.ReduceOp.BAND),
        "barrier": dist.barrier,
        "broadcast": lambda: dist.broadcast(ones(), 0),
        "reduce": lambda: dist.reduce(ones(), 0),
        "all_gather": lambda: dist.all_gather(pair, torch.zeros(2)),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(torch.zeros(2 * size), torch.zeros(2)),
        "gather": lambda: dist.gather(torch.zeros(2), pair, 0),
        "scatter": lambda: dist.scatter(torch.zeros(2), pair, 0),
        "reduce_scatter": lambda: dist.reduce_scatter(torch.zeros(2), pair),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(torch.zeros(2), torch.zeros(2 * size)),
        "all_to_all": lambda: group.alltoall(pair, pair),
        "all_to_all_single": lambda: dist.all_to_all_single(torch.zeros(size), torch.zeros(size)),
        "send": lambda: dist.send(ones(), 1),
        "recv": lambda: dist.recv(ones(), 1),
        "isend": lambda: dist.isend(ones(), 1),
        "irecv": lambda: dist.irecv(ones()),
        "empty": lambda: shmem_torch.empty(4),
        "statistics": shmem_torch.statistics,
        "monitored_barrier": shmem_torch.monitored_barrier,
        **{f"{name}.{call}": getattr(work, call) for name, work in works for call in ("wait", "is_completed", "get_future")},
    }


def texts_in_a_forked_process(calls_of_child):
    """What each call raises there: name to text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        texts = {}
        for name, call in calls_of_child.items():
            try:
                call()
                texts[name] = "nothing was raised"
            except Exception as error:
                texts[name] = str(error)
        # A group of its own.
        dist.destroy_process_group()
        with tempfile.TemporaryDirectory() as folder:
            dist.init_process_group("shmem", init_method=f"file://{folder}/store", rank=0, world_size=1)
            dist.barrier()
            dist.destroy_process_group()
        os.write(writing, pickle.dumps(texts))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return pickle.loads(data)


def forks(rank, size):
    work = dist.all_reduce(ones(), async_op=True)
    work.wait()
    late = torch.zeros(4)
    received = dist.irecv(late, 1) if rank == 0 else None
    texts = {}
    if rank == 0:
        texts = texts_in_a_forked_process(calls(size, [("call", work), ("message", received)]))
    for _ in range(3):
        tensor = ones()
        dist.all_reduce(tensor)
        assert (tensor == size).all()
    if rank == 1:
        dist.send(ones(), 0)
    elif rank == 0:
        received.wait()
        assert (late == 1).all()
    dist.barrier()
    return texts


def live(released):
    signal.alarm(100)
    os.read(released, 1)
    os._exit(0)


def fork(released):
    if os.fork() == 0:
        live(released)


def daemonise(released):
    first = os.fork()
    if first == 0:
        os.setsid()
        fork(released)
        os._exit(0)
    os.waitpid(first, 0)


started = []  # Python warns of those that nothing refers to
# How a rank starts a process that lives until there is something to read.
WAYS = {
    "os.fork": fork,
    "daemon": daemonise,
    "multiprocessing": lambda released: multiprocessing.get_context("fork").Process(target=live, args=(released,)).start(),
    "subprocess": lambda released: started.append(
        subprocess.Popen(["sh", "-c", f"read byte <&{released}"], pass_fds=[released])
    ),
    "system": lambda released: os.system(f"read byte <&{released} &"),
}


def connections_of_programs():
    """Those that a program gets which this process starts."""
    found = set()
    for fd in map(int, os.listdir("/proc/self/fd")):
        with contextlib.suppress(OSError):  # it is closed, or no connection
            if stat.S_ISSOCK(os.fstat(fd).st_mode) and os.get_inheritable(fd):
                with socket.fromfd(fd, socket.AF_INET, socket.SOCK_STREAM) as end:
                    end.getpeername()
                found.add(fd)
    return found


def killed_with_a_child(start, released, release):
    """Rank 1 is killed. Returns what rank 0 is told, and how soon."""
    others = connections_of_programs()

    def body(rank, size):
        dist.all_reduce(ones())
        if rank == 1:
            # A rank that waits sees to it, once a second, that programs do not get UCX's connections.
            work = dist.all_reduce(ones(), async_op=True)
            end = time.monotonic() + 50
            while connections_of_programs() - others and time.monotonic() < end:
                time.sleep(0.01)
            note("private")
            work.wait()
        else:
            until("private")
            dist.all_reduce(ones())
        if rank == 1:
            start(released)
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.monotonic()
        try:
            dist.all_reduce(ones())
            return "nothing was raised", 0
        except RuntimeError as error:
            return str(error), time.monotonic() - began
        finally:
            os.write(release, b"\n")

    return body


class Forks(RanksTest):
    def test_a_child_of_a_killed_rank_does_not_keep_the_others_waiting(self):
        for way, start in WAYS.items():
            for nodes in (1, 2):
                with self.subTest(way=way, nodes=nodes):
                    released, release = os.pipe()
                    os.set_inheritable(released, True)
                    text, took = self.on_ranks(2, killed_with_a_child(start, released, release), dead=[1], nodes=nodes)[0]
                    os.close(released)
                    os.close(release)
                    self.assertIn("rank 1", text)
                    self.assertLess(took, 20)

    def test_each_call_of_a_forked_process_raises_and_the_ranks_go_on(self):
        for nodes in (1, 2):
            texts = self.on_ranks(2, forks, nodes=nodes)[0]
            self.assertGreater(len(texts), 25)
            for name, text in texts.items():
                with self.subTest(nodes=nodes, call=name):
                    self.assertIn("this process was forked from", text)


if __name__ == "__main__":
    unittest.main(verbosity=0)
