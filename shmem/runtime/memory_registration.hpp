// SPDX-License-Identifier: Apache-2.0
// shmemx_memory_register: all PEs make memory that they have symmetric, or none does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "shmem/layout/job.hpp"
#include "shmem/memory/callers_memory.hpp"
#include "shmem/memory/fd_exchange.hpp"
#include "shmem/memory/process_memory.hpp"
#include "shmem/runtime/job_members.hpp"
#include "shmem/team/team_table.hpp"

namespace shmem {

/// The memory of this PE, and the file that it is a mapping of; fd -1: to be found.
struct MemoryRequest {
  std::span<std::byte> memory;
  int fd = -1;
  std::uint64_t offset = 0;
};

/// Collective over the job, or over the team that stands for it. One call at a time. The Job outlives it.
///
/// Steps, each of which succeeds on all PEs or on none: they agree on a slot; every PE checks its memory and offers it;
/// the offers are compared; PEs of a node hand each other descriptors and map them, or see whether the kernel copies
/// what is private; PEs of different nodes exchange keys.
class MemoryRegistration {
 public:
  MemoryRegistration(const Job& job, const TeamTable& teams) : job_(job), teams_(teams) {}

  /// Errors, without an effect: those of file_of(); invalid_argument also if sizes differ or the memory is symmetric
  /// already, file_exists if it is registered, no_buffer_space after kMostRegistered, permission_denied if the kernel
  /// does not copy it, and those of a barrier. They name the first PE that failed.
  Result<void> add(const MemoryRequest& request);
  /// `begin`: as it was added. invalid_argument, on all PEs, if that is not registered, or is another one on another
  /// PE. After an Error because PEs have died it is removed here nevertheless. REQUIRES: this PE's operations are
  /// complete.
  Result<void> remove(const void* begin);

 private:
  /// What a PE tells the others about its memory.
  struct Offer {
    Report failure;  // code 0: none
    std::uint64_t address, bytes, offset;
    std::int32_t shared;  // 1: by a descriptor
    std::int32_t parent;  // process
    std::uint32_t key_bytes;
    FdExchange::Address socket;
  };
  class NewSegment;
  struct Own;

  /// The first slot that is free on all PEs; kMostRegistered if all are used.
  Result<std::size_t> agree_on_slot(JobMembers& members) const;
  [[nodiscard]] Result<void> check_free(std::span<const std::byte> memory) const;
  Result<Own> prepare(const MemoryRequest& request, std::size_t slot) const;
  static Result<void> compare(const JobMembers& members, const std::vector<Offer>& offers);
  Result<void> run(JobMembers& members, const MemoryRequest& request, Result<Own>& own);
  Result<void> map_others(JobMembers& members, Own& own, const std::vector<Offer>& offers) const;
  void note_private(const JobMembers& members, const Own& own, const std::vector<Offer>& offers) const;
  Result<void> open_private(const JobMembers& members, Own& own, const std::vector<Offer>& offers) const;
  Result<void> exchange_keys(JobMembers& members, const Own& own, const std::vector<Offer>& offers) const;
  [[nodiscard]] Result<void> watch(const JobMembers& members, const std::vector<int>& awaited,
                                   Clock::time_point deadline) const;
  void tell_cores(std::size_t slot) const;
  void drop(std::size_t slot);

  const Job& job_;
  const TeamTable& teams_;
  std::map<std::size_t, CopyPermission> copied_;  // by slot, of memory of this PE that others copy
};

}  // namespace shmem
