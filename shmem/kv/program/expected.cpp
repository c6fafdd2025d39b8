// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/expected.hpp"

#include <algorithm>

namespace kv_program {

Expected::Expected(int pes, std::int64_t blocks) {
  for (int pe = 0; pe < pes; ++pe) {
    auto& mine = origin_.emplace_back();
    for (std::int64_t block = 0; block < blocks; ++block) {
      mine.push_back({pe, block});
    }
  }
}

void Expected::apply(const shmem::kv::PairPlan& plan) {
  for (std::size_t pe = 0; pe < plan.size(); ++pe) {
    if (plan[pe].operation != 0) {
      continue;
    }
    auto& partner = origin_.at(static_cast<std::size_t>(plan[pe].peer));
    for (std::size_t i = 0; i < plan[pe].source.size(); ++i) {
      partner.at(static_cast<std::size_t>(plan[pe].destination[i])) =
          origin_[pe].at(static_cast<std::size_t>(plan[pe].source[i]));
    }
  }
}

std::string Expected::compare_block(const Caches& caches, Cache cache, int pe, std::int64_t block) const {
  const Origin& from = origin_[static_cast<std::size_t>(pe)][static_cast<std::size_t>(block)];
  std::vector<std::byte> right(caches.block_bytes());
  std::vector<std::byte> found(caches.block_bytes());
  fill_block(right, from.pe, cache, from.block);
  shmem_getmem(found.data(), caches.block(cache, block), found.size(), pe);
  const auto at = std::mismatch(right.begin(), right.end(), found.begin()).first;
  if (at == right.end()) {
    return "";
  }
  return "byte " + std::to_string(at - right.begin()) + " of block " + std::to_string(block) + " of the " +
         (cache == Cache::kK ? "K" : "V") + " cache of PE " + std::to_string(pe) + " is not that of block " +
         std::to_string(from.block) + " of PE " + std::to_string(from.pe);
}

std::string Expected::compare(const Caches& caches) const {
  for (int pe = 0; pe < static_cast<int>(origin_.size()); ++pe) {
    for (std::int64_t block = 0; block < caches.blocks(); ++block) {
      for (const Cache cache : {Cache::kK, Cache::kV}) {
        if (std::string wrong = compare_block(caches, cache, pe, block); !wrong.empty()) {
          return wrong;
        }
      }
    }
  }
  return "";
}

}  // namespace kv_program
