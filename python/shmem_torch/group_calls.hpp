// SPDX-License-Identifier: Apache-2.0
// One group of libshmem and the calls on it, without torch.
#pragma once

#include <shmemx.h>
#include <shmemx_group.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace shmem_torch {

/// How the members find each other; all throw on failure.
struct Store {
  std::function<void(const std::string& key, const std::vector<std::uint8_t>& value)> set;
  std::function<std::vector<std::uint8_t>(const std::string& key)> get;
  std::function<bool(const std::string& key)> has;
  std::chrono::milliseconds timeout{0};  // of keys that do not come
};

/// Symmetric memory of a group, which it may outlive.
class GroupMemory {
 public:
  explicit GroupMemory(shmemx_group_memory_t* memory) : memory_(memory) {}
  GroupMemory(const GroupMemory&) = delete;
  GroupMemory& operator=(const GroupMemory&) = delete;
  ~GroupMemory() { shmemx_group_memory_free(memory_); }
  [[nodiscard]] void* address() const { return shmemx_group_memory_address(memory_); }
  [[nodiscard]] void* address_of(int rank) const { return shmemx_group_memory_of(memory_, rank); }

 private:
  shmemx_group_memory_t* const memory_;
};

/// A place in symmetric memory of a group.
struct FoundMemory {
  std::shared_ptr<GroupMemory> memory;
  std::uint64_t number;  // the same on all members, from 1 on
  std::uint64_t offset;  // in bytes
};

/// The memories that the members of a group have allocated together, as long as they are there. Thread-safe.
class KnownMemories {
 public:
  void add(const std::shared_ptr<GroupMemory>& memory, std::size_t bytes);
  [[nodiscard]] std::optional<FoundMemory> find(const void* address);

 private:
  struct Known {
    std::weak_ptr<GroupMemory> memory;
    std::size_t bytes;
    std::uint64_t number;
  };
  std::mutex mutex_;
  std::vector<Known> known_;
  std::uint64_t count_ = 0;
};

/// Owns a group. Thread-safe as shmemx_group.h says.
class GroupHandle {
 public:
  /// Collective. Throws std::runtime_error.
  GroupHandle(const Store& store, int rank, int size);
  GroupHandle(const GroupHandle&) = delete;
  GroupHandle& operator=(const GroupHandle&) = delete;
  ~GroupHandle();

  [[nodiscard]] shmemx_group_t* get() const { return group_; }
  [[nodiscard]] int size() const { return size_; }
  /// Which ranks have not begun the call that is running: the end of a sentence. "": this is not known.
  [[nodiscard]] std::string missing() const;

  /// Call it with the error of each collective call. Returns the error, and remembers it if the group has failed.
  int outcome(int error) const;
  int run(const shmemx_group_call_t& call, std::uint32_t signature) const {
    return outcome(shmemx_group_run_signed(group_, &call, signature));
  }
  /// All members' calls fail from now on. Any thread. The reason is told to them.
  void abort(const std::string& reason) const;
  /// A call has failed with this negative errno: remembers it if the group has failed with it.
  void note(int error) const;
  /// The first one, or 0.
  [[nodiscard]] int failure() const { return failure_.load(std::memory_order_relaxed); }  // no data comes with it
  [[nodiscard]] KnownMemories& memories() const { return memories_; }

 private:
  shmemx_group_t* group_ = nullptr;
  const int size_;
  mutable std::atomic<int> failure_{0};
  mutable KnownMemories memories_;
};

/// What a rank says of its call if the ranks' calls differ, such as the shape of its tensor. It need not be there.
using Describe = std::function<std::string()>;

/// Instead of a shmemx_group_kind, by a rank that cannot make the call that is due: it fails on all ranks.
constexpr int kNoCall = -1;

/// The error of a collective call, after it. All ranks get -EINVAL, or none: then they tell each other of their calls.
std::string failure_on_all(const GroupHandle& group, const char* name, int error, std::chrono::milliseconds timeout,
                           const Describe& describe);

inline std::uint64_t nanoseconds(std::chrono::milliseconds timeout) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(timeout).count());
}

/// Collective. "", or why it failed.
std::string allocate(const GroupHandle& group, const char* name, std::size_t bytes, std::chrono::milliseconds timeout,
                     std::shared_ptr<GroupMemory>& memory);

/// Collective: `bytes` of each member to `to`, one after the other. "", or why it failed.
std::string allgather(const GroupHandle& group, const char* name, const void* mine, std::size_t bytes, void* to,
                      std::chrono::milliseconds timeout);
std::string barrier(const GroupHandle& group, const char* name, std::chrono::milliseconds timeout);

/// The text of an exception. It is never empty. The stack, which torch adds to the texts of its own, is left out.
std::string text_of(const std::exception& error);

/// The text of an exception about a failed call, from its negative errno and shmemx_error_text().
std::string failure_text(const char* name, int error, std::chrono::milliseconds timeout);

}  // namespace shmem_torch
