// SPDX-License-Identifier: Apache-2.0
// One-sided operations by our own messages, if no adapter has them (TCP). UCX can do the same, but it acknowledges each
// put, and UCX 1.13 ends a process that cannot answer a PE that has died.
#pragma once

#include <vector>

#include "shmem/net/expected_answers.hpp"
#include "shmem/net/ucx/peers.hpp"
#include "shmem/net/ucx/send_queue.hpp"
#include "shmem/net/ucx/wait_policy.hpp"

namespace shmem {

/// All requests to a PE go over one stream. The PE serves them in order, and its answers come back in order. So a fence
/// does nothing, and a quiet is one request that is answered after all others. UCX promises that order only as long as
/// a message has one path: requests are numbered, and the PE refuses one that is out of place.
class UcxRequests final : public UcxOneSided {
 public:
  /// The worker calls back until its end: this outlives it. `peers` and `wait_policy` may be constructed later.
  UcxRequests(UcxWorker& worker, UcxSendQueue& send_queue, UcxPeers& peers, UcxWaitPolicy& wait_policy, int me,
              std::uint64_t job);

  Result<void> put(const RemotePlace& to, const void* from, std::size_t bytes, Waits waits) override;
  Result<void> get(void* to, const RemotePlace& from, std::size_t bytes, Waits waits) override;
  Result<std::uint64_t> fetch_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand, std::uint64_t compared) override;
  Result<void> post_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand) override;
  Result<void> fence(PeChoice /*pes*/) override { return {}; }
  Result<void> quiet(PeChoice pes) override;
  void stop(UcxPeer& peer) override;

 private:
  using Message = UcxSendQueue::Message;

  using Expected = ExpectedAnswers::Expected;

  static ucs_status_t on_answer(void* requests, const void* header, std::size_t header_length, void* data,
                                std::size_t length, const ucp_am_recv_param_t* parameters);

  // REQUIRES: the lock of the peers.
  ucs_status_t send(UcxPeer& peer, Request request, std::span<const std::byte> bytes = {},
                    Message** under_way = nullptr);
  Result<Expected*> ask(UcxPeer& peer, Request request, std::span<std::byte> to, Waits waits, const OpText& op);
  /// Returns the value of the answer.
  Result<std::uint64_t> wait(UcxPeer& peer, Expected& expected, const OpText& op);
  Result<void> finish(const std::vector<Message*>& messages, UcxPeer& peer, const OpText& op);

  [[nodiscard]] Request request_of(RequestKind kind, const RemotePlace& place) const;
  [[nodiscard]] Request change_of(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                  std::uint64_t operand, std::uint64_t compared = 0) const;
  UcxSendQueue& send_queue_;
  UcxPeers& peers_;
  UcxWaitPolicy& wait_policy_;
  const int me_;
  const std::uint64_t job_;
  ExpectedAnswers answers_;
};

}  // namespace shmem
