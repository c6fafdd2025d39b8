// SPDX-License-Identifier: Apache-2.0
// The network over UCX.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "shmem/net/network.hpp"
#include "shmem/net/ucx_memory.hpp"
#include "shmem/net/ucx_messages.hpp"
#include "shmem/net/ucx_patience.hpp"
#include "shmem/net/ucx_peers.hpp"
#include "shmem/net/ucx_worker.hpp"

namespace shmem {

class UcxNetwork final : public Network {
 public:
  /// `memory` holds the segments that `greetings[me]` tells of. `world` outlives the network.
  UcxNetwork(const Bootstrap& world, std::unique_ptr<UcxWorker> worker, std::unique_ptr<UcxMemory> memory,
             std::vector<Greeting> greetings, const NetworkSettings& settings);
  ~UcxNetwork() override;

  Result<void> put(const FarPlace& to, const void* from, std::size_t bytes) override;
  Result<void> get(void* to, const FarPlace& from, std::size_t bytes) override;
  Result<void> start_put(const FarPlace& to, const void* from, std::size_t bytes) override;
  Result<void> start_get(void* to, const FarPlace& from, std::size_t bytes) override;
  Result<std::uint64_t> fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand, std::uint64_t compared) override;
  Result<void> post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand) override;
  Result<void> fence() override;
  Result<void> quiet() override;

  Result<std::uint64_t> start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) override {
    return messages_.start_send(pe, tag, from, bytes);
  }
  Result<std::uint64_t> start_receive(int pe, std::uint64_t tag, void* to, std::size_t bytes) override {
    return messages_.start_receive(pe, tag, to, bytes);
  }
  Result<void> wait(std::uint64_t request, std::optional<std::chrono::nanoseconds> limit) override {
    return messages_.wait(request, limit);
  }
  Result<bool> test(std::uint64_t request) override { return messages_.test(request); }
  void cancel(std::uint64_t request) override { messages_.cancel(request); }

  bool advance() override { return worker_->progress(); }
  void nap(std::chrono::nanoseconds longest) override { worker_->nap(longest); }
  void wake() override { worker_->wake(); }
  [[nodiscard]] std::optional<Error> lost() const override { return peers_.first_lost(); }
  [[nodiscard]] std::string describe() const override;

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

  Result<Started> begin_put(const FarPlace& to, const void* from, std::size_t bytes);
  Result<Started> begin_get(void* to, const FarPlace& from, std::size_t bytes);
  Result<Started> begin_atomic(const FarPlace& word, std::size_t size, ucp_atomic_op_t operation, const void* operand,
                               void* answer);
  Result<void> begin_swap(const FarPlace& word, std::size_t size, std::uint64_t operand);
  Result<void> check_word(const FarPlace& word, std::size_t size) const;
  Result<void> finish(Started& started, const Doing& doing);
  Result<void> leave(const Started& started, const Doing& doing);
  Swap& take_swap();
  struct Flush {
    UcxPeer* peer;
    void* request;
    std::uint64_t begun;
  };
  /// Of all that have anything to flush; the Error is that of a lost one.
  Result<void> begin_flushes(std::vector<Flush>& flushes);
  Result<void> finish_flush(const Flush& flush);

  // Outlives the worker, which writes to it. Guarded by the lock of the peers.
  std::deque<Swap> swaps_;
  std::size_t next_swap_ = 0;
  std::unique_ptr<UcxWorker> worker_;
  std::unique_ptr<UcxMemory> memory_;
  UcxPeers peers_;
  UcxPatience patience_;
  UcxMessages messages_;
};

}  // namespace shmem
