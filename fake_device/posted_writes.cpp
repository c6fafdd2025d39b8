// SPDX-License-Identifier: Apache-2.0
#include "fake_device/posted_writes.hpp"

#include <algorithm>

namespace fake_device {

std::uint16_t PostedWrites::sent(const PostedStore& store) {
  entries_.push_back({.id = next_id_, .store = store, .done = false, .interrupts = {}});
  return next_id_++;
}

bool PostedWrites::hold(unsigned vector) {
  if (entries_.empty()) {
    return false;
  }
  entries_.back().interrupts.push_back(vector);
  return true;
}

std::optional<PostedWrites::Completion> PostedWrites::completed(std::uint16_t id, bool success) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.id == id && !entry.done; });
  if (found == entries_.end()) {
    return std::nullopt;
  }
  Completion result;
  found->done = true;
  if (!success) {
    result.failed = found->store;
  }
  while (!entries_.empty() && entries_.front().done) {
    const auto& waited = entries_.front().interrupts;
    result.interrupts.insert(result.interrupts.end(), waited.begin(), waited.end());
    entries_.pop_front();
  }
  return result;
}

}  // namespace fake_device
