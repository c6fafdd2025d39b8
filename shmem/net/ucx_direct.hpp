// SPDX-License-Identifier: Apache-2.0
// One-sided operations by UCX's own, for adapters that write to the memory of other nodes.
#pragma once

#include <atomic>
#include <deque>
#include <vector>

#include "shmem/net/ucx_one_sided.hpp"
#include "shmem/net/ucx_patience.hpp"

namespace shmem {

class UcxDirect final : public UcxOneSided {
 public:
  /// The worker writes to it until its end, therefore this outlives it. `peers` and `patience` need not be there yet.
  UcxDirect(UcxWorker& worker, UcxPeers& peers, UcxPatience& patience)
      : worker_(worker), peers_(peers), patience_(patience) {}

  Result<void> put(const FarPlace& to, const void* from, std::size_t bytes, Waits waits) override;
  Result<void> get(void* to, const FarPlace& from, std::size_t bytes, Waits waits) override;
  Result<std::uint64_t> fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand, std::uint64_t compared) override;
  Result<void> post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand) override;
  /// A fence of UCX's orders what goes one way, and several may lead to a PE.
  Result<void> fence() override { return quiet(); }
  Result<void> quiet() override;

 private:
  /// What UCX was asked to do for a peer: nullptr is done, or an error's number, or its request.
  struct Started {
    UcxPeer* peer = nullptr;
    void* request = nullptr;
    bool given_up = false;  // and UCX may still write its answer
  };
  /// The operand of an atomic operation, and where UCX puts the answer: perhaps when nobody waits for it any more.
  struct Swap {
    std::uint64_t operand = 0;
    std::uint64_t answer = 0;
    const UcxCalls* calls = nullptr;
    std::atomic<bool> used{false};
  };
  struct Flush {
    UcxPeer* peer;
    void* request;
    std::uint64_t begun;
  };

  Result<Started> begin_put(const FarPlace& to, const void* from, std::size_t bytes);
  Result<Started> begin_get(void* to, const FarPlace& from, std::size_t bytes);
  Result<Started> begin_atomic(const FarPlace& word, std::size_t size, ucp_atomic_op_t operation, const void* operand,
                               void* answer);
  Result<void> begin_swap(const FarPlace& word, std::size_t size, std::uint64_t operand);
  Result<void> finish(Started& started, const Doing& doing);
  Result<void> leave(const Started& started, const Doing& doing);
  Swap& take_swap();
  /// Of all that have anything to flush; the Error is that of a lost one.
  Result<void> begin_flushes(std::vector<Flush>& flushes);
  Result<void> finish_flush(const Flush& flush);

  UcxWorker& worker_;
  UcxPeers& peers_;
  UcxPatience& patience_;
  // Guarded by the lock of the peers.
  std::deque<Swap> swaps_;
  std::size_t next_swap_ = 0;
};

}  // namespace shmem
