// SPDX-License-Identifier: Apache-2.0
// UCX's own one-sided operations, for adapters that write to the memory of other nodes.
#pragma once

#include <atomic>
#include <deque>
#include <optional>

#include "shmem/net/ucx/peers.hpp"
#include "shmem/net/ucx/wait_policy.hpp"

namespace shmem {

class UcxDirect final : public UcxOneSided {
 public:
  /// The worker writes to this object until its end: this outlives the worker. `peers` and `wait_policy` may be
  /// constructed later.
  UcxDirect(UcxWorker& worker, UcxPeers& peers, UcxWaitPolicy& wait_policy)
      : worker_(worker), peers_(peers), wait_policy_(wait_policy) {}

  Result<void> put(const RemotePlace& to, const void* from, std::size_t bytes, Waits waits) override;
  Result<void> get(void* to, const RemotePlace& from, std::size_t bytes, Waits waits) override;
  Result<std::uint64_t> fetch_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand, std::uint64_t compared) override;
  Result<void> post_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand) override;
  /// UCX's fence orders operations on one path only, and several may lead to a PE.
  Result<void> fence(PeChoice pes) override { return quiet(pes); }
  Result<void> quiet(PeChoice pes) override;
  void stop(UcxPeer& peer) override;

 private:
  /// What UCX was asked to do for a peer. `request`: nullptr if it is done, an error's number, or UCX's request.
  struct Started {
    UcxPeer* peer = nullptr;
    void* request = nullptr;
    bool given_up = false;  // UCX may still write its answer
  };
  /// The operand of an atomic operation, and where UCX puts the answer, perhaps after the caller has given up.
  struct Swap {
    std::uint64_t operand = 0;
    std::uint64_t answer = 0;
    const UcxCalls* calls = nullptr;
    std::atomic<bool> used{false};
  };

  /// Counts the operations that have begun for one PE, that no caller waits for, and that UCX has not finished. Until
  /// then UCX may use the callers' memory.
  struct Left {
    const UcxCalls* calls = nullptr;
    std::atomic<std::uint64_t> count{0};
  };

  /// `call(endpoint, address, key)` asks UCX to access `place`.
  template <typename Call>
  Result<Started> begin(const RemotePlace& place, const OpText& op, Call call);
  Result<Started> begin_atomic(const RemotePlace& word, std::size_t size, ucp_atomic_op_t operation,
                               const void* operand, void* answer);
  Result<void> begin_swap(const RemotePlace& word, std::size_t size, std::uint64_t operand);
  Result<void> finish(Started& started, const OpText& op);
  Result<void> leave(const Started& started, const OpText& op);
  /// Makes a put or a get: `call(endpoint, address, key, parameters)` asks UCX for it.
  template <typename Call>
  Result<void> move(const RemotePlace& place, const OpText& op, Waits waits, Call call);
  Left& left_of(int pe);
  Swap& take_swap();
  Result<void> finish_flush(UcxPeer& peer, void* request);

  UcxWorker& worker_;
  UcxPeers& peers_;
  UcxWaitPolicy& wait_policy_;
  // Guarded by the lock of the peers.
  std::deque<Swap> swaps_;
  std::size_t next_swap_ = 0;
  std::deque<Left> left_;  // by PE
};

}  // namespace shmem
