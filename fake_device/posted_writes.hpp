// SPDX-License-Identifier: Apache-2.0
// Stores that go to a client as DMA_WRITE messages, and the interrupts that must not overtake them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace fake_device {

struct PostedStore {
  unsigned group;
  std::uint64_t iova;
};

/// No I/O; used by one thread.
class PostedWrites {
 public:
  /// A store was sent; the result is the id of its message.
  std::uint16_t sent(const PostedStore& store);
  /// False: nothing is outstanding, raise it now. True: completed() will give it back.
  bool hold(unsigned vector);

  struct Completion {
    std::optional<PostedStore> failed;
    std::vector<unsigned> interrupts;  // that waited for this store and none other
  };
  /// The client has answered. Nothing: no such store is outstanding.
  std::optional<Completion> completed(std::uint16_t id, bool success);
  [[nodiscard]] std::size_t outstanding() const { return entries_.size(); }

 private:
  struct Entry {
    std::uint16_t id;
    PostedStore store;
    bool done = false;
    std::vector<unsigned> interrupts;  // raised after this store and before the next
  };
  std::deque<Entry> entries_;
  std::uint16_t next_id_ = 0;
};

}  // namespace fake_device
