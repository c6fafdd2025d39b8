# SPDX-License-Identifier: Apache-2.0
"""Adapters that let serving engines share KV blocks through an exchange.

=========================  ================================================================
``adapters.vllm``          ``ShmemTier``: a secondary tier of vLLM's offloading connector
``adapters.sglang``        ``ShmemHiCache``: a storage backend of SGLang's HiCache
``adapters.lmcache``       ``ShmemConnector``: a native plug-in of LMCache's multi-process mode
=========================  ================================================================

The engine loads them by name; docs/kv_adapters.md has the lines of configuration. Each process of an engine is a member
of the exchange. It holds copies of the blocks that the engine gives it in a :class:`shmem_kv.Store`, and reads those that
the other members hold.
"""

from __future__ import annotations
