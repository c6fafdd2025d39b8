# SPDX-License-Identifier: Apache-2.0
"""Adapters that let serving engines share KV blocks through an exchange.

=========================  ================================================================
``adapters.vllm``          ``ShmemTier``: a secondary tier of vLLM's offloading connector
``adapters.sglang``        ``ShmemHiCache``: a storage backend of SGLang's HiCache
``adapters.lmcache``       ``ShmemL2Adapter``: a plug-in of LMCache's multi-process mode
=========================  ================================================================

The engine loads them by name; docs/kv_adapters.md has the lines of configuration. Each process of an engine is a member
of the exchange. It gives copies of the engine's blocks to the holder of the exchange, or keeps them in a store of its own
(:class:`shmem_kv.Store`), and reads those of the holder and the other members.
"""

from __future__ import annotations
