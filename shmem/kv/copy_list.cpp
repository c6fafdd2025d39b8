// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/copy_list.hpp"

namespace shmem::kv {

CopyList::CopyList(const Layout& layout, const CachePlace& cache) {
  shifts_.reserve(layout.planes);
  for (std::size_t plane = 0; plane < layout.planes; ++plane) {
    shifts_.push_back(layout.plane(cache, plane) - cache.k);
  }
}

}  // namespace shmem::kv
