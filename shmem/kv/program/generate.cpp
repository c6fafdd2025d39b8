// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/reference_caches.hpp"
#include "shmem/kv/program/reference_run.hpp"

namespace kv_program {
namespace {

using shmem::Result;

/// SplitMix64, from the example's seed.
class Random {
 public:
  std::int64_t below(std::uint64_t limit) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return static_cast<std::int64_t>(((z ^ (z >> 31)) >> 48) % limit);
  }

 private:
  std::uint64_t state_ = 42;
};

shmem::kv::Lengths example_lengths(int pes) {
  constexpr int kSequences = 5;
  constexpr std::uint64_t kMostTokens = 1024;
  Random random;
  shmem::kv::Lengths lengths(static_cast<std::size_t>(pes));
  for (auto& sequences : lengths) {
    for (int i = 0; i < kSequences; ++i) {
      sequences.push_back(random.below(kMostTokens));
    }
  }
  return lengths;
}

/// Blocks in use have a content of their own, others are zeros.
Result<void> write_inputs(const ReferenceFolder& folder, const Shape& shape, std::int64_t used) {
  const auto block_bytes = static_cast<std::size_t>(shape.bytes_of_part());
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.blocks) * block_bytes);
  for (const Cache cache : {Cache::kK, Cache::kV}) {
    for (std::int64_t block = 0; block < used; ++block) {
      fill_part(std::span(bytes).subspan(static_cast<std::size_t>(block) * block_bytes, block_bytes),
                {shmem_my_pe(), block}, {0, cache});
    }
    if (auto ok = folder.write_cache(cache, ReferenceFolder::Kind::kInput, shmem_my_pe(), bytes); !ok) {
      return ok;
    }
  }
  return {};
}

}  // namespace

Outcome run_generate(const Options& options, Agreement& agreement) {
  const ReferenceFolder folder{options.generate_in};
  const auto lengths = example_lengths(shmem_n_pes());
  const auto plan = shmem::kv::plan_pairs(lengths, options.geometry());
  if (!plan) {
    return failure_of_all(plan.error().text);
  }
  std::int64_t used = 0;
  for (const std::int64_t tokens : lengths[static_cast<std::size_t>(shmem_my_pe())]) {
    used += shmem::kv::blocks_of(tokens, options.shape.page_size);
  }
  auto written = folder.create();
  if (written) {
    written = write_inputs(folder, options.shape, used);
  }
  if (written) {
    written = folder.write_plan(*plan, shmem_my_pe());
  }
  if (auto failed = agree(agreement, written)) {
    return failed;
  }
  return agree(agreement, write_golden(folder, options.shape, *plan));
}

}  // namespace kv_program
