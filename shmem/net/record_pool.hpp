// SPDX-License-Identifier: Apache-2.0
// Records that are used again.
#pragma once

#include <deque>
#include <vector>

namespace shmem {

/// Records that keep their addresses, reused. Its owner guards it.
template <typename T>
class RecordPool {
 public:
  /// A record that was given back, as it was left, or a new one.
  T& take() {
    if (free_.empty()) {
      if (free_.capacity() <= all_.size()) {
        free_.reserve(2 * all_.size() + 1);
      }
      return all_.emplace_back();
    }
    T& place = *free_.back();
    free_.pop_back();
    return place;
  }
  /// Needs no memory: there is room for all.
  void give_back(T& place) noexcept { free_.push_back(&place); }
  /// All records, in the order in which they were made.
  [[nodiscard]] std::deque<T>& all() { return all_; }

 private:
  std::deque<T> all_;
  std::vector<T*> free_;
};

}  // namespace shmem
