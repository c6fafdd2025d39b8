# SPDX-License-Identifier: Apache-2.0
"""Exchanges from Python: members in processes of their own, which may be killed, and each cause of an error."""

import asyncio
import errno
import gc
import mmap
import os
import signal
import socket
import tempfile
import unittest
import urllib.request

import numpy as np
import shmem_kv
from exchange_member import BLOCK, LAYOUT
from members import LIMIT, WITH_UCX, ExchangeTest, kill
from shmem_kv._exchange_errors import raise_first

try:
    import torch
except ImportError:
    torch = None

NAMES = [f"block {i}" for i in range(8)]


class Processes(ExchangeTest):
    def test_blocks_of_a_process_that_was_started_apart(self):
        owner = self.start("own")
        reader = self.join()
        blocks = np.zeros((8, BLOCK), np.uint8)
        found = reader.find(NAMES, LAYOUT).check()
        reader.pull(found, list(blocks))
        self.assertTrue((blocks == np.arange(8)[:, None]).all())
        (member,) = reader.members()
        self.assertEqual((member.pid, member.blocks, member.bytes), (owner.pid, 8, 8 * BLOCK))
        listed = {block.key.decode(): block for block in reader.blocks_of(member.seat)}
        self.assertEqual(sorted(listed), NAMES)
        self.assertEqual(listed["block 3"], found[3])
        self.assertEqual((found[-1].bytes, found[-1].layout, found[-1].member), (BLOCK, LAYOUT, member.id))
        stats = reader.stats()
        self.assertEqual((stats.members, stats.found, stats.pulled_blocks, stats.pulled_bytes), (1, 8, 8, 8 * BLOCK))
        self.assertEqual((stats.failed_stale, stats.failed_dead, stats.failed_timeout, stats.failed_other), (0,) * 4)

    def test_counters_of_another_process(self):
        self.start("own")
        reader = self.join()
        (member,) = reader.members()
        stats = reader.member_stats(member.seat)
        self.assertEqual((stats.id, stats.seat, stats.blocks, stats.bytes), (member.id, member.seat, 8, 8 * BLOCK))
        self.assertEqual((stats.published, stats.found, stats.members, stats.readers), (8, 0, 0, 0))
        with self.assertRaises(shmem_kv.BlockNotFound):
            reader.member_stats(63)
        with self.assertRaises(shmem_kv.ExchangeError) as caught:
            reader.member_stats(64)
        self.assertEqual((type(caught.exception), caught.exception.errno), (shmem_kv.ExchangeError, errno.ENOTSUP))

    def test_an_owner_that_is_killed(self):
        owner = self.start("own")
        reader = self.join()
        found = reader.find(NAMES)
        destinations = list(np.zeros((8, BLOCK), np.uint8))
        reader.pull(found, destinations)
        kill(owner)
        self.wait_for(lambda: not reader.members())
        with self.assertRaises(shmem_kv.OwnerDied) as caught:
            reader.pull(found, destinations)
        self.assertIsInstance(caught.exception, ConnectionError)
        self.assertEqual(caught.exception.errno, errno.EOWNERDEAD)
        self.assertEqual(list(caught.exception.statuses), [-errno.EOWNERDEAD] * 8)
        with self.assertRaises(shmem_kv.BlockNotFound):
            reader.find(NAMES).check()
        self.start("own")  # on the seat of the first
        self.wait_for(lambda: reader.members())
        self.assertEqual(set(reader.try_pull(found, destinations)), {-errno.EOWNERDEAD})
        reader.pull(reader.find(NAMES), destinations)

    def test_a_reader_that_is_killed_gives_its_leases_back(self):
        owner = self.join(lease_time=60)
        block = owner.allocate(BLOCK).memory
        owner.publish("block 0", block)
        reader = self.start("lease")
        with self.assertRaises(shmem_kv.BlockLeased):
            owner.withdraw("block 0", 0)
        kill(reader)
        owner.withdraw("block 0", LIMIT / 2)  # far less than the lease
        block[:] = bytes(BLOCK)


class Nodes(ExchangeTest):
    def test_blocks_of_a_process_on_another_node(self):
        reader = self.join()
        with self.assertRaises(shmem_kv.ExchangeError) as caught:
            _ = reader.address
        self.assertEqual(caught.exception.errno, errno.ENOTCONN)
        try:
            reader.connect(listen="127.0.0.1:0", secret="a secret of a test", answer_time=LIMIT)
        except shmem_kv.ExchangeError as error:
            self.assertFalse(WITH_UCX, error)
            self.assertEqual(error.errno, errno.ENOTSUP)
            self.skipTest(str(error))
        owner = self.start(
            "own", address=reader.address, SHMEM_HOST_ID="another", SHMEM_UID_SECRET="a secret of a test"
        )
        self.wait_for(lambda: reader.members())
        self.assertGreaterEqual(reader.members()[0].seat, 64)
        destinations = np.zeros((8, BLOCK), np.uint8)
        found = reader.find(NAMES)
        reader.pull(found, list(destinations))
        self.assertTrue((destinations == np.arange(8)[:, None]).all())
        kill(owner)
        self.wait_for(lambda: not reader.members())
        with self.assertRaises(shmem_kv.OwnerDied):
            reader.pull(found, list(destinations))


    def test_an_owner_on_another_node_that_is_stopped(self):
        reader = self.join()
        with self.on_node("here"):
            reader.connect(listen="127.0.0.1:0", answer_time=1)
            owner = self.start("own", address=reader.address, SHMEM_HOST_ID="another")
        found = []

        def all_are_there():
            found[:] = [reader.find(NAMES)]
            return found[0].hits().all()

        self.wait_for(all_are_there)
        owner.send_signal(signal.SIGSTOP)
        os.waitpid(owner.pid, os.WUNTRACED)  # until it is stopped
        with self.assertRaises(shmem_kv.OwnerSilent) as caught:
            reader.pull(found[0], list(np.zeros((8, BLOCK), np.uint8)))
        self.assertIsInstance(caught.exception, TimeoutError)
        self.assertEqual(caught.exception.errno, errno.ETIMEDOUT)
        self.assertEqual(set(caught.exception.statuses), {-errno.ETIMEDOUT})


class Metrics(ExchangeTest):
    def test_are_answered_if_asked_for(self):
        self.assertEqual(self.join().stats().metrics_port, 0)
        try:
            member = self.join(metrics=0)
        except shmem_kv.ExchangeError as error:
            self.assertEqual(error.errno, errno.ENOTSUP)
            self.skipTest(str(error))
        with urllib.request.urlopen(f"http://127.0.0.1:{member.stats().metrics_port}/metrics", timeout=LIMIT) as page:
            self.assertIn(f'shmem_exchange_members{{exchange="{self.name}"}} 1', page.read().decode())


class Errors(ExchangeTest):
    def setUp(self):
        super().setUp()
        self.owner = self.join(leases=2)
        self.reader = self.join(transfers=1)
        self.region = self.owner.allocate(4 * BLOCK)
        self.blocks = self.region.array((4, BLOCK))
        self.blocks[:] = np.arange(1, 5)[:, None]
        self.names = [f"{i}" for i in range(4)]
        self.owner.publish(self.names, list(self.blocks), 7)
        self.to = np.zeros((4, BLOCK), np.uint8)

    def test_a_block_that_was_withdrawn_is_stale(self):
        found = self.reader.find(["0", "1"])
        self.owner.withdraw("0")
        with self.assertRaises(shmem_kv.StaleBlock) as caught:
            self.reader.pull(found, list(self.to[:2]))
        self.assertEqual(list(caught.exception.statuses), [-errno.ESTALE, 0])
        self.blocks[0] = 9
        self.owner.publish("0", self.blocks[0], 7)  # the next epoch
        self.assertEqual(list(self.reader.try_pull(found, list(self.to[:2]))), [-errno.ESTALE, 0])
        again = self.reader.find("0")
        self.assertGreater(again[0].epoch, found[0].epoch)
        self.reader.pull(again, self.to[0])
        self.assertTrue((self.to[0] == 9).all())

    def test_a_destination_of_the_wrong_size(self):
        found = self.reader.find(self.names)
        for size in (BLOCK - 1, BLOCK + 1, 0):
            with self.assertRaisesRegex(shmem_kv.WrongSize, f"block 0 has {BLOCK} bytes, but its destination {size}"):
                self.reader.pull(found.select([0]), bytearray(size))
        with self.assertRaises(ValueError):  # which a WrongSize is as well
            self.reader.start_pull(found, [*self.to[:3], bytearray(5)])
        with self.assertRaisesRegex(ValueError, "4 blocks, but 3 destinations"):
            self.reader.pull(found, list(self.to[:3]))
        self.assertFalse(self.to.any())
        with self.assertRaises(BufferError):
            self.reader.pull(found.select([0]), bytes(BLOCK))
        with self.assertRaises((BufferError, ValueError)):
            self.reader.pull(found.select([0]), np.zeros((BLOCK, 2), np.uint8)[:, 0])
        with self.assertRaises(TypeError):
            self.reader.pull(found.select([0]), 5)

    def test_keys_and_layouts(self):
        found = self.reader.find(["0", "none"], 8)
        self.assertEqual(list(found.statuses), [-errno.EPROTOTYPE, -errno.ENOENT])
        self.assertFalse(found.hits().any())
        with self.assertRaises(shmem_kv.LayoutMismatch):
            found.check()
        with self.assertRaises(shmem_kv.BlockNotFound):
            self.reader.pull(found.select([1]), self.to[0])
        with self.assertRaises(shmem_kv.KeyInUse) as caught:
            self.owner.publish(["0", b"\0\xff"], [self.blocks[0], self.blocks[1]])
        self.assertEqual(list(caught.exception.statuses), [-errno.EEXIST, 0])
        self.assertTrue(self.reader.find(b"\0\xff").hits().all())
        for key in (b"", b"x" * 129):
            with self.assertRaisesRegex(ValueError, "more than 128"):
                self.owner.publish(key, self.blocks[0])
            self.assertEqual(list(self.reader.find(key).statuses), [-errno.EINVAL])
        with self.assertRaises(shmem_kv.BlockNotFound):
            self.owner.withdraw("none")
        with self.assertRaises(shmem_kv.BlockNotFound):
            list(self.reader.blocks_of(63))

    def test_quotas(self):
        found = self.reader.find(self.names, lease=10)
        self.assertEqual(list(found.statuses), [0, 0, -errno.EDQUOT, -errno.EDQUOT])
        with self.assertRaises(shmem_kv.OverQuota):
            found.check()
        self.assertEqual(list(self.reader.try_pull(found, list(self.to))), [0, 0, 0, 0])
        self.reader.release(found)
        self.assertEqual(list(self.reader.find(self.names[2:], lease=10).statuses), [0, 0])
        with self.assertRaises(shmem_kv.NoRoom):
            with shmem_kv.Exchange(self.name, blocks=2) as small:
                part = small.allocate(9)
                small.publish(["a", "b", "c"], [part.part(0, 3), part.part(3, 3), part.part(6, 3)])
        large = self.owner.allocate(32 << 20)
        self.owner.publish("large", large.memory)
        to = bytearray(32 << 20)
        found = self.reader.find(["large"] * 16)  # takes long enough for the next call
        transfers = []
        with self.assertRaises(shmem_kv.TooManyTransfers):
            for _ in range(20):
                transfers.append(self.reader.start_pull(found, [to] * 16))
        transfers[-1].wait(LIMIT)

    def test_a_lease_ends_after_its_time(self):
        owner = self.join(lease_time=0.2)
        owner.publish("short", owner.allocate(BLOCK).memory)
        self.wait_for(lambda: self.reader.find("short", lease=60).hits().all())
        owner.withdraw("short", LIMIT)  # the owner's lease_time counts
        self.assertEqual(owner.stats().withdrawn, 1)

    def test_memory(self):
        with self.assertRaisesRegex(ValueError, "not in registered memory"):
            self.owner.publish("private", np.zeros(10))
        with self.assertRaisesRegex(ValueError, "another exchange"):
            self.reader.publish("foreign", self.region.part(0, 1))
        for part in ((-1, 1), (0, 0), (4 * BLOCK, 1), (0, 4 * BLOCK + 1)):
            with self.assertRaisesRegex(ValueError, "not in a region"):
                self.region.part(*part)
        with self.assertRaises(shmem_kv.BlockLeased):  # EBUSY: its blocks are published
            self.region.unregister()
        self.owner.withdraw(self.names)
        self.region.unregister()
        self.assertEqual(self.blocks[3, 0], 4)
        file = os.memfd_create("small")
        with self.assertRaises(shmem_kv.UnsupportedMemory):
            self.owner.register(file, BLOCK)
        os.close(file)
        with open("/dev/zero", "rb") as device, self.assertRaises(shmem_kv.UnsupportedMemory):
            self.owner.register(device.fileno(), BLOCK)
        with self.assertRaises(ValueError):
            self.owner.allocate(0)

    def test_memory_that_shrinks_cannot_be_read(self):
        file = os.memfd_create("shrinks", os.MFD_CLOEXEC)
        self.addCleanup(os.close, file)
        os.ftruncate(file, BLOCK)
        self.owner.publish("shrinks", self.owner.register(file, BLOCK).part(0, BLOCK))
        found = self.reader.find("shrinks").check()
        self.reader.pull(found, np.zeros(BLOCK, np.uint8))
        os.ftruncate(file, 0)
        with self.assertRaises(shmem_kv.UnreadableMemory) as caught:
            self.reader.pull(found, np.zeros(BLOCK, np.uint8))
        self.assertEqual(caught.exception.errno, errno.EIO)
        self.assertEqual(self.reader.members()[0].refusals, 1)

    def test_a_directory_that_makes_no_sense(self):
        # What a hostile owner does is tested in C++; this is what becomes of its error.
        statuses = np.array([0, -errno.EBADMSG], np.int32)
        with self.assertRaisesRegex(shmem_kv.CorruptDirectory, "1 of 2 .* number 1: its owner's directory") as caught:
            raise_first("pull", statuses)
        self.assertEqual(caught.exception.errno, errno.EBADMSG)
        self.assertIs(caught.exception.statuses, statuses)

    def test_members_meet_in_a_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            owner = shmem_kv.Exchange(f"folder-{os.getpid()}", directory=folder)
            with owner, shmem_kv.Exchange(owner.name, directory=folder) as reader:
                region = owner.allocate(4096)
                region.array(5)[:] = list(b"block")
                owner.publish("key", region.part(0, 5))
                got = np.zeros(5, np.uint8)
                reader.pull(reader.find("key").check(), [got])
                self.assertEqual(bytes(got), b"block")
                with shmem_kv.Exchange(owner.name) as elsewhere:
                    self.assertEqual(len(elsewhere.members()), 0)
            self.assertEqual(os.listdir(folder), [])
            os.chmod(folder, 0o777)
            with self.assertRaises(shmem_kv.ExchangeError) as caught:
                shmem_kv.Exchange("folder", directory=folder)
            self.assertEqual(caught.exception.errno, errno.EACCES)

    def test_an_exchange_that_is_full(self):
        name = f"{self.name}-full"
        seats = []
        for seat in range(64):
            seats.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            self.addCleanup(seats[-1].close)
            seats[-1].bind(f"\0shmem-exchange/{os.geteuid()}/{name}/{seat}")
        with self.assertRaisesRegex(shmem_kv.ExchangeFull, "has 64 members already") as caught:
            shmem_kv.Exchange(name)
        self.assertEqual(caught.exception.errno, errno.EUSERS)
        seats[5].close()
        with shmem_kv.Exchange(name) as last:
            self.assertEqual(last.stats().seat, 5)

    def test_names_times_and_the_end(self):
        for name in ("", "a b", "x" * 49):
            with self.assertRaises(ValueError):
                shmem_kv.Exchange(name)
        with self.assertRaisesRegex(ValueError, "the most are 60"):
            shmem_kv.Exchange(self.name, lease_time=61)
        with self.assertRaisesRegex(ValueError, "wait without a limit"):
            self.owner.withdraw("0", -1)
        found = self.reader.find("0")
        self.reader.close()
        self.reader.close()
        self.assertTrue(self.reader.closed)
        for call in (lambda: self.reader.find("0"), lambda: self.reader.pull(found, self.to[0]), self.reader.stats):
            with self.assertRaisesRegex(RuntimeError, "closed"):
                call()
        child = os.fork()
        if child == 0:
            try:
                self.owner.find("0")
            except RuntimeError as error:
                os._exit(7 if "forked" in str(error) else 8)
            os._exit(9)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 7)
        del found
        gc.collect()

    def test_a_forked_process_is_refused_and_does_not_wait(self):
        store = shmem_kv.Store(self.owner, BLOCK)
        store.put("stored", np.zeros(BLOCK, np.uint8))
        found = self.reader.find([f"{i}" for i in range(4)])
        transfer = self.reader.start_pull(found, list(self.to))
        refused = (
            lambda: self.reader.find("0"),
            lambda: self.reader.try_pull(found, list(self.to)),
            lambda: self.reader.start_pull(found, list(self.to)),
            self.reader.members,
            lambda: self.owner.withdraw("0"),
            transfer.test,
            lambda: transfer.wait(1),
            lambda: store.put("new", np.zeros(BLOCK, np.uint8)),
            lambda: store.get("stored", np.zeros(BLOCK, np.uint8)),
            lambda: store.holds(b"stored"),
            store.clear,
            store.stats,
        )
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            for i, call in enumerate(refused):
                try:
                    call()
                except RuntimeError as error:
                    if "forked" in str(error):
                        continue
                os._exit(i + 1)
            del transfer, refused, call
            gc.collect()
            self.reader.close()
            os._exit(0)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0, "the number of a call, or -SIGALRM")
        transfer.wait()

    def test_arguments_are_named(self):
        region = self.owner.allocate(BLOCK)
        for layout in (-1, 1 << 64):
            for call in (
                lambda: self.owner.publish("new", region.part(0, 8), layout),
                lambda: self.reader.find("0", layout),
                lambda: shmem_kv.Store(self.owner, BLOCK).put("new", np.zeros(8, np.uint8), layout),
            ):
                with self.assertRaisesRegex(ValueError, "layout is"):
                    call()
        with self.assertRaisesRegex(ValueError, "block 1 has no bytes"):
            self.owner.publish(["new", "empty"], [region.part(0, 8), region.memory[:0]])
        with self.assertRaisesRegex(TypeError, "a list; pass what find"):
            self.reader.pull(["0"], self.to[0])
        with self.assertRaisesRegex(TypeError, "a list; pass what find"):
            self.reader.release(["0"])


class Buffers(ExchangeTest):
    def setUp(self):
        super().setUp()
        self.owner, self.reader = self.join(), self.join()

    def test_bytes_go_from_and_to_any_kind(self):
        region = self.owner.allocate(BLOCK)
        region.array(BLOCK)[:] = np.arange(BLOCK) % 251
        expected = bytes(region.memory)
        self.owner.publish("bytes", region.memory)
        mapping = mmap.mmap(-1, BLOCK)
        for to in (bytearray(BLOCK), np.zeros((2, BLOCK // 8), np.float32), memoryview(bytearray(BLOCK)), mapping):
            self.reader.pull(self.reader.find("bytes"), to)
            self.assertEqual(bytes(memoryview(to).cast("B")), expected)

    @unittest.skipIf(torch is None, "no torch")
    def test_tensors_of_all_types_are_exact(self):
        names = ["bfloat16", "float16", "float32", "float64", "int8", "uint8", "int64", "bool"]
        names += ["float8_e4m3fn", "float8_e5m2"]
        bits = np.random.default_rng(1).integers(0, 256, BLOCK, np.uint8)
        for name in names:
            dtype = getattr(torch, name, None)
            if dtype is None:
                continue
            given = bits & 1 if name == "bool" else bits
            region = self.owner.allocate(BLOCK)
            tensor = torch.from_numpy(region.array(BLOCK)).view(dtype)
            tensor.view(torch.uint8)[:] = torch.from_numpy(given)
            self.owner.publish(name, tensor)
            to = torch.zeros(BLOCK // tensor.element_size(), dtype=dtype)
            self.reader.pull(self.reader.find(name), to)
            self.assertEqual(bytes(to.view(torch.uint8).numpy()), bytes(given), name)
            with self.assertRaisesRegex(ValueError, "not contiguous"):
                self.reader.pull(self.reader.find(name), torch.zeros(4, 4, dtype=torch.float32).t())

    def test_memory_that_the_caller_has(self):
        file = os.memfd_create("mine", os.MFD_ALLOW_SEALING)
        os.ftruncate(file, 4 * mmap.PAGESIZE)
        mine = mmap.mmap(file, 4 * mmap.PAGESIZE)
        region = self.owner.register(file, 4 * mmap.PAGESIZE, 0, mine)
        array = np.frombuffer(mine, np.int64)
        array[:] = 3
        self.owner.publish("view", array[512:1024])
        with tempfile.TemporaryFile(dir="/dev/shm") as shared:
            shared.write(b"s" * mmap.PAGESIZE)
            shared.flush()
            other = self.owner.register(shared.fileno(), mmap.PAGESIZE)
        self.owner.publish("file", other.part(1, 100))
        with self.assertRaisesRegex(ValueError, "without its buffer"):
            other.memory
        os.close(file)
        to = np.zeros(512, np.int64)
        self.reader.pull(self.reader.find("view"), to)
        self.assertTrue((to == 3).all())
        text = bytearray(100)
        self.reader.pull(self.reader.find("file"), text)
        self.assertEqual(text, b"s" * 100)
        self.assertEqual(region.nbytes, len(region))
        with self.assertRaisesRegex(ValueError, "4096 bytes, not 8192"):
            self.owner.register(0, 8192, 0, bytearray(4096))

    def test_memory_outlives_the_exchange(self):
        array = self.owner.allocate(BLOCK).array(BLOCK)
        array[:] = 5
        self.owner.close()
        del self.owner
        gc.collect()
        self.assertTrue((array == 5).all())


class Transfers(ExchangeTest):
    def setUp(self):
        super().setUp()
        self.owner, self.reader = self.join(), self.join()
        array = self.owner.allocate(4 * BLOCK).array((4, BLOCK))
        array[:] = np.arange(4)[:, None]
        self.owner.publish([f"{i}" for i in range(4)], list(array))
        self.to = np.full((5, BLOCK), 255, np.uint8)

    def test_can_be_tested_and_waited_for(self):
        transfer = self.reader.start_pull(self.reader.find(["0", "1"]), list(self.to[:2]))
        transfer.wait()
        self.assertTrue(transfer.test())
        self.assertEqual(list(transfer.statuses), [0, 0])
        self.assertTrue((self.to[:2] == np.arange(2)[:, None]).all())
        found = self.reader.find(["0", "none", "1"])
        self.owner.withdraw("1")
        failed = self.reader.start_pull(found, list(self.to[:3]))
        with self.assertRaises(shmem_kv.BlockNotFound) as caught:
            failed.wait(LIMIT)
        self.assertEqual(list(caught.exception.statuses), [0, -errno.ENOENT, -errno.ESTALE])
        with self.assertRaises(shmem_kv.BlockNotFound):
            failed.test()

    def test_can_be_awaited(self):
        large = self.owner.allocate(32 << 20).array(32 << 20)
        large[:] = 7
        self.owner.publish("large", large)
        to = np.zeros(32 << 20, np.uint8)

        async def both():
            await self.reader.start_pull(self.reader.find("large"), to)
            self.assertTrue((to == 7).all())
            one = self.reader.start_pull(self.reader.find("2"), self.to[2])
            two = self.reader.start_pull(self.reader.find("3"), self.to[3])
            await asyncio.gather(self.awaited(one), self.awaited(two))
            with self.assertRaises(shmem_kv.BlockNotFound):
                await self.reader.start_pull(self.reader.find("none"), self.to[4])

        asyncio.run(both())
        self.assertTrue((self.to[2:4] == np.arange(2, 4)[:, None]).all())

    async def awaited(self, transfer):
        await transfer

    def test_end_with_the_exchange(self):
        transfers = [self.reader.start_pull(self.reader.find("0"), bytearray(BLOCK)) for _ in range(30)]
        self.reader.close()
        for transfer in transfers:
            try:
                transfer.wait(LIMIT)
            except shmem_kv.Canceled as error:
                self.assertEqual(error.errno, errno.ECANCELED)
        del transfers[:]
        gc.collect()


if __name__ == "__main__":
    unittest.main(verbosity=0)
