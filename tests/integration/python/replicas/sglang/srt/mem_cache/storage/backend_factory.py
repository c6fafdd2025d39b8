# SPDX-License-Identifier: Apache-2.0
"""Replica: makes a "dynamic" backend from its extra_config, before the host pool is known to it."""

import importlib

from sglang.srt.mem_cache.hicache_storage import HiCacheStorage


class StorageBackendFactory:
    @classmethod
    def create_backend(cls, backend_name, storage_config, mem_pool_host, **kwargs) -> HiCacheStorage:
        extra = storage_config.extra_config
        if backend_name != "dynamic" or extra is None:
            raise ValueError(f"unknown storage backend {backend_name!r}")
        for field in ("backend_name", "module_path", "class_name"):
            if field not in extra:
                raise ValueError(f"the configuration of a dynamic backend has no {field!r}")
        backend = getattr(importlib.import_module(extra["module_path"]), extra["class_name"])
        assert issubclass(backend, HiCacheStorage)
        return backend(storage_config, kwargs)
