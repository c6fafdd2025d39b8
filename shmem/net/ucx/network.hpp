// SPDX-License-Identifier: Apache-2.0
// The network over UCX.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shmem/net/network.hpp"
#include "shmem/net/ucx/direct.hpp"
#include "shmem/net/ucx/memory.hpp"
#include "shmem/net/ucx/messages.hpp"
#include "shmem/net/ucx/names.hpp"
#include "shmem/net/ucx/peers.hpp"
#include "shmem/net/ucx/requests.hpp"
#include "shmem/net/ucx/server.hpp"
#include "shmem/net/ucx/wait_policy.hpp"

namespace shmem {

class UcxNetwork final : public Network {
 public:
  /// `memory` holds the segments that `addresses.pes[me]` describes. `world` outlives the network.
  UcxNetwork(const Bootstrap& world, std::unique_ptr<UcxWorker> worker, std::unique_ptr<UcxMemory> memory,
             JobAddresses addresses, const NetworkSettings& settings);
  ~UcxNetwork() override;

  Result<void> put(const RemotePlace& to, const void* from, std::size_t bytes) override {
    return begin_put(to, from, bytes, UcxOneSided::Waits::kYes);
  }
  Result<void> get(void* to, const RemotePlace& from, std::size_t bytes) override {
    return begin_get(to, from, bytes, UcxOneSided::Waits::kYes);
  }
  Result<void> start_put(const RemotePlace& to, const void* from, std::size_t bytes) override {
    return begin_put(to, from, bytes, UcxOneSided::Waits::kNo);
  }
  Result<void> start_get(void* to, const RemotePlace& from, std::size_t bytes) override {
    return begin_get(to, from, bytes, UcxOneSided::Waits::kNo);
  }
  Result<std::uint64_t> fetch_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand, std::uint64_t compared) override;
  Result<void> post_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand) override;
  Result<void> fence(PeChoice pes) override { return one_sided_.fence(pes); }
  Result<void> quiet(PeChoice pes) override { return one_sided_.quiet(pes); }

  Result<std::uint64_t> start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) override {
    return messages_.start_send(pe, tag, from, bytes);
  }
  Result<std::uint64_t> start_receive(int pe, std::uint64_t tag, void* to, std::size_t bytes) override {
    return messages_.start_receive(pe, tag, to, bytes);
  }
  Result<std::uint64_t> start_receive_any(int pe, const TagPattern& tags, void* to, std::size_t bytes,
                                          Arrival& arrival) override {
    return messages_.start_receive_any(pe, tags, to, bytes, arrival);
  }
  Result<void> wait(std::uint64_t request, std::optional<std::chrono::nanoseconds> limit) override {
    return messages_.wait(request, limit);
  }
  Result<bool> test(std::uint64_t request) override { return messages_.test(request); }
  void cancel(std::uint64_t request) override { messages_.cancel(request); }
  [[nodiscard]] std::uint64_t sent_bytes() const override { return messages_.sent_bytes(); }
  [[nodiscard]] bool has_come(const TagPattern& pattern) override { return messages_.has_come(pattern); }
  [[nodiscard]] bool has_come_from(int pe, const TagPattern& pattern) override {
    return messages_.has_come_from(pe, pattern);
  }

  Result<std::vector<std::byte>> add_segment(Segment segment, std::span<std::byte> memory) override;
  void attach_segment(Segment segment, std::vector<SegmentAddress> places) override {
    peers_.attach(segment, std::move(places));
  }
  void remove_segment(Segment segment) override;

  bool advance() override { return worker_->progress(); }
  [[nodiscard]] bool writes_unnoticed() const override { return worker_->one_sided(); }
  void sleep(std::chrono::nanoseconds longest) override { worker_->sleep(longest); }
  void wake() override { worker_->wake(); }
  [[nodiscard]] bool has_lost(int pe) const override { return peers_.has_lost(pe); }
  void forget_lost(int pe) override;
  void leave_out(int pe) override;
  [[nodiscard]] std::optional<Error> lost() const override { return peers_.first_lost(); }
  [[nodiscard]] std::string describe() const override;

 private:
  Result<void> begin_put(const RemotePlace& to, const void* from, std::size_t bytes, UcxOneSided::Waits waits);
  Result<void> begin_get(void* to, const RemotePlace& from, std::size_t bytes, UcxOneSided::Waits waits);
  Result<void> check_word(const RemotePlace& word, std::size_t size) const;

  // These outlive the worker, which calls them back.
  UcxSendQueue send_queue_;
  UcxServer server_;
  UcxRequests requests_;
  UcxDirect direct_;
  UcxOneSided& one_sided_;  // one of the two
  std::unique_ptr<UcxWorker> worker_;
  std::unique_ptr<UcxMemory> memory_;
  UcxPeers peers_;
  UcxWaitPolicy wait_policy_;
  UcxMessages messages_;
};

}  // namespace shmem
