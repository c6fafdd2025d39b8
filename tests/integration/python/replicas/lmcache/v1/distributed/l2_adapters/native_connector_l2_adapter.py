# SPDX-License-Identifier: Apache-2.0
"""Replica: the adapter around a native plug-in, which two controller threads use. Its descriptors differ, results are read
once, and unlocking never fails."""

from __future__ import annotations

import os
import select
import threading
from typing import Any

from lmcache.v1.distributed.internal_api import L2StoreResult
from lmcache.v1.distributed.l2_adapters.base import L2AdapterInterface


class NativeConnectorL2Adapter(L2AdapterInterface):
    def __init__(self, native_client, max_capacity_gb=0, type_name="", extra_status=None, pad_buffers_to_alignment=False):
        super().__init__(int(max_capacity_gb * (1 << 30)))
        self.client = native_client
        self.type_name = type_name or type(native_client).__name__
        self.fds = {kind: os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for kind in ("store", "lookup", "load")}
        assert len({int(native_client.event_fd()), *self.fds.values()}) == 4, "descriptors must differ"
        self.lock = threading.Lock()
        self.pending = {}  # the plug-in's id: (kind, task, keys, sizes)
        self.results = {kind: {} for kind in (*self.fds, "delete")}
        self.key_sizes = {}  # of the objects stored through this adapter
        self.stored = {}  # results that wait() has not returned yet
        self.locked = {}
        self.next_task = 0
        self.problems = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._demultiplex)
        self.thread.start()

    def submit_store_task(self, keys, objects) -> int:
        return self._submit("store", keys, self.client.submit_batch_set, keys, objects)

    def submit_lookup_and_lock_task(self, keys, group_layout_descs) -> int:
        return self._submit("lookup", keys, self.client.submit_batch_exists, keys)

    def submit_load_task(self, keys, objects) -> int:
        return self._submit("load", keys, self.client.submit_batch_get, keys, objects)

    def submit_unlock(self, keys) -> None:
        with self.lock:
            for key in keys:
                if self.locked.get(key, 0) <= 1:
                    self.locked.pop(key, None)
                else:
                    self.locked[key] -= 1

    def pop_completed_store_tasks(self) -> dict:
        with self.lock:
            done, self.results["store"] = self.results["store"], {}
            return done

    def query_lookup_and_lock_result(self, task_id) -> list[bool] | None:
        return self._query("lookup", task_id)

    def query_load_result(self, task_id) -> list[bool] | None:
        return self._query("load", task_id)

    def delete(self, keys) -> None:
        if callable(getattr(self.client, "submit_batch_delete", None)):
            self.wait("delete", self._submit("delete", keys, self.client.submit_batch_delete, keys))

    def report_status(self) -> dict[str, Any]:
        return {"is_healthy": self.thread.is_alive() and not self.stop.is_set(), "type": self.type_name}

    def wait(self, kind, task):
        """The result of a task, as a controller waits for its descriptor."""
        for _ in range(60_000):
            if kind == "store":
                self.stored.update(self.pop_completed_store_tasks())
            result = self.stored.pop(task, None) if kind == "store" else self._query(kind, task)
            if result is not None:
                return result
            threading.Event().wait(0.001)
        raise AssertionError(f"the task {task} has no result")

    def close(self) -> None:
        self.stop.set()
        self.thread.join()
        self.client.close()
        for fd in self.fds.values():
            os.close(fd)
        assert not self.problems, self.problems

    def _submit(self, kind, keys, call, *arguments):
        sizes = [len(view) for view in arguments[1]] if kind == "store" else []
        with self.lock:  # the completion may come before the call returns
            task = self.next_task
            self.next_task += 1
            self.pending[int(call(*arguments))] = (kind, task, list(keys), sizes)
        return task

    def _query(self, kind, task):
        with self.lock:
            return self.results[kind].pop(task, None)

    def _demultiplex(self):
        poller = select.poll()
        poller.register(int(self.client.event_fd()), select.POLLIN)
        while not self.stop.is_set():
            if poller.poll(20):
                with self.lock:
                    for completion in self.client.drain_completions():
                        self._take(*completion)

    def _take(self, number, ok, error, results):
        entry = self.pending.pop(number, None)
        if entry is None or not isinstance(ok, bool) or not isinstance(error, str):
            self.problems.append((number, ok, error, results))
            return
        kind, task, keys, sizes = entry
        if kind == "store":
            new = {key: size for key, size in zip(keys, sizes) if ok and key not in self.key_sizes}
            self.key_sizes |= new
            self._notify_keys_stored(list(new), list(new.values()))
            self.results[kind][task] = L2StoreResult(ok, sum(new.values()))
            os.eventfd_write(self.fds[kind], 1)
            return
        if results is None:
            results = [ok] * len(keys)
        assert len(results) == len(keys) and all(isinstance(one, bool) for one in results)
        if kind == "lookup":
            for key, found in zip(keys, results):
                if found:
                    self.locked[key] = self.locked.get(key, 0) + 1
        elif kind == "delete":
            gone = [key for key, deleted in zip(keys, results) if deleted and key in self.key_sizes]
            self._notify_keys_deleted(gone, [self.key_sizes.pop(key) for key in gone])
        self.results[kind][task] = results
        if kind in self.fds:
            os.eventfd_write(self.fds[kind], 1)


def object_key_to_string(model_name, kv_rank, group, chunk_hash, cache_salt=""):
    """model@rank@group@hash, and @salt."""
    text = f"{model_name}@{kv_rank:08x}@{group:x}@{chunk_hash.hex()}"
    return f"{text}@{cache_salt}" if cache_salt else text
