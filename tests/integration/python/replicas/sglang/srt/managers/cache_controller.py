# SPDX-License-Identifier: Apache-2.0
"""Replica: the threads of HiCache that use a storage backend. A thread that a backend's exception or None ends is not
started again; `dead` counts them."""

import hashlib
import queue
import threading

import torch
from sglang.srt.mem_cache.hicache_storage import STORAGE_BATCH_SIZE, HiCacheStorageExtraInfo
from sglang.srt.mem_cache.storage.backend_factory import StorageBackendFactory
from sglang.srt.observability.metrics_collector import StorageMetricsCollector


def get_hash_str(token_ids, prior_hash=None):
    """SHA-256 over the hash of the page before and the tokens, 4 bytes each, the lowest first: 64 hexadecimal digits."""
    hasher = hashlib.sha256()
    if prior_hash:
        hasher.update(bytes.fromhex(prior_hash))
    for token in token_ids:
        hasher.update(token.to_bytes(4, "little"))
    return hasher.hexdigest()


class HiCacheController:
    def __init__(self, pool, config):
        self.pool, self.page_size = pool, pool.page_size
        self.dead = []
        self.collector = StorageMetricsCollector()
        self.attach(config)

    def attach(self, config):
        self.config = config
        # Of models with a latent cache only the first rank stores.
        self.backup_skip = config.is_mla_model and config.tp_rank != 0
        self.backend = StorageBackendFactory.create_backend("dynamic", config, self.pool)
        self.backend.register_mem_pool_host(self.pool)
        self.zero_copy = bool(config.extra_config.get("interface_v1", 0))
        self.queues = {name: queue.Queue() for name in ("exists", "get", "set")}
        self.threads = [threading.Thread(target=self._run, args=(name,)) for name in self.queues]
        for thread in self.threads:
            thread.start()

    def detach(self):
        for one in self.queues.values():
            one.put(None)
        for thread in self.threads:
            thread.join()
        self.backend.close()

    def check_hicache_events(self):
        """In each step of the scheduler, while the other threads use the backend."""
        if self.config.enable_storage_metrics:
            self.collector.log_storage_metrics(self.backend.get_stats())

    def keys_of(self, tokens):
        keys, last = [], None
        for first in range(0, len(tokens) - len(tokens) % self.page_size, self.page_size):
            last = get_hash_str(tokens[first : first + self.page_size], last)
            keys.append(last)
        return keys

    def prefetch_hits(self, keys):
        return self._ask("exists", keys, None)

    def prefetch(self, keys, indices):
        return self._ask("get", keys, indices)

    def backup(self, keys, indices):
        return self._ask("set", keys, indices)

    def start(self, name, keys, indices):
        """The answer, later, in a queue. None: the thread has died."""
        answer = queue.Queue()
        self.queues[name].put((keys, indices, answer))
        return answer

    def _ask(self, name, keys, indices):
        answer = self.start(name, keys, indices).get(timeout=60)
        assert answer is not None, f"the thread {name} of HiCache has died: {self.dead}"
        return answer

    def _run(self, name):
        while (work := self.queues[name].get()) is not None:
            keys, indices, answer = work
            try:
                answer.put(self._execute(name, keys, indices))
            except Exception as error:
                self.dead.append(repr(error))
                answer.put(None)
                return

    def _execute(self, name, keys, indices):
        done = 0
        for first in range(0, len(keys), STORAGE_BATCH_SIZE):
            batch = keys[first : first + STORAGE_BATCH_SIZE]
            extra = HiCacheStorageExtraInfo(prefix_keys=keys[:first])
            places = None if indices is None else indices[first * self.page_size : (first + len(batch)) * self.page_size]
            count = getattr(self, f"_{name}")(batch, places, extra)
            done += count
            if count < len(batch):
                break
        return done

    def _exists(self, keys, _, extra):
        return self.backend.batch_exists(keys, extra) + 0

    def _get(self, keys, indices, extra):
        if not self.zero_copy:
            pages = self.backend.batch_get(keys, [self.pool.get_dummy_flat_data_page() for _ in keys])
            for i, page in enumerate(pages):
                if page is None:
                    return i
                self.pool.set_from_flat_data_page(indices[i * self.page_size], page)
            return len(keys)
        results = self.backend.batch_get_v1(keys, indices, extra)
        for i in range(len(keys)):
            if not results[i]:
                return i
        return len(keys)

    def _set(self, keys, indices, extra):
        if self.backup_skip:
            return len(keys)
        if not self.zero_copy:
            pages = [self.pool.get_data_page(indices[i * self.page_size]) for i in range(len(keys))]
            return len(keys) if self.backend.batch_set(keys, pages) else 0
        return len(keys) if all(self.backend.batch_set_v1(keys, indices, extra)) else 0


def indices_of(pages, page_size):
    """The slots of pages."""
    return torch.cat([torch.arange(page * page_size, (page + 1) * page_size) for page in pages])
