# SPDX-License-Identifier: Apache-2.0
"""The operator under its name in Ascend SHMEM."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from ._cache import Cache
from ._dlpack import as_bits
from ._operator import Operator
from ._plan import Plan


class KVShuffle:
    """``torch.classes.ShmemOps.KVShuffle`` of Ascend SHMEM's kv_shuffle, for arrays of NumPy and tensors of the CPU.

    All PEs create, use and close it. ``compute`` returns when this PE's part is done. It raises an error where Ascend
    SHMEM waits forever.
    """

    def __init__(self, cores: int = 0) -> None:
        self._operator = Operator(cores=cores)

    def compute(
        self,
        global_shuffle_table: ArrayLike,
        k_cache: Any,
        v_cache: Any,
        src_block_table: ArrayLike,
        dst_block_table: ArrayLike,
    ) -> None:
        """Copies block ``src_block_table[i]`` to block ``dst_block_table[i]`` of the partner, if this PE sends.

        ``global_shuffle_table``: int64[n_pes, 2], the same on all PEs (see :meth:`Plan.pairs`); ``k_cache`` and
        ``v_cache``: [blocks][kv_heads][page_size][head_dim], symmetric; the block tables are int64, and empty on PEs
        that do not send. Errors in this PE's tables are reported to the partner as well.
        """
        shape = as_bits(k_cache)[0].shape
        if len(shape) != 4:
            raise ValueError(f"compute: k_cache has the shape {shape}, not (blocks, kv_heads, page_size, head_dim)")
        plan = Plan.pairs(global_shuffle_table, src_block_table, dst_block_table)
        self._operator.shuffle(plan, Cache(k_cache, v_cache))

    def close(self) -> None:
        """Closes it. Collective."""
        self._operator.close()
