# SPDX-License-Identifier: Apache-2.0
"""Replica: loads a native plug-in of LMCache's multi-process mode, and the adapter around it that two controller threads
use. Their descriptors differ, results are read once, and unlocking never fails."""

import importlib
import os
import select
import threading

REQUIRED = ("event_fd", "submit_batch_get", "submit_batch_set", "submit_batch_exists", "drain_completions", "close")


def create_native_plugin_l2_adapter(config):
    """`config`: type, module_path, class_name, adapter_params."""
    assert config["type"] == "native_plugin"
    plugin = getattr(importlib.import_module(config["module_path"]), config["class_name"])
    client = plugin(**config.get("adapter_params", {}))
    for method in REQUIRED:
        if not callable(getattr(client, method, None)):
            if callable(getattr(client, "close", None)):
                client.close()
            raise TypeError(f"the plug-in has no {method}")
    return NativeConnectorL2Adapter(client)


class NativeConnectorL2Adapter:
    def __init__(self, client):
        self.client = client
        self.fds = {kind: os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for kind in ("store", "lookup", "load")}
        assert len({int(client.event_fd()), *self.fds.values()}) == 4, "descriptors must differ"
        self.lock = threading.Lock()
        self.pending = {}  # the plug-in's id: (kind, task, keys)
        self.results = {kind: {} for kind in (*self.fds, "delete")}
        self.locked = {}
        self.next_task = 0
        self.problems = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._demultiplex)
        self.thread.start()

    def submit_store_task(self, keys, objects) -> int:
        return self._submit("store", keys, self.client.submit_batch_set, keys, objects)

    def submit_lookup_and_lock_task(self, keys, group_layout_descs=None) -> int:
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

    def delete(self, keys) -> list[bool]:
        return self.wait("delete", self._submit("delete", keys, self.client.submit_batch_delete, keys))

    def wait(self, kind, task):
        """The result of a task, as a controller waits for its descriptor."""
        for _ in range(60_000):
            result = self.pop_completed_store_tasks().get(task) if kind == "store" else self._query(kind, task)
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
        with self.lock:  # the completion may come before the call returns
            task = self.next_task
            self.next_task += 1
            self.pending[int(call(*arguments))] = (kind, task, list(keys))
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
        kind, task, keys = entry
        if kind == "store":
            self.results[kind][task] = ok
            os.eventfd_write(self.fds[kind], 1)
            return
        if results is None:
            results = [ok] * len(keys)
        assert len(results) == len(keys) and all(isinstance(one, bool) for one in results)
        if kind == "lookup":
            for key, found in zip(keys, results):
                if found:
                    self.locked[key] = self.locked.get(key, 0) + 1
        self.results[kind][task] = results
        if kind in self.fds:
            os.eventfd_write(self.fds[kind], 1)


def object_key_to_string(model_name, kv_rank, group, chunk_hash, cache_salt=""):
    """model@rank@group@hash, and @salt."""
    text = f"{model_name}@{kv_rank:08x}@{group:x}@{chunk_hash.hex()}"
    return f"{text}@{cache_salt}" if cache_salt else text
