// SPDX-License-Identifier: Apache-2.0
// One-sided operations by messages of our own, where no adapter has them (TCP). UCX has such messages of its own, too,
// but acknowledges each put, and 1.13 ends the process that cannot answer a PE that has died.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "shmem/net/ucx_one_sided.hpp"
#include "shmem/net/ucx_outbox.hpp"
#include "shmem/net/ucx_patience.hpp"

namespace shmem {

/// Its requests to a PE go over one stream, and that serves them in their order, as its answers come back: a fence is
/// nothing, and a quiet is one request that is answered after all others.
class UcxRequests final : public UcxOneSided {
 public:
  /// The worker calls back until its end, therefore this outlives it. `peers` and `patience` need not be there yet.
  UcxRequests(UcxWorker& worker, UcxOutbox& outbox, UcxPeers& peers, UcxPatience& patience, int me, bool threads);

  Result<void> put(const FarPlace& to, const void* from, std::size_t bytes, Waits waits) override;
  Result<void> get(void* to, const FarPlace& from, std::size_t bytes, Waits waits) override;
  Result<std::uint64_t> fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand, std::uint64_t compared) override;
  Result<void> post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand) override;
  Result<void> fence() override { return {}; }
  Result<void> quiet() override;

 private:
  using Message = UcxOutbox::Message;

  /// An answer that is to come. Guarded by mutex_, but what is written before `done` for who waits for that.
  struct Expected {
    std::uint32_t name = 0;  // from 1: 0 is no answer's number
    std::uint32_t turn = 0;  // how often this place was used
    bool used = false;
    bool waited_for = false;
    UcxPeer* peer = nullptr;
    std::byte* to = nullptr;
    std::uint64_t bytes = 0;
    std::uint64_t left = 0;  // of them
    std::uint64_t value = 0;
    bool refused = false;
    std::atomic<bool> done{false};
  };
  struct Flush {
    UcxPeer* peer;
    Expected* answer;
    std::uint64_t begun;
  };

  static ucs_status_t on_answer(void* requests, const void* header, std::size_t header_length, void* data,
                                std::size_t length, const ucp_am_recv_param_t* parameters);
  void take_answer(const Answer& answer, std::span<const std::byte> bytes);

  /// REQUIRES: the lock of the peers.
  Result<Expected*> ask(UcxPeer& peer, Request request, std::span<std::byte> to, Waits waits, const Doing& doing);
  /// The value of the answer.
  Result<std::uint64_t> wait(Expected& expected, const Doing& doing);
  Result<void> finish(const std::vector<Message*>& messages, UcxPeer& peer, const Doing& doing);
  /// Of all that have anything to flush; the Error is that of a lost one.
  Result<void> begin_flushes(std::vector<Flush>& flushes);
  Result<void> finish_flush(const Flush& flush);
  /// Nothing of what was started towards this PE touches the memory of who started it any more.
  void stop(UcxPeer& peer);
  bool forget_started_gets(const UcxPeer& peer);

  [[nodiscard]] Request request_of(RequestKind kind, const FarPlace& place) const;
  [[nodiscard]] Request change_of(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                  std::uint64_t operand, std::uint64_t compared = 0) const;
  Expected& expect(UcxPeer& peer, std::span<std::byte> to, bool waited_for);
  void forget(Expected& expected);
  /// REQUIRES: lock().
  void release(Expected& expected);
  /// Not held while UCX is called, which calls back while it holds a lock of its own.
  [[nodiscard]] std::unique_lock<std::mutex> lock() {
    return threads_ ? std::unique_lock(mutex_) : std::unique_lock(mutex_, std::defer_lock);
  }

  UcxOutbox& outbox_;
  UcxPeers& peers_;
  UcxPatience& patience_;
  const int me_;
  const bool threads_;
  std::mutex mutex_;
  Places<Expected> expected_;
};

}  // namespace shmem
