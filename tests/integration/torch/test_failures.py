# SPDX-License-Identifier: Apache-2.0
"""Ranks that differ, die or do not come: exceptions on the others that name them, and what works afterwards."""

import datetime
import itertools
import os
import re
import signal
import tempfile
import time
import unittest

import torch
from ranks import RanksTest, dist, note, torch_version, until

import shmem_torch

SOON = 30  # seconds, of calls with a timeout of 60


def text_of(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return "nothing was raised"


def views_as_real():
    """Newer versions of PyTorch give complex numbers to broadcast as pairs."""
    return torch_version() >= (2, 14)


def complex_of(rank):
    return torch.complex128 if rank == 1 else torch.complex64


def alltoall(dtype):
    dist.all_to_all_single(torch.zeros(4, dtype=dtype), torch.zeros(4, dtype=dtype))


def differing_calls(rank, size):
    texts = [
        text_of(lambda: dist.all_reduce(torch.zeros(2 + (rank == 1)))),
        text_of(lambda: dist.all_reduce(torch.zeros(2 + 9000 * (rank == 1)))),
        text_of(lambda: dist.all_reduce(torch.zeros(2, dtype=torch.float64 if rank == 1 else torch.int64))),
        text_of(lambda: dist.broadcast(torch.zeros(2), rank % 2)),
        text_of(lambda: dist.barrier() if rank == 1 else dist.all_reduce(torch.zeros(3))),
        # As many bytes, of other shapes or dtypes.
        text_of(lambda: dist.all_reduce(torch.zeros(2, 3) if rank == 1 else torch.zeros(3, 2))),
        text_of(lambda: dist.all_reduce_coalesced([torch.zeros(2 + rank), torch.zeros(4 - rank)])),
        text_of(lambda: dist.broadcast(torch.zeros(4 - 2 * rank, dtype=complex_of(rank)), 0)),
        text_of(lambda: alltoall(torch.int32 if rank == 1 else torch.float32)),
    ]
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    assert (tensor == size).all()
    return texts


def differing_messages(rank, size):
    """What both ranks are told of messages of rank 0 that rank 1 receives otherwise, in each way to send and receive."""
    texts = []
    sources = [0] if "SHMEM_HOST_ID" in os.environ else [0, None]
    for bytes_, source in itertools.product((16, 64 << 10, 1 << 20), sources):
        count = bytes_ // 4
        sent = torch.full((count,), 2.0)
        for got in (torch.zeros(count, dtype=torch.int32), torch.zeros(count // 2, dtype=torch.int64)):
            texts.append(text_of(lambda: dist.send(sent, 1) if rank == 0 else dist.recv(got, source)))
        wrong_size = torch.zeros(count - 1)
        texts.append(text_of(lambda: dist.send(sent, 1) if rank == 0 else dist.recv(wrong_size, source)))
        # Later messages arrive.
        got = torch.zeros(count)
        dist.send(sent, 1) if rank == 0 else dist.recv(got, source)
        assert rank == 0 or torch.equal(got, sent)
    wrong = torch.zeros(4, dtype=torch.int32)
    good = torch.zeros(4)
    operation = dist.isend if rank == 0 else dist.irecv
    tensors = [torch.ones(4), torch.ones(4)] if rank == 0 else [wrong, good]
    works = dist.batch_isend_irecv([dist.P2POp(operation, tensor, 1 - rank) for tensor in tensors])
    if len(works) == 1:  # PyTorch 2
        texts.append(text_of(works[0].wait))
    else:
        texts.append(text_of(works[0].wait))
        works[1].wait()
    dist.barrier()
    assert rank == 0 or (good == 1).all()
    return texts


def dying_rank(rank, size):
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    texts = [text_of(lambda: dist.all_reduce(torch.zeros(3_000_000)))]
    took = time.monotonic() - began
    texts.append(text_of(dist.barrier))
    texts.append(text_of(lambda: dist.all_reduce(torch.zeros(1), async_op=True).wait()))
    dist.destroy_process_group()
    # The ranks that are left form a new group.
    folder = os.environ["NEW_GROUP"]
    mine = [0, 2, 3].index(rank)
    dist.init_process_group("shmem", init_method=f"file://{folder}", rank=mine, world_size=3)
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    assert (tensor == 3).all()
    return texts, took


def dying_peer(rank, size):
    if rank == 1:
        dist.barrier()
        os.kill(os.getpid(), signal.SIGKILL)
    got = torch.zeros(10)
    work = dist.irecv(got, 1)
    dist.barrier()
    text = text_of(work.wait)
    return text


def give_up(rank):
    note(f"gave up {rank}")


def until_they_gave_up(*ranks):
    until(*(f"gave up {rank}" for rank in ranks))


def short_group(milliseconds):
    """A group of all ranks with that timeout. Its start may take longer."""
    dist.distributed_c10d._store_based_barrier = lambda *_: None  # PyTorch's own, of 1.13, has the same timeout
    group = dist.new_group(timeout=moment(milliseconds))
    dist.barrier()
    return group


def late_rank(rank, size):
    group = short_group(1000)
    if rank == 1:
        until_they_gave_up(0, 2)
    text = text_of(lambda: dist.all_reduce(torch.zeros(1), group=group))
    give_up(rank)
    return text


def monitored(rank, size):
    """Ranks other than 0 and 2 do not come."""
    if rank in (0, 2):
        text = text_of(lambda: shmem_torch.monitored_barrier(timeout=moment(500)))
        give_up(rank)
        return text
    until_they_gave_up(0, 2)
    return "did not come"


def complex_zeros(size):
    return torch.zeros(size, dtype=torch.complex64)


def wrong_arguments(rank, size):
    for call in (
        lambda: dist.all_reduce(torch.zeros(2), dist.ReduceOp.BAND),
        lambda: dist.all_gather([torch.zeros(2), torch.zeros(3)], torch.zeros(2)),
        lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3)),
        lambda: dist.all_to_all_single(torch.zeros(8), torch.zeros(8), [12, -4], [12, -4]),
        lambda: dist.all_to_all_single(torch.zeros(8), torch.zeros(8), [-1, 9], [4, 4]),
        lambda: dist.reduce(complex_zeros(2), 0, dist.ReduceOp.PRODUCT),
        lambda: dist.reduce_scatter(complex_zeros(2), [complex_zeros(2), complex_zeros(2)], dist.ReduceOp.MAX),
        lambda: dist.send(torch.zeros(1), 1 - rank, tag=-1),
        lambda: dist.all_gather([torch.zeros(2)] * size, torch.zeros(2).to_sparse()),
    ):
        try:
            call()
        except (RuntimeError, ValueError, NotImplementedError):
            continue
        raise AssertionError("no exception")
    dist.barrier()


def mistakes(size, wrong):
    """Calls which this rank makes wrongly if `wrong`, so that it alone is refused before the ranks compare them."""
    pair, triple = torch.zeros(2), torch.zeros(3)
    good, bad = [torch.zeros(2) for _ in range(size)], [torch.zeros(2 + i) for i in range(size)]
    splits = [1] * (size - 1) + [2 if wrong else 1]
    whole = torch.zeros(2 * size)
    mixed = [torch.zeros(2, dtype=torch.int32 if wrong and i == 1 else torch.float32) for i in range(size)]
    band = torch.zeros(2, dtype=torch.float32 if wrong else torch.int32)
    return [
        lambda: dist.all_gather(bad if wrong else good, pair),
        lambda: dist.all_gather(good[1:] if wrong else good, pair),
        lambda: dist.all_to_all_single(torch.zeros(size), torch.zeros(size), splits, splits),
        lambda: dist.all_reduce(band, dist.ReduceOp.BAND),
        lambda: dist.all_gather_into_tensor(whole[1:] if wrong else whole, pair),
        lambda: dist.reduce_scatter_tensor(pair, whole[1:] if wrong else whole),
        lambda: dist.reduce_scatter(pair, bad if wrong else good),
        lambda: dist.reduce(band, 0, dist.ReduceOp.BXOR),
        lambda: dist.scatter(pair, bad if wrong else good if dist.get_rank() == 1 else None, 1),
        # torch.distributed.all_to_all would refuse it without asking the backend.
        lambda: dist.distributed_c10d._get_default_group().alltoall(good, mixed).wait(),
        lambda: dist.all_gather_coalesced([[pair, triple]] * size, [pair, pair if wrong else triple]),
        lambda: dist.all_reduce_coalesced([band, band], dist.ReduceOp.BAND),
        lambda: dist.gather(pair, bad if wrong else good if dist.get_rank() == 1 else None, 1),
        lambda: dist.all_reduce(torch.ones(3).to_sparse(), dist.ReduceOp.MAX if wrong else dist.ReduceOp.SUM),
        lambda: shmem_torch.empty(-1 if wrong else 2),
    ]


def wrong_on_rank_one(rank, size):
    """(what was raised, seconds) of each call."""
    outcomes = []
    for call in mistakes(size, rank == 1):
        earlier = [dist.all_reduce(torch.ones(100_000), async_op=True) for _ in range(2)]
        began = time.monotonic()
        try:
            call()
            text = "nothing was raised"
        except (RuntimeError, ValueError) as error:
            text = str(error)
        outcomes.append((text, time.monotonic() - began))
        for work in earlier:
            work.wait()
        assert earlier[0].result()[0][0] == size
        tensor = torch.ones(4)
        dist.all_reduce(tensor)
        assert (tensor == size).all()
    return outcomes


def failed_futures(rank, size):
    """What futures of calls that fail raise: asked for before the call is over and afterwards."""
    texts = []

    def text_in(future):
        try:
            future.value()
        except RuntimeError as error:
            return str(error)
        return "nothing was raised"

    for wait_first in (False, True):
        call = dist.all_reduce(torch.zeros(2 + rank), async_op=True)
        sent = dist.isend(torch.zeros(2), 1 - rank)
        received = dist.irecv(torch.zeros(2, dtype=torch.int32), 1 - rank)
        for work in (call, sent, received):
            if wait_first:
                texts.append(text_of(work.wait))
            future = work.get_future()
            after = future.then(text_in)
            raising = future.then(lambda one: one.value())
            del work
            texts += [text_of(future.wait), after.wait(), text_of(raising.wait)]
        del call, sent, received
    dist.barrier()
    return texts


def sends_to_itself(rank, size):
    """(text, seconds) of a rank that waits for a message to itself. One that it receives arrives."""
    got = torch.zeros(4)
    received = dist.irecv(got, rank, tag=1)
    dist.isend(torch.ones(4), rank, tag=1).wait()
    received.wait()
    assert (got == 1).all()
    began = time.monotonic()
    text = text_of(dist.isend(torch.ones(4), rank, tag=2).wait)
    took = time.monotonic() - began
    dist.barrier()
    return text, took


def strided_messages(rank, size):
    """A message is over when its bytes are in the tensor, also if another thread puts them there."""
    for number in range(300):
        tensor = torch.zeros(64, 64).t()[::2] if rank == 1 else torch.full((32, 64), float(number + 1))
        if rank == 0:
            dist.send(tensor, 1)
        else:
            work = dist.irecv(tensor, 0)
            while not work.is_completed():
                pass
            assert (tensor == number + 1).all(), number
    dist.barrier()


def leaves(rank, size):
    """(text, seconds) on the ranks that stay when rank 1 destroys its group and lives on."""
    dist.all_reduce(torch.ones(1))
    outcome = None
    if rank == 1:
        dist.destroy_process_group()
    else:
        began = time.monotonic()
        text = text_of(lambda: dist.all_reduce(torch.ones(100)))
        outcome = (text, time.monotonic() - began)
        give_up(rank)
    until_they_gave_up(0, 2)
    return outcome


def sparse_of_other_shapes(rank, size):
    text = text_of(lambda: dist.all_reduce(torch.ones(3 + rank).to_sparse()))
    dist.barrier()
    return text


def moment(milliseconds):
    return datetime.timedelta(milliseconds=milliseconds)


def text_of_wait(call, wanted):
    """That of wait(timeout), which says more once the other ranks have begun the call."""
    end = time.monotonic() + 50
    while not re.search(wanted, text := text_of(lambda: call.wait(moment(200)))) and time.monotonic() < end:
        pass
    return text


ONLY_RANK_1 = r"shmem:all_reduce: .*: it waits for rank 1 \(pid [0-9]+ [^,]*\)$"


def waits_with_limits(rank, size):
    """wait(timeout) while rank 1 does not come. Later it does: the calls go on."""
    texts = []
    if rank == 1:
        until_they_gave_up(*(one for one in range(size) if one != 1))
    tensor, message, any_message = torch.ones(4), torch.zeros(2), torch.zeros(3)
    calls = [dist.all_reduce(tensor, async_op=True)]
    if rank == 0:
        calls.append(dist.irecv(message, 1, tag=5))
        calls.append(dist.irecv(any_message, tag=6))
    if rank != 1:
        wanted = "" if "SHMEM_HOST_ID" in os.environ else ONLY_RANK_1
        texts = [text_of_wait(calls[0], wanted)] + [text_of(lambda: call.wait(moment(200))) for call in calls[1:]]
        give_up(rank)
    elif rank == 1:
        dist.send(torch.ones(2), 0, tag=5)
        dist.send(torch.ones(3), 0, tag=6)
    for call in calls:
        call.wait()
    assert (tensor == size).all()
    return texts


def short_timeouts(rank, size):
    """(what is raised, seconds) with timeouts of 0 and of less than a millisecond, while rank 1 does not come."""
    outcomes = []
    groups = [short_group(0), short_group(0.4)]
    calls = [
        lambda: shmem_torch.monitored_barrier(timeout=moment(0)),
        lambda: dist.all_reduce(torch.zeros(1), group=groups[0]),
        lambda: dist.recv(torch.zeros(1), 1, group=groups[0]),
        lambda: dist.barrier(group=groups[1]),
    ]
    for call in calls if rank == 0 else []:
        began = time.monotonic()
        outcomes.append((text_of(call), time.monotonic() - began))
    if rank == 0:
        give_up(rank)
    until_they_gave_up(0)
    return outcomes


def messages_that_do_not_come(rank, size):
    group = short_group(300)
    texts = []
    if rank == 0:
        texts.append(text_of(dist.irecv(torch.zeros(1), 1, group=group, tag=4).wait))
        texts.append(text_of(dist.isend(torch.zeros(4), 1, group=group, tag=5).wait))
        texts.append(text_of(dist.isend(torch.zeros(1_000_000), 1, group=group, tag=6).wait))
        give_up(rank)
    until_they_gave_up(0)
    return texts


def a_rank_that_does_not_start(rank, size):
    dist.destroy_process_group()
    text = ""
    if rank != 1:
        store = "file://" + os.environ["RANKS_FOLDER"] + "/second"
        start = lambda: dist.init_process_group(  # noqa: E731
            "shmem", init_method=store, rank=rank, world_size=size, timeout=moment(1500)
        )
        text = text_of(start)
        give_up(rank)
    until_they_gave_up(0, 2)
    return text


class Failures(RanksTest):
    def test_calls_that_differ_raise_on_all_ranks(self):
        for texts in self.on_ranks(2, differing_calls):
            parts = ["12 bytes", "36008 bytes", "float64", "root 1", "barrier", "here Float [", "signature"]
            parts += ["type float64" if views_as_real() else "Complex"]
            for text, part in zip(texts, parts + ["alltoall"], strict=True):
                self.assertIn("rank 1", text)
                self.assertIn(part, text)
            self.assertIn("rank 0: Float [3, 2]; rank 1: Float [2, 3]", texts[5])
            self.assertIn("rank 0: Float [2], Float [4]; rank 1: Float [3], Float [3]", texts[6])
            said = "Float [4, 2]; rank 1: Double [2, 2]" if views_as_real() else "ComplexFloat [4]; rank 1: ComplexDouble [2]"
            self.assertIn(f"rank 0: {said}", texts[7])
            self.assertIn("rank 0: Float [4]; rank 1: Int [4]", texts[8])

    def test_messages_that_differ_raise_on_both_ranks(self):
        for nodes in (1, 2):
            for texts in self.on_ranks(2, differing_messages, nodes=nodes):
                for at, text in enumerate(texts):
                    if at % 3 == 2:
                        self.assertRegex(text, "rank 0.*has [0-9]+ bytes; the call that receives it has room for [0-9]+")
                        self.assertIn("rank 1", text)
                    else:
                        bits = ("32", "64")[at % 3]
                        self.assertIn("rank 0 sends float32, and rank 1 receives it as int" + bits, text)

    def test_a_rank_that_dies_is_named_and_the_others_go_on(self):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NEW_GROUP"] = folder + "/store"
            results = self.on_ranks(4, dying_rank, dead=[1])
        for rank in (0, 2, 3):
            texts, took = results[rank]
            for text in texts:
                self.assertRegex(text, "rank 1 .*dead", text)
            self.assertLess(took, SOON)

    def test_a_message_of_a_dead_rank_raises(self):
        results = self.on_ranks(3, dying_peer, dead=[1])
        self.assertRegex(results[0], "rank 1")
        self.assertRegex(results[2], "rank 1")

    def test_a_timeout_names_the_rank_that_did_not_come(self):
        results = self.on_ranks(3, late_rank)
        for text in results:
            self.assertRegex(text, "rank 1 \\(pid")
        self.assertRegex(results[0] + results[2], "Timed out after 1000 ms")

    def test_a_limit_of_wait_names_the_ranks_that_did_not_come(self):
        for nodes in (1, 2):
            results = self.on_ranks(3, waits_with_limits, nodes=nodes)
            for texts in (results[0], results[2]):
                for text in texts:
                    self.assertIn("not over within the timeout of 200 ms that was given to wait()", text)
            if nodes == 1:
                for rank in (0, 2):
                    self.assertRegex(results[rank][0], ONLY_RANK_1)
            self.assertIn("it waits for rank 1 (tag 5)", results[0][1])
            self.assertIn("it waits for any rank (tag 6)", results[0][2])

    def test_a_timeout_of_nothing_is_not_for_ever(self):
        for nodes in (1, 2):
            outcomes = self.on_ranks(2, short_timeouts, nodes=nodes)[0]
            for text, took in outcomes:
                self.assertIn("rank 1", text)
                self.assertLess(took, SOON)

    def test_a_timeout_of_a_message_names_its_peer(self):
        for nodes in (1, 2):
            texts = self.on_ranks(2, messages_that_do_not_come, nodes=nodes)[0]
            for text in texts:
                self.assertRegex(text, "Timed out after 300 ms.*rank 1")

    def test_a_rank_that_does_not_come_to_the_start_is_named(self):
        results = self.on_ranks(3, a_rank_that_does_not_start)
        for rank in (0, 2):
            self.assertIn("rank 1", results[rank])

    def test_a_monitored_barrier_has_its_own_timeout(self):
        results = self.on_ranks(3, monitored)
        self.assertRegex(results[0], "rank 1 \\(pid")

    def test_a_monitored_barrier_names_all_that_did_not_come(self):
        results = self.on_ranks(4, monitored)
        # The one that gives up first has named both; it ends the call of the other, perhaps with its own words.
        first = [text for text in (results[0], results[2]) if "rank 1 (pid" in text and "rank 3 (pid" in text]
        self.assertTrue(first, results)

    def test_wrong_arguments_raise(self):
        self.on_ranks(2, wrong_arguments)

    def test_a_call_that_one_rank_cannot_make_raises_on_all(self):
        for nodes in (1, 2):
            results = self.on_ranks(3, wrong_on_rank_one, nodes=nodes)
            for call in range(len(results[0])):
                for rank, (text, took) in enumerate(outcomes[call] for outcomes in results):
                    with self.subTest(nodes=nodes, call=call, rank=rank):
                        self.assertNotEqual(text, "nothing was raised")
                        self.assertLess(took, SOON)
                        if rank != 1 and "several nodes" not in text:
                            self.assertIn("rank 1 cannot make this call", text)
                            reason = results[1][call][0]
                            self.assertIn("rank 1: " + ("Float" if "here" in reason else reason[:80]), text)

    def test_a_message_to_itself_that_is_not_received_raises_at_once(self):
        for text, took in self.on_ranks(2, sends_to_itself):
            self.assertIn("a message to itself", text)
            self.assertLess(took, SOON)

    def test_a_strided_message_is_over_when_its_bytes_are_there(self):
        self.on_ranks(2, strided_messages)

    def test_a_rank_that_leaves_and_lives_on_is_noticed(self):
        for nodes in (1, 3):
            results = self.on_ranks(3, leaves, nodes=nodes)
            for rank in (0, 2):
                text, took = results[rank]
                self.assertRegex(text, "rank 1 .*has left the group|has given the group up: it has left the group")
                self.assertLess(took, SOON)

    def test_futures_of_failed_calls_raise(self):
        for nodes in (1, 2):
            for texts in self.on_ranks(2, failed_futures, nodes=nodes):
                self.assertEqual(len(texts), 3 * (3 + 4))
                for text in texts:
                    self.assertRegex(text, "the calls differ: .*rank 1|rank . sends float32, and rank . receives it as int32")

    def test_sparse_tensors_of_other_shapes_raise_on_all(self):
        for nodes in (1, 2):
            for text in self.on_ranks(2, sparse_of_other_shapes, nodes=nodes):
                self.assertIn("rank 1", text)


if __name__ == "__main__":
    unittest.main(verbosity=0)
