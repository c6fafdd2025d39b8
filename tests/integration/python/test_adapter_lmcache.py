# SPDX-License-Identifier: Apache-2.0
"""The plug-ins for LMCache against a replica of its interface."""

import ctypes
import errno
import os
import pathlib
import random
import select
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent / "replicas"))

import shmem_kv
from lmcache.v1.distributed.l2_adapters.native_connector_l2_adapter import object_key_to_string
from lmcache.v1.distributed.l2_adapters.native_plugin_l2_adapter import create_native_plugin_l2_adapter
from lmcache.v1.distributed.l2_adapters.plugin_l2_adapter import create_plugin_adapter
from members import LEAST_HELD, LIMIT, WITH_HOLDER, ExchangeTest
from slow_memory import SlowMemory

SIZES = (4096 * 3, 1000)  # of two groups


def key_of(number, group=0, salt=""):
    return object_key_to_string("organisation/a-model-with-a-rather-long-name", 1, group, number.to_bytes(32, "big"), salt)


def memory(size, value=0):
    """As LMCache makes views of its objects."""
    return memoryview((ctypes.c_ubyte * size)(*[value] * size))


class NativePlugin(ExchangeTest):
    def make(self, parameters):
        config = {"type": "native_plugin", "module_path": "shmem_kv.adapters.lmcache", "class_name": "ShmemConnector"}
        return create_native_plugin_l2_adapter(config | {"adapter_params": parameters})

    def server(self, **parameters):
        adapter = self.make(self.store_options(1 << 20) | {"store_wait": 0} | parameters)
        self.addCleanup(adapter.close)
        return adapter

    def store(self, adapter, keys, objects):
        return adapter.wait("store", adapter.submit_store_task(keys, objects)).is_successful()

    def lookup(self, adapter, keys):
        return adapter.wait("lookup", adapter.submit_lookup_and_lock_task(keys, {}))

    def load(self, adapter, keys, objects):
        return adapter.wait("load", adapter.submit_load_task(keys, objects))

    def test_objects_go_from_server_to_server(self):
        one, two = self.server(), self.server()
        keys = [key_of(i, i % 2) for i in range(6)]
        self.assertEqual(self.lookup(two, keys), [False] * 6)
        self.assertTrue(self.store(one, keys[:5], [memory(SIZES[i % 2], i + 1) for i in range(5)]))
        self.assertEqual(self.lookup(one, keys), [True] * 5 + [False])
        self.assertEqual(self.lookup(two, keys), [True] * 5 + [False])
        objects = [memory(SIZES[i % 2]) for i in range(6)]
        self.assertEqual(self.load(two, keys, objects), [True] * 5 + [False])
        for i in range(5):
            self.assertEqual(bytes(objects[i]), bytes([i + 1]) * SIZES[i % 2])
        self.assertEqual(self.load(two, keys[:2], [memory(SIZES[1]), memory(SIZES[1])]), [False, True])  # one is larger
        self.assertEqual(self.lookup(two, [key_of(0, 0, "salt"), key_of(0, 1)]), [False, False])
        two.submit_unlock(keys + keys)  # never fails
        # LMCache's own count, or what the holder has told within a second.
        self.wait_for(lambda: one.get_usage().total_bytes_used == 3 * SIZES[0] + 2 * SIZES[1])
        one.delete(keys)
        self.assertEqual(self.lookup(two, keys), [False] * 6)
        self.wait_for(lambda: one.get_usage().total_bytes_used == 0)

    def test_objects_go_from_node_to_node(self):
        with self.on_node("kiwi"):
            holder = self.hold_on_this_node(1 << 20)
            one = self.server(listen="127.0.0.1:0")
            address = one.client._store.exchange.address
            other = self.server(listen=address, members=[])  # the same options on the same node
        self.assertNotEqual(other.client._store.exchange.address, address)
        with self.on_node("lemon"):
            two = self.server(listen="127.0.0.1:0", members=[holder or address], answer_time=60)
        self.wait_for(lambda: [one.seat >= 64 for one in two.client._store.exchange.members()] == [True])
        keys = [key_of(i, i % 2) for i in range(4)]
        self.assertTrue(self.store(one, keys[:3], [memory(SIZES[i % 2], i + 1) for i in range(3)]))
        self.assertEqual(self.lookup(two, keys), [True] * 3 + [False])
        objects = [memory(SIZES[i % 2]) for i in range(4)]
        self.assertEqual(self.load(two, keys, objects), [True] * 3 + [False])
        for i in range(3):
            self.assertEqual(bytes(objects[i]), bytes([i + 1]) * SIZES[i % 2])

    def test_servers_with_one_port_for_metrics(self):
        try:
            port = self.server(metrics=0).client._store.exchange.stats().metrics_port
        except shmem_kv.ExchangeError as error:
            self.assertEqual(error.errno, errno.ENOTSUP)
            self.skipTest(str(error))
        for metrics in (port, str(port), f"127.0.0.1:{port}"):
            with self.assertLogs("shmem_kv.adapters", "INFO") as logs:
                other = self.server(metrics=metrics).client._store.exchange.stats().metrics_port
            self.assertNotIn(other, (0, port))
            self.assertIn(f"its metrics are at port {other}", " ".join(logs.output))

    def test_a_store_that_fails(self):
        small = self.server(store_bytes=SIZES[0])
        self.assertTrue(self.store(small, [key_of(1)], [memory(SIZES[0])]))
        too_large = LEAST_HELD if WITH_HOLDER else SIZES[0] + 1
        self.assertFalse(self.store(small, [key_of(2)], [memory(too_large)]))
        client = small.client
        number = client.submit_batch_set([key_of(2)], [])  # not as many objects as keys
        self.assertGreaterEqual(number, 2)
        self.assertTrue(self.store(small, [key_of(3)], [memory(SIZES[0])]))
        self.wait_for(lambda: small.problems)  # a later operation may end before
        self.assertEqual([one[0] for one in small.problems], [number])  # which the replica has not asked for
        self.assertIn("1 keys, but 0 blocks", small.problems[0][2])
        small.problems.clear()

    def test_servers_that_differ_share_nothing(self):
        self.store(self.server(namespace="bfloat16"), [key_of(1)], [memory(100, 1)])
        self.assertEqual(self.lookup(self.server(namespace="float16"), [key_of(1)]), [False])
        self.assertEqual(self.lookup(self.server(namespace="bfloat16"), [key_of(1)]), [True])

    def test_two_threads_at_once(self):
        one, two = self.server(), self.server(store_bytes="64K")
        wrong = []

        def work(adapter, seed):
            choose = random.Random(seed)
            for _ in range(60):
                numbers = [choose.randrange(12) for _ in range(4)]
                keys = [key_of(i, i % 2) for i in numbers]
                if choose.random() < 0.5:
                    adapter.submit_store_task(keys, [memory(SIZES[i % 2], i + 1) for i in numbers])
                    continue
                found = self.lookup(adapter, keys)
                objects = [memory(SIZES[i % 2], 255) for i in numbers]
                for i, loaded, there in zip(numbers, self.load(adapter, keys, objects), objects):
                    if loaded and bytes(there) != bytes([i + 1]) * SIZES[i % 2]:
                        wrong.append(i)
                adapter.submit_unlock([key for key, one in zip(keys, found) if one])

        threads = [threading.Thread(target=work, args=(adapter, i)) for i, adapter in enumerate((one, one, two, two))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_the_descriptor_and_the_end(self):
        from shmem_kv.adapters.lmcache import ShmemConnector

        client = ShmemConnector(**self.store_options(4096), lease_time=1, store_wait=0)
        poller = select.poll()
        poller.register(client.event_fd(), select.POLLIN)
        self.assertEqual((poller.poll(0), client.drain_completions()), ([], []))
        numbers = [client.submit_batch_exists([key_of(i)]) for i in range(3)]
        completions = []
        while len(completions) < 3:
            self.assertTrue(poller.poll(60_000))
            completions += client.drain_completions()
        self.assertEqual(sorted(completions), [(number, True, "", [False]) for number in numbers])
        self.assertEqual(client.drain_completions(), [])
        last = client.submit_batch_set([key_of(1)], [memory(10)])
        fd = client.event_fd()
        client.close()
        client.close()
        with self.assertRaises(OSError):
            os.fstat(fd)
        self.assertEqual(client.drain_completions(), [(last, True, "", None)])
        for submit in (client.submit_batch_exists, lambda keys: client.submit_batch_set(keys, [memory(10)])):
            with self.assertRaises(RuntimeError):
                submit([key_of(1)])

    def test_stores_that_wait_for_too_long_are_dropped(self):
        adapter = self.server(threads=1)
        self.store(adapter, [key_of(9)], [memory(100, 9)])
        slow = SlowMemory(4096)
        with slow.unreadable(), self.assertLogs("shmem_kv.adapters", "WARNING"):
            stuck = adapter.submit_store_task([key_of(1)], [memoryview(slow.array)])
            self.assertTrue(slow.reached.wait(LIMIT))
            waits = adapter.submit_store_task([key_of(2)], [memory(100, 2)])
            adapter.client._copies._store_wait = 0.001  # no sooner: a slow machine would have dropped the others
            queue = adapter.client._copies
            self.wait_for(lambda: queue._stores and time.monotonic() - queue._stores[0].since > 0.001)
            self.assertFalse(self.store(adapter, [key_of(3)], [memory(100, 3)]))
            self.assertFalse(adapter.wait("store", waits).is_successful())
            self.assertEqual(adapter.client.statistics()["dropped_stores"], 2)
            adapter.client._copies._store_wait = 0
        self.assertTrue(adapter.wait("store", stuck).is_successful())
        self.assertEqual(self.lookup(adapter, [key_of(i) for i in (1, 2, 3, 9)]), [True, False, False, True])

    def test_configuration(self):
        with self.assertRaisesRegex(ValueError, '"exchange" is missing'):
            self.server(exchange="", holder=None)
        with self.assertRaisesRegex(TypeError, "colour"):
            self.server(colour="blue")
        with self.assertRaisesRegex(ValueError, "store_wait is inf"):
            self.server(store_wait=float("inf"))


class Plugin(NativePlugin):
    """The same, and LMCache sees the store."""

    def make(self, parameters):
        config = {"type": "plugin", "module_path": "shmem_kv.adapters.lmcache", "class_name": "ShmemL2Adapter"}
        return create_plugin_adapter(config | {"adapter_params": parameters}, object())

    def test_usage_and_status(self):
        size, room = (LEAST_HELD // 4, 4) if WITH_HOLDER else (4096, 2)
        one, two = self.server(store_bytes=size * room, metrics=None), self.server(store_bytes=size * room)
        for i in range(room + 1):
            self.assertTrue(self.store(one, [key_of(i)], [memory(size, i)]))
        self.wait_for(lambda: one.get_usage().total_bytes_used == size * room)
        usage = one.get_usage()
        # Without those that the store has evicted, of which LMCache knows nothing.
        self.assertEqual((usage.total_capacity_bytes, usage.usage_fraction), (size * room, 1.0))
        self.assertFalse(one.supports_global_eviction)
        self.load(two, [key_of(room), key_of(0)], [memory(size), memory(size)])

        def status(server, *names):
            status = server.report_status()
            self.assertEqual((status["is_healthy"], status["type"]), (True, "shmem"))
            return [status["store"][name] for name in names]

        names = ("blocks", "stored", "evicted", "dropped_stores")
        self.wait_for(lambda: status(one, *names) == [room, room + 1, 1, 0])
        self.wait_for(lambda: status(two, "remote_hits", "misses", "oldest_store_seconds") == [1, 1, 0])


if __name__ == "__main__":
    unittest.main(verbosity=0)
