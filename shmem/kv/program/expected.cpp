// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/expected.hpp"

#include <algorithm>

namespace kv_program {

Expected::Expected(int pes, std::int64_t blocks) {
  for (int pe = 0; pe < pes; ++pe) {
    auto& mine = now_.emplace_back();
    for (std::int64_t block = 0; block < blocks; ++block) {
      mine.push_back({pe, block});
    }
  }
}

void Expected::apply(std::span<const shmem::kv::Move> moves, bool clears) {
  std::vector<BlockName> sources;
  sources.reserve(moves.size());
  for (const auto& move : moves) {
    sources.push_back(at(move.source_pe, move.source_block));
  }
  const auto place = [this](std::int64_t pe, std::int64_t block) -> BlockName& {
    return now_.at(static_cast<std::size_t>(pe)).at(static_cast<std::size_t>(block));
  };
  for (std::size_t i = 0; clears && i < moves.size(); ++i) {
    place(moves[i].source_pe, moves[i].source_block) = kZeros;
  }
  for (std::size_t i = 0; i < moves.size(); ++i) {
    place(moves[i].destination_pe, moves[i].destination_block) = sources[i];
  }
}

std::string Expected::compare_part(const Caches& caches, Part part, std::int64_t block,
                                   std::span<std::byte> right) const {
  const int pe = shmem_my_pe();
  const BlockName from = at(pe, block);
  fill_part(right, from, part);
  const auto found = caches.bytes(part, block);
  const auto wrong = std::mismatch(right.begin(), right.end(), found.begin()).first;
  if (wrong == right.end()) {
    return "";
  }
  return "byte " + std::to_string(wrong - right.begin()) + " of block " + std::to_string(block) + " of " +
         name_of(part) + " of PE " + std::to_string(pe) + " is not that of " +
         (from == kZeros ? "a cleared block"
                         : "block " + std::to_string(from.block) + " of PE " + std::to_string(from.pe));
}

std::string Expected::compare(const Caches& caches) const {
  std::vector<std::byte> right(static_cast<std::size_t>(caches.shape().bytes_of_part()));
  std::string wrong;
  caches.for_each_part([&](Part part) {
    for (std::int64_t block = 0; wrong.empty() && block < caches.shape().blocks; ++block) {
      wrong = compare_part(caches, part, block, right);
    }
  });
  return wrong;
}

}  // namespace kv_program
