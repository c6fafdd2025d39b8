// SPDX-License-Identifier: Apache-2.0
// A group of processes that a program forms itself: shmemx_group.h.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "shmem/bootstrap/store_bootstrap.hpp"
#include "shmem/collective/staged_call.hpp"
#include "shmem/config/options.hpp"
#include "shmem/group/mail.hpp"
#include "shmem/memory/member_memory.hpp"

namespace shmem {

/// Thread-safe, except that members make collective calls in the same order. Everything that belongs to it ends with
/// it; other members may go on using the memory that they share with it.
class Group {
 public:
  /// Collective. `options` are those of the environment.
  static Result<std::unique_ptr<Group>> create(KeyValueStore store, int rank, int size, Options options);
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  [[nodiscard]] virtual int size() const = 0;
  /// Collective. `timeout` 0: none. The Error of a member that died or did not come is that of all later calls.
  virtual Result<void> run(const StagedCall& call, std::chrono::nanoseconds timeout) = 0;

  /// Collective: symmetric memory, of which calls use buffers where they are. It outlives the group. After a call has
  /// failed, other members may still write to buffers of that call.
  virtual Result<std::shared_ptr<MemberMemory>> allocate(std::size_t bytes, std::chrono::nanoseconds timeout) = 0;
  /// Not collective, any thread: an Error if the group has failed, or that member's process has ended.
  [[nodiscard]] virtual Result<void> check(int rank) = 0;
  /// Not collective, any thread: the members that have not begun the collective call that this one is in, as text.
  [[nodiscard]] virtual Result<std::string> missing() = 0;
  struct Statistics {
    std::uint64_t calls;  // collective ones without an Error
    std::uint64_t direct_calls;
    std::uint64_t staged_bytes;
    std::uint64_t direct_messages;  // received
  };
  [[nodiscard]] virtual Statistics statistics() = 0;

  /// A message that is over, or on its way.
  virtual void post(const MessagePointer& message) = 0;
  virtual Result<void> wait(const MessagePointer& message) = 0;

  /// The members of a group are ranks to those who make groups.
  [[nodiscard]] static Error in_ranks(Error error);
};

}  // namespace shmem
