// SPDX-License-Identifier: Apache-2.0
// What a shuffle asks of the network, in a team that is on several nodes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shmem/cores/wait.hpp"
#include "shmem/result.hpp"

namespace shmem::kv {

/// PEs by their number in the operator's team. A place in the memory of one is said by that of the same object here. An
/// Error names the PE that cannot be reached, or for which it was waited in vain.
class Far {
 public:
  Far() = default;
  Far(const Far&) = delete;
  Far& operator=(const Far&) = delete;
  virtual ~Far() = default;

  /// It is on another node.
  [[nodiscard]] virtual bool is_far(int pe) const = 0;
  /// So many bytes there are in symmetric memory of `pe`, too.
  [[nodiscard]] virtual bool has(const void* mine, std::size_t bytes, int pe) const = 0;

  // Done after the next quiet(), until which `from` is not touched.
  virtual Result<void> start_put(void* mine, int pe, const void* from, std::size_t bytes) = 0;
  virtual Result<void> start_store(const SyncWord& mine, int pe, std::uint64_t value) = 0;
  virtual Result<void> get(void* to, const void* mine, int pe, std::size_t bytes) = 0;
  /// The word, whole.
  virtual Result<std::uint64_t> load(const SyncWord& mine, int pe) = 0;
  /// What was begun before is there before what is begun later.
  virtual Result<void> fence() = 0;
  /// What was begun before is there.
  virtual Result<void> quiet() = 0;

  struct Vote {
    bool alike;    // all have given the same digest
    bool willing;  // and none has said no
    int other;     // if not: a PE that has it so
  };
  /// Collective, a sync of the team.
  virtual Result<Vote> vote(std::uint64_t digest, bool willing) = 0;
};

}  // namespace shmem::kv
