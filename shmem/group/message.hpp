// SPDX-License-Identifier: Apache-2.0
// A message of a group, as the process that sends or receives it knows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "shmem/layout/job.hpp"
#include "shmem/result.hpp"

namespace shmem {

/// What a sender or receiver says of its message.
struct MessageEnd {
  static constexpr std::uint32_t kMostType = 4095;
  std::uint64_t size;
  std::uint32_t type;  // 0: of any
};

/// Why messages have failed: one for all that end for the same reason, so that ending them needs no memory.
using ErrorPointer = std::shared_ptr<const Error>;

/// The error of a collective call for which there is no memory.
ErrorPointer no_memory_for_call(int rank);

/// Constant for others than the mail, but for `over`.
struct GroupMessage {
  enum class Way { kSend, kReceive };
  Way way = Way::kSend;
  std::byte* data = nullptr;  // not written to when sending
  std::size_t size = 0;
  std::uint32_t type = 0;
  int peer = 0;  // a member of the group; -1: any
  int tag = 0;
  Clock::time_point deadline = Clock::time_point::max();
  std::function<void()> done;  // called once, without locks

  bool by_network = false;  // NetworkMail waits for it
  int place = 0;            // Mail's: of the peer among the members of its node; -1: any
  bool begun = false;       // some of it is in a ring, or was taken from there
  std::atomic<bool> over{false};
  // Constant once over.
  std::uint32_t peer_type = 0;
  ErrorPointer error;
  std::shared_ptr<GroupMessage> next_ended;  // EndedMessages

  /// A typed message is over for its sender when a call has received it: only then is it known whether they differ.
  [[nodiscard]] bool awaits_answer() const { return way == Way::kSend && type != 0; }
  [[nodiscard]] bool fits(const MessageEnd& other) const {
    return size == other.size && (type == other.type || type == 0 || other.type == 0);
  }
};
using MessagePointer = std::shared_ptr<GroupMessage>;

/// Messages that are over, whose `done` is to be called, in their order. Needs no memory.
class EndedMessages {
 public:
  EndedMessages() = default;
  EndedMessages(EndedMessages&& other) noexcept
      : first_(std::move(other.first_)), last_(std::exchange(other.last_, nullptr)) {}
  EndedMessages& operator=(EndedMessages&&) = delete;
  ~EndedMessages() = default;

  [[nodiscard]] bool empty() const { return first_ == nullptr; }
  void add(const MessagePointer& message) {
    (last_ == nullptr ? first_ : last_->next_ended) = message;
    last_ = message.get();
  }
  /// Without locks, on the only EndedMessages that has them.
  void call_all() {
    while (const MessagePointer one = std::exchange(first_, nullptr)) {
      first_ = std::exchange(one->next_ended, nullptr);
      std::exchange(one->done, nullptr)();
    }
    last_ = nullptr;
  }

 private:
  MessagePointer first_;
  GroupMessage* last_ = nullptr;
};

/// Notes the other end of a message whose peer is known. The Error of both ranks if the ends differ; else nullptr.
ErrorPointer compare_ends(int me, GroupMessage& message, const MessageEnd& other);

}  // namespace shmem
