// SPDX-License-Identifier: Apache-2.0
// What one PE does to the memory of another, in either of two ways.
#pragma once

#include "shmem/net/network.hpp"
#include "shmem/net/ucx_peers.hpp"

namespace shmem {

/// As Network has them. A put or get is waited for if its bytes are the caller's again when it returns.
class UcxOneSided {
 public:
  enum class Waits { kNo, kYes };

  UcxOneSided() = default;
  UcxOneSided(const UcxOneSided&) = delete;
  UcxOneSided& operator=(const UcxOneSided&) = delete;
  virtual ~UcxOneSided() = default;

  virtual Result<void> put(const FarPlace& to, const void* from, std::size_t bytes, Waits waits) = 0;
  virtual Result<void> get(void* to, const FarPlace& from, std::size_t bytes, Waits waits) = 0;
  // REQUIRES: a word of the PE's segment, of 4 or 8 bytes, and an operation that is of use with or without its answer.
  virtual Result<std::uint64_t> fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                             std::uint64_t operand, std::uint64_t compared) = 0;
  virtual Result<void> post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                   std::uint64_t operand) = 0;
  virtual Result<void> fence() = 0;
  virtual Result<void> quiet() = 0;

 protected:
  static constexpr Doing kQuieting{"finish what it has begun towards", 0, ""};
  static constexpr Doing kChanging{"change a word of", 0, ""};
};

}  // namespace shmem
