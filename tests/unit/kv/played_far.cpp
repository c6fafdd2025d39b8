// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/kv/played_far.hpp"

#include <cstring>
#include <string>

namespace kv_test {
namespace {

using shmem::Result;

tl::unexpected<shmem::Error> lost(int pe) {
  return shmem::fail(std::errc::connection_reset, "PE " + std::to_string(pe) + " is lost");
}

}  // namespace

Result<void> PlayedFar::start_put(void* mine, int pe, const void* from, std::size_t bytes) {
  if (loss_to(pe) == PlayedTraffic::Loss::kAtPut) return lost(pe);
  under_way_.push_back({pe, place_.translate(mine, bytes, pe), from, bytes});
  ++traffic_.puts;
  std::size_t most = traffic_.most_at_once;
  while (most < under_way_.size() && !traffic_.most_at_once.compare_exchange_weak(most, under_way_.size())) {
  }
  return {};
}

Result<void> PlayedFar::start_store(const shmem::SyncWord& mine, int pe, std::uint64_t value) {
  note_word();
  shmem::publish(word(mine, pe), value);
  return {};
}

Result<void> PlayedFar::get(void* to, const void* mine, int pe, std::size_t bytes) {
  std::memcpy(to, place_.translate(mine, bytes, pe), bytes);
  return {};
}

Result<std::uint64_t> PlayedFar::load(const shmem::SyncWord& mine, int pe) {
  return word(mine, pe).value.load();
}

Result<void> PlayedFar::fence() {
  Result<void> outcome;
  for (; !under_way_.empty(); under_way_.pop_back()) {
    const Put& put = under_way_.back();
    if (loss_to(put.pe) == PlayedTraffic::Loss::kNone) {
      std::memcpy(put.to, put.from, put.bytes);
    } else {
      outcome = lost(put.pe);
    }
  }
  return outcome;
}

Result<PlayedFar::Vote> PlayedFar::vote(std::uint64_t digest, bool willing) {
  note_word();
  return place_.vote(digest, willing);
}

}  // namespace kv_test
