// SPDX-License-Identifier: Apache-2.0
#include "kv/planner/sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/size_text.hpp"

namespace shmem::kv {
namespace {

constexpr std::int64_t kMostPes = std::int64_t{1} << 20;
// No cache is larger, and no sum of tokens overflows.
constexpr std::int64_t kMostBlocks = std::int64_t{1} << 31;
constexpr std::int64_t kMostTokensInPage = std::int64_t{1} << 40;

Error refuse(const std::string& what) {
  return fail(std::errc::invalid_argument, "cannot plan: " + what);
}

std::string name(std::size_t number, const Sequence& sequence) {
  return fmt::format("sequence {} (of PE {})", number, sequence.pe);
}

Result<void> check_sequence(std::size_t number, const Sequence& sequence, const Planning& planning) {
  const Geometry& geometry = planning.geometry;
  if (sequence.pe < 0 || sequence.pe >= planning.pes) {
    return refuse(fmt::format("sequence {} is of PE {}, which is not in 0..{}", number, sequence.pe, planning.pes - 1));
  }
  if (sequence.tokens < 0) {
    return refuse(fmt::format("{} has {} tokens", name(number, sequence), sequence.tokens));
  }
  const std::int64_t least = pages_of(sequence.tokens, geometry.page);
  if (static_cast<std::int64_t>(sequence.blocks.size()) < least) {
    return refuse(fmt::format("{} has {} tokens, which take {} blocks of {}, and a block table of {}",
                              name(number, sequence), sequence.tokens, least, geometry.page, sequence.blocks.size()));
  }
  if (sequence.hashes.size() > sequence.blocks.size()) {
    return refuse(fmt::format("{} has {} hashes for {}", name(number, sequence), sequence.hashes.size(),
                              base::count(sequence.blocks.size(), "block")));
  }
  const auto outside = std::find_if(sequence.blocks.begin(), sequence.blocks.end(),
                                    [&](std::int64_t block) { return block < 0 || block >= geometry.blocks; });
  if (outside != sequence.blocks.end()) {
    return refuse(fmt::format("{}: entry {} of the block table is {}, not one of the cache's blocks 0..{}",
                              name(number, sequence), outside - sequence.blocks.begin(), *outside,
                              geometry.blocks - 1));
  }
  return {};
}

Result<void> check_planning(std::span<const Sequence> sequences, const Planning& planning) {
  if (planning.pes < 1 || planning.pes > kMostPes) {
    return refuse(fmt::format("{} PEs", planning.pes));
  }
  // Also refuses NaN.
  if (!(planning.tolerance >= 0 && planning.tolerance <= 1)) {
    return refuse(fmt::format("a tolerance of {:f}, which is not in 0..1", planning.tolerance));
  }
  const Geometry& geometry = planning.geometry;
  if (geometry.blocks < 1 || geometry.blocks > kMostBlocks || geometry.page < 1 || geometry.page > kMostTokensInPage) {
    return refuse(
        fmt::format("{} PEs with caches of {} blocks of {} tokens", planning.pes, geometry.blocks, geometry.page));
  }
  return sequences.empty() ? refuse("there are no sequences") : Result<void>{};
}

}  // namespace

/// An entry of a block table.
struct Holdings::Named {
  std::int64_t block;
  std::size_t sequence;
  bool hashed;
  std::uint64_t hash;
};

std::size_t filled_blocks(const Sequence& sequence, std::int64_t page) {
  return std::max(static_cast<std::size_t>(pages_of(sequence.tokens, page)), sequence.hashes.size());
}

Holdings::Holdings(std::size_t sequences, const Planning& planning)
    : by_pe_(static_cast<std::size_t>(planning.pes)),
      tokens_(by_pe_.size()),
      weights_(planning.weights),
      unit_(weights_.empty() ? planning.pes : std::accumulate(weights_.begin(), weights_.end(), std::int64_t{0})),
      used_(by_pe_.size()),
      shares_(sequences) {}

Result<void> Holdings::take_blocks(std::span<const Sequence> sequences, std::size_t pe, std::vector<Named>& named) {
  named.clear();
  for (const std::size_t number : by_pe_[pe]) {
    const Sequence& sequence = sequences[number];
    for (std::size_t i = 0; i < sequence.blocks.size(); ++i) {
      const bool hashed = i < sequence.hashes.size();
      named.push_back({sequence.blocks[i], number, hashed, hashed ? sequence.hashes[i] : 0});
    }
  }
  const auto ascending = [](const Named& a, const Named& b) { return a.block < b.block; };
  if (!std::is_sorted(named.begin(), named.end(), ascending)) {
    std::stable_sort(named.begin(), named.end(), ascending);
  }
  std::vector<std::int64_t>& used = used_[pe];
  used.reserve(named.size());
  for (std::size_t i = 0; i < named.size(); ++i) {
    const Named& entry = named[i];
    if (i == 0 || entry.block != named[i - 1].block) {
      used.push_back(entry.block);
      continue;
    }
    const Named& before = named[i - 1];
    if (!entry.hashed || !before.hashed || entry.hash != before.hash) {
      return refuse(
          fmt::format("block {} of PE {} is named by sequence {} and again by sequence {}, without a hash that "
                      "says that both mean the same contents",
                      entry.block, pe, before.sequence, entry.sequence));
    }
    shares_[before.sequence] = shares_[entry.sequence] = true;
  }
  return {};
}

Result<Holdings> Holdings::create(std::span<const Sequence> sequences, const Planning& planning) {
  if (auto ok = check_planning(sequences, planning); !ok) {
    return ok.error();
  }
  Holdings holdings(sequences.size(), planning);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (auto ok = check_sequence(i, sequences[i], planning); !ok) {
      return ok.error();
    }
    const auto pe = static_cast<std::size_t>(sequences[i].pe);
    const std::int64_t left = kMostTokensTimesUnit / holdings.unit_ - holdings.all_tokens_;
    if (sequences[i].tokens > left) {
      return refuse("the tokens of all sequences are more than can be counted");
    }
    holdings.by_pe_[pe].push_back(i);
    holdings.tokens_[pe] += sequences[i].tokens;
    holdings.all_tokens_ += sequences[i].tokens;
  }
  std::vector<Named> named;
  for (std::size_t pe = 0; pe < holdings.by_pe_.size(); ++pe) {
    if (auto ok = holdings.take_blocks(sequences, pe, named); !ok) {
      return ok.error();
    }
  }
  return holdings;
}

}  // namespace shmem::kv
