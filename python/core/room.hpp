// SPDX-License-Identifier: Apache-2.0
// The free parts of a range of bytes.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <utility>

namespace shmem_kv {

class Room {
 private:
  using Parts = std::map<std::uint64_t, std::uint64_t>;  // sizes by offset

 public:
  /// A part that is in use. It has the memory that its return needs, so that give() cannot fail.
  using Part = Parts::node_type;

  explicit Room(std::uint64_t bytes) : free_{{0, bytes}} {}

  /// The first part that is large enough, or an empty one. Copies are fast where source and destination begin at
  /// the same place of a page, which large blocks of engines do at its beginning.
  Part take(std::uint64_t bytes) {
    const std::uint64_t size = rounded(bytes);
    for (auto part = free_.begin(); part != free_.end(); ++part) {
      if (part->second == size) {
        return free_.extract(part);
      }
      if (part->second > size) {
        return split(part, size);
      }
    }
    return {};
  }

  void give(Part part) noexcept {
    const auto made = free_.insert(std::move(part)).position;
    if (const auto next = std::next(made); next != free_.end() && made->first + made->second == next->first) {
      made->second += next->second;
      free_.erase(next);
    }
    if (made == free_.begin()) {
      return;
    }
    if (const auto before = std::prev(made); before->first + before->second == made->first) {
      before->second += made->second;
      free_.erase(made);
    }
  }

 private:
  static constexpr std::uint64_t kLine = 64;
  static constexpr std::uint64_t kPage = 4096;

  static constexpr std::uint64_t rounded(std::uint64_t bytes) {
    const std::uint64_t unit = bytes < kPage ? kLine : kPage;
    return bytes > UINT64_MAX - unit ? UINT64_MAX : (bytes + unit - 1) / unit * unit;
  }

  Part split(Parts::iterator part, std::uint64_t size) {
    Parts one{{part->first, size}};  // before anything has changed
    auto rest = free_.extract(part);
    rest.key() += size;
    rest.mapped() -= size;
    free_.insert(std::move(rest));
    return one.extract(one.begin());
  }

  Parts free_;  // no two adjoin
};

}  // namespace shmem_kv
