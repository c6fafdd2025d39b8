// SPDX-License-Identifier: Apache-2.0
// Blocks of KV caches that go from PE to PE: by kv_shuffle or, built by Open MPI's compiler with BENCH_OPENMPI_SHMEM,
// by puts; beside each, memcpy of the same bytes to the same places by as many threads.
#pragma once

#include <vector>

#include "bench/item.hpp"
#include "bench/kv_cache.hpp"

namespace bench {

/// One for each size of blocks, called size_text of that.
std::vector<Item> kv_items(Player& player, const KvPart& part);

}  // namespace bench
