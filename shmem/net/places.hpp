// SPDX-License-Identifier: Apache-2.0
// Records that are used again and again, and never move.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

namespace shmem {

/// Who may use it at once, its owner says.
template <typename T>
class Places {
 public:
  /// As it was left, or new.
  T& take() {
    if (free_.empty()) return all_.emplace_back();
    T& place = *free_.back();
    free_.pop_back();
    return place;
  }
  void give_back(T& place) { free_.push_back(&place); }
  /// All that were ever taken, in the order in which they were new.
  [[nodiscard]] std::deque<T>& all() { return all_; }

 private:
  std::deque<T> all_;
  std::vector<T*> free_;
};

}  // namespace shmem
