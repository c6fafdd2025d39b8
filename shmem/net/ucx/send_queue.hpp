// SPDX-License-Identifier: Apache-2.0
// Requests and answers to be sent.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <span>

#include "shmem/net/record_pool.hpp"
#include "shmem/net/requests.hpp"
#include "shmem/net/ucx/names.hpp"

namespace shmem {

/// Messages that UCX sends when it can, to each endpoint in the order of the calls.
class UcxSendQueue {
 public:
  // The ids by which UCX tells our messages apart.
  static constexpr unsigned kRequests = 1;
  static constexpr unsigned kAnswers = 2;
  /// Longer data is sent in several messages: over TCP, UCX 1.13 sends up to 64 KiB, headers included, as one frame,
  /// and the receiver collects longer messages in UCX's own memory before it calls back.
  static constexpr std::size_t kLongest = std::size_t{60} << 10;

  /// UCX reads it until it is sent.
  struct Message {
    Request request;
    Answer answer;
    UcxSendQueue* box = nullptr;
    ucp_ep_h to = nullptr;
    bool reads = false;       // it refers to a caller's bytes
    bool waited_for = false;  // the waiting thread gives it back
    ucs_status_t status = UCS_OK;
    std::atomic<bool> done{false};  // stored after `status`
  };

  /// The worker calls back until its end: this outlives it.
  explicit UcxSendQueue(UcxWorker& worker) : worker_(worker) {}
  UcxSendQueue(const UcxSendQueue&) = delete;
  UcxSendQueue& operator=(const UcxSendQueue&) = delete;

  /// UCS_OK: it is sent. UCS_INPROGRESS: UCX still reads `bytes`; if `under_way` is not nullptr, the caller waits for
  /// (*under_way)->done and gives the message back. May be called in UCX's callbacks.
  ucs_status_t send(ucp_ep_h to, const Request& request, std::span<const std::byte> bytes = {},
                    Message** under_way = nullptr);
  ucs_status_t send(ucp_ep_h to, const Answer& answer, std::span<const std::byte> bytes);
  void give_back(Message& message);
  /// UCX may still read a caller's bytes for that endpoint.
  bool reads_for(ucp_ep_h to);

 private:
  static void on_sent(void* request, ucs_status_t status, void* message);

  Message& take(ucp_ep_h to, bool reads, bool waited_for);
  ucs_status_t call_ucx(ucp_ep_h to, unsigned number, std::span<const std::byte> header,
                        std::span<const std::byte> bytes, Message& message);
  UcxWorker& worker_;
  std::mutex mutex_;  // not held while UCX is called: UCX calls back with a lock of its own held
  RecordPool<Message> messages_;
};

}  // namespace shmem
