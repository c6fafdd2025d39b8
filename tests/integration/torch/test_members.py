# SPDX-License-Identifier: Apache-2.0
"""Groups of other members: split, merge, shrink and reconfigure, after which members may have died, left or returned.
PyTorch 2.14 and later."""

import datetime
import os
import signal
import sys
import tempfile
import time
import unittest

import torch
from ranks import RanksTest, dist, text_of, torch_version

if torch_version() < (2, 14):
    print(f"skipped: PyTorch {torch.__version__} has no such groups")
    sys.exit(77)

import shmem_torch  # noqa: F401

LIMIT = datetime.timedelta(seconds=60)
c10d = dist.distributed_c10d


def world():
    return c10d._get_default_group()


def backend_of(group):
    return group._get_backend(torch.device("cpu"))


def assert_sum(group, value, expected):
    tensor = torch.full((1000,), float(value))
    group.allreduce([tensor]).wait()
    assert (tensor == expected).all(), tensor[0]


def splits(rank, size):
    halves = [[0, 2], [3, 1]]
    mine = halves[rank % 2]
    group = world().split_group(mine, timeout=LIMIT, group_desc="half")
    assert (group.rank(), group.size()) == (mine.index(rank), 2)
    assert_sum(group, rank, sum(mine))
    assert backend_of(group).options._timeout == LIMIT
    assert backend_of(group).options.group_name == group.group_name
    # A rank that is in no part, and a part of a part.
    alone = world().split_group([1])
    assert (alone is not None) == (rank == 1)
    if rank == 1:
        assert_sum(alone, 5, 5)
    again = group.split_group([1, 0])
    assert again.rank() == 1 - group.rank()
    assert_sum(again, rank, sum(mine))
    assert_sum(world(), rank, 6)
    world().barrier().wait()


def merges(rank, size):
    """The ranks of two groups, which do not know each other, form one."""
    half = world().split_group([0, 1] if rank < 2 else [2, 3])
    store = dist.PrefixStore("merge", dist.distributed_c10d._get_default_store())
    whole = half.merge_remote_group(store, 4, LIMIT, group_name="whole")
    assert whole.size() == 4 and 0 <= whole.rank() < 4
    assert_sum(whole, rank, 6)
    world().barrier().wait()


def shrinks(rank, size):
    """Rank 1 dies, rank 2 waits for it; the others and rank 2 go on without."""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    text = text_of(dist.barrier)
    group = dist.shrink_group([1], shrink_flags=dist.distributed_c10d.SHRINK_ABORT)
    assert (group.rank(), group.size()) == ([0, None, 1, 2][rank], 3)
    assert group is world() or dist.get_world_size() == 3
    tensor = torch.ones(5)
    dist.all_reduce(tensor)
    assert (tensor == 3).all()
    return text


def wrong_shrinks(rank, size):
    mine = backend_of(world())
    texts = [text_of(lambda: mine.shrink([rank])), text_of(lambda: mine.shrink([size]))]
    dist.barrier()
    return texts


def ready(folder, rank, size):
    store = dist.FileStore(f"{folder}/reconfigured", size)
    dist.destroy_process_group()
    dist.init_process_group(
        "shmem", store=store, rank=rank, world_size=size, timeout=LIMIT, enable_reconfigure=True
    )
    return store


def handles_of(store, name, rank, ranks):
    store.set(f"{name}_{rank}", dist.distributed_c10d._get_reconfigure_handle())
    return [store.get(f"{name}_{one}").decode() for one in ranks]


def reconfigure(uuid, handles):
    dist.distributed_c10d._reconfigure(uuid, handles, timeout=LIMIT).wait()


def all_sum(expected):
    tensor = torch.full((4,), dist.get_rank() + 1.0)
    dist.all_reduce(tensor)
    assert (tensor == expected).all(), tensor


def members_change(rank, size):
    """What PyTorch's test of fault tolerance does for gloo: shrink, grow, merge, split, and go on after abort()."""
    store = ready(os.environ["FOLDER"], rank, size)
    group = world()
    assert dist.distributed_c10d._supports_reconfigure() and backend_of(group).supports_reconfigure
    assert "call reconfigure" in text_of(dist.barrier)
    everyone = range(size)
    # All, as a set: the ranks are those in the default group.
    reconfigure(1, set(handles_of(store, "first", rank, everyone)))
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    all_sum(6)
    # In another order.
    handles = handles_of(store, "turned", rank, everyone)
    reconfigure(2, handles[::-1])
    assert dist.get_rank() == size - 1 - rank
    all_sum(6)
    # Without rank 1, which stays alone.
    handles = handles_of(store, "shrunk", rank, everyone)
    reconfigure(10 + (rank == 1), [handles[1]] if rank == 1 else [handles[0], handles[2]])
    assert dist.get_world_size() == (1 if rank == 1 else 2)
    all_sum(1 if rank == 1 else 3)
    # All again, after an abort of one of them in the midst of calls.
    handles = handles_of(store, "again", rank, everyone)
    reconfigure(20, handles)
    handles_of(store, "formed", rank, everyone)  # else the abort would end what forms the group on the others
    work = dist.all_reduce(torch.zeros(10), async_op=True) if rank != 1 else None
    if rank == 1:
        backend_of(group).abort()
    else:
        assert "rank 1 has aborted" in text_of(work.wait)
    handles = handles_of(store, "recovered", rank, everyone)
    reconfigure(21, handles)
    assert backend_of(group).get_error().name == "SUCCESS"
    all_sum(6)
    right = dist.isend(torch.full((4,), float(rank)), (rank + 1) % size)
    got = torch.zeros(4)
    dist.recv(got, (rank - 1) % size)
    right.wait()
    assert (got == (rank - 1) % size).all()
    # Calls that are under way end when their group does.
    pending = dist.all_reduce(torch.zeros(10), async_op=True) if rank == 0 else None
    handles = handles_of(store, "interrupted", rank, everyone)
    reconfigure(22, handles)
    if pending:
        assert "reconfigure" in text_of(pending.wait)
    all_sum(6)
    dist.barrier()


def a_member_returns(rank, size):
    """Rank 1 dies; the others go on; a new process takes its place."""
    folder = os.environ["FOLDER"]
    store = ready(folder, rank, size)
    reconfigure(1, handles_of(store, "first", rank, range(size)))
    all_sum(6)
    if rank == 1:
        if os.fork() != 0:
            os.kill(os.getpid(), signal.SIGKILL)
        # A process of its own, that has nothing of the one before.
        program = "import sys; sys.path.insert(0, sys.argv[1]); import test_members; test_members.newcomer(sys.argv[2])"
        os.execv(sys.executable, [sys.executable, "-c", program, os.path.dirname(os.path.abspath(__file__)), folder])
    assert "rank 1" in text_of(dist.barrier)
    reconfigure(2, handles_of(store, "without", rank, [0, 2]))
    assert dist.get_world_size() == 2
    all_sum(3)
    handles = handles_of(store, "with", rank, [0, 2])
    new = store.get("with_new").decode()
    reconfigure(3, [handles[0], new, handles[1]])
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    all_sum(6)
    dist.barrier()


def newcomer(folder):
    store = dist.FileStore(f"{folder}/reconfigured", 3)
    dist.init_process_group("shmem", store=store, rank=1, world_size=3, timeout=LIMIT, enable_reconfigure=True)
    store.set("with_new", dist.distributed_c10d._get_reconfigure_handle())
    reconfigure(3, [store.get("with_0").decode(), dist.distributed_c10d._get_reconfigure_handle(), store.get("with_2").decode()])
    all_sum(6)
    dist.barrier()
    dist.destroy_process_group()


def wrong_handles(rank, size):
    store = ready(os.environ["FOLDER"], rank, size)
    mine = dist.distributed_c10d._get_reconfigure_handle()
    texts = [
        text_of(lambda: reconfigure(100, [])),
        text_of(lambda: reconfigure(101, [mine, mine])),
        text_of(lambda: reconfigure(102, [mine, "gloo:0:0:0:"])),
        text_of(lambda: reconfigure(103, ["shmem:0000000007:0:7"])),
    ]
    reconfigure(200 + rank, [mine])
    texts.append(text_of(lambda: reconfigure(200 + rank, [mine])))  # the handle is an old one
    texts.append(text_of(lambda: reconfigure(200 + rank, [dist.distributed_c10d._get_reconfigure_handle()])))
    # A member that does not come: an error within the timeout, and another reconfigure() helps.
    handles = handles_of(store, "late", rank, range(size))
    if rank == 0:
        call = lambda: dist.distributed_c10d._reconfigure(300, handles, timeout=datetime.timedelta(seconds=1))  # noqa: E731
        texts.append(text_of(call))
        texts.append(text_of(dist.barrier))
    store.set(f"seen_{rank}", b"1")
    store.get("seen_0")
    reconfigure(301, handles_of(store, "later", rank, range(size)))
    all_sum(3)
    dist.barrier()
    return texts


class Members(RanksTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        os.environ["FOLDER"] = self.folder.name
        self.addCleanup(self.folder.cleanup)

    def test_split(self):
        self.on_ranks(4, splits)

    def test_merge(self):
        self.on_ranks(4, merges)

    def test_shrink_after_a_death(self):
        for text in self.on_ranks(4, shrinks, dead=[1]):
            if text is not None:
                self.assertIn("rank 1", text)

    def test_wrong_ranks_to_exclude(self):
        for own, none in self.on_ranks(2, wrong_shrinks):
            self.assertIn("one of those to exclude", own)
            self.assertIn("there is no rank 2 in this group of 2", none)

    def test_members_change(self):
        for nodes in (1, 2):
            with self.subTest(nodes=nodes), tempfile.TemporaryDirectory() as folder:
                os.environ["FOLDER"] = folder
                self.on_ranks(3, members_change, nodes=nodes)

    def test_a_member_dies_and_returns(self):
        self.on_ranks(3, a_member_returns, dead=[1])

    def test_wrong_handles(self):
        for rank, texts in enumerate(self.on_ranks(2, wrong_handles)):
            parts = ["got no handles", "twice", "not a handle", "not one of the 1 handles", "not one of the 1 handles"]
            parts += ["already used"] + (["reconfigure", "has failed"] if rank == 0 else [])
            for part, text in zip(parts, texts, strict=True):
                self.assertIn(part, text)


if __name__ == "__main__":
    unittest.main()
