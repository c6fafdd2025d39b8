// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/digest.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace shmem::kv {

void Digest::add(const void* data, std::size_t size) {
  value_ = XXH3_64bits_withSeed(data, size, value_);
}

}  // namespace shmem::kv
