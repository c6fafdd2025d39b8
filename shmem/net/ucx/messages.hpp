// SPDX-License-Identifier: Apache-2.0
// Sends and receives under way.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "shmem/net/ucx/send_queue.hpp"
#include "shmem/net/ucx/wait_policy.hpp"

namespace shmem {

/// The messages of one PE. UCX's tag is the sender's number (16 bits) and the caller's tag (48 bits), each bit changed
/// by the job's number: a receive matches the sender's number and the named bits of the tag exactly. So a message of a
/// program that does not have the job's number is never received: such a program would have to guess these bits, of
/// which at least 48 are named. Of several with the same tag, UCX takes the oldest first.
class UcxMessages {
 public:
  static constexpr int kMostPes = 1 << 16;
  static constexpr std::uint64_t kTags = std::uint64_t{1} << 48;

  /// `job`: JobAddresses::job. `interrupts`: NetworkSettings::interrupts.
  UcxMessages(UcxWorker& worker, UcxPeers& peers, UcxWaitPolicy& wait_policy, int me, std::uint64_t job,
              std::function<std::optional<TagPattern>(std::uint64_t)> interrupts)
      : worker_(worker),
        peers_(peers),
        wait_policy_(wait_policy),
        me_(me),
        job_(job),
        interrupts_(std::move(interrupts)) {}
  UcxMessages(const UcxMessages&) = delete;
  UcxMessages& operator=(const UcxMessages&) = delete;
  /// Cancels receives that were not waited for.
  ~UcxMessages();

  Result<std::uint64_t> start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes);
  Result<std::uint64_t> start_receive(int pe, std::uint64_t tag, void* to, std::size_t bytes);
  Result<std::uint64_t> start_receive_any(int pe, const TagPattern& tags, void* to, std::size_t bytes,
                                          Arrival& arrival);
  Result<void> wait(std::uint64_t number, std::optional<std::chrono::nanoseconds> limit);
  Result<bool> test(std::uint64_t number);
  void cancel(std::uint64_t number);
  [[nodiscard]] std::uint64_t sent_bytes() const { return sent_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool has_come(const TagPattern& pattern) const;
  [[nodiscard]] bool has_come_from(int pe, const TagPattern& tags) const;

 private:
  struct Message {
    std::uint32_t name = 0;  // from 1
    std::uint32_t turn = 0;  // how often this place was used
    bool used = false;
    bool receive = false;
    UcxPeer* peer = nullptr;
    std::size_t bytes = 0;
    TagPattern tags{};           // exactly one of a send
    Arrival* arrival = nullptr;  // the caller's, until the message is over
    std::uint64_t job = 0;
    void* request = nullptr;  // UCX's, until it is freed
    // Written by UCX's callback before `done`.
    ucs_status_t status = UCS_OK;
    std::size_t length = 0;
    std::atomic<bool> done{false};
  };

  static void on_sent(void* request, ucs_status_t status, void* message);
  static void on_received(void* request, ucs_status_t status, const ucp_tag_recv_info_t* info, void* message);
  static bool is_done(const Message& message) { return message.done.load(std::memory_order_acquire); }

  Result<std::uint64_t> start(bool receive, int pe, const TagPattern& tags, void* memory, std::size_t bytes,
                              Arrival* arrival);
  void* call_ucx(Message& message, void* memory);
  [[nodiscard]] std::uint64_t ucx_tag(int sender, std::uint64_t tag) const {
    return (static_cast<std::uint64_t>(sender) << 48 | tag) ^ job_;
  }
  // REQUIRES: the lock of the peers.
  Message& take();
  void give_back(Message& message);

  /// nullptr if it was not found.
  Message* find(std::uint64_t number);
  std::errc wait_or_stop(Message& message, std::optional<std::chrono::nanoseconds> limit);
  [[nodiscard]] bool is_interrupted(const Message& message) const;
  Result<void> outcome(const Message& message) const;
  /// Its number is invalid from now on.
  void release(Message& message);
  /// The caller gives up: afterwards UCX does not touch its bytes.
  void stop(Message& message);
  [[nodiscard]] static OpText op_of(const Message& message);

  UcxWorker& worker_;
  UcxPeers& peers_;
  UcxWaitPolicy& wait_policy_;
  const int me_;
  const std::uint64_t job_;
  const std::function<std::optional<TagPattern>(std::uint64_t)> interrupts_;
  std::atomic<std::uint64_t> sent_bytes_{0};
  RecordPool<Message> messages_;  // guarded by the lock of the peers; each Message belongs to the holder of its number
};

}  // namespace shmem
