// SPDX-License-Identifier: Apache-2.0
// A message of a group, as the process that sends or receives it knows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "shmem/layout/job.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// What a sender or receiver says of its message.
struct MessageEnd {
  static constexpr std::uint32_t kMostType = 4095;
  std::uint64_t size;
  std::uint32_t type;  // 0: of any
};

/// Constant for others than the mail, but for `over`.
struct Message {
  enum class Way { kSend, kReceive };
  Way way = Way::kSend;
  std::byte* data = nullptr;  // not written to when sending
  std::size_t size = 0;
  std::uint32_t type = 0;
  int peer = 0;  // -1: any
  int tag = 0;
  Clock::time_point deadline = Clock::time_point::max();
  std::function<void()> done;  // called once, without locks

  bool begun = false;  // some of it is in a ring, or was taken from there
  std::atomic<bool> over{false};
  // Constant once over.
  std::uint32_t peer_type = 0;
  std::optional<Error> error;

  /// A typed message is over for its sender when a call has received it: only then is it known whether they differ.
  [[nodiscard]] bool awaits_answer() const { return way == Way::kSend && type != 0; }
  [[nodiscard]] bool fits(const MessageEnd& other) const {
    return size == other.size && (type == other.type || type == 0 || other.type == 0);
  }
};
using MessagePointer = std::shared_ptr<Message>;

/// Notes the other end of a message whose peer is known. The Error of both ranks if the ends differ.
std::optional<Error> compare_ends(int me, Message& message, const MessageEnd& other);

}  // namespace shmem
