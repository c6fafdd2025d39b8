// SPDX-License-Identifier: Apache-2.0
// Requests and answers on their way out.
#pragma once

#include <atomic>
#include <mutex>
#include <span>

#include "shmem/net/places.hpp"
#include "shmem/net/requests.hpp"
#include "shmem/net/ucx_worker.hpp"

namespace shmem {

/// UCX sends what is put in here when it can, each to its endpoint in the order in which it was put in.
class UcxOutbox {
 public:
  // UCX's numbers of our messages.
  static constexpr unsigned kRequests = 1;
  static constexpr unsigned kAnswers = 2;
  /// Longer ones go in several: UCX 1.13 takes up to 64 KiB, with its own headers and ours, as one frame over TCP, and
  /// gathers longer ones in memory of its own before it calls back.
  static constexpr std::size_t kLongest = std::size_t{60} << 10;

  /// What UCX reads until it is sent.
  struct Message {
    Request request;
    Answer answer;
    UcxOutbox* box = nullptr;
    ucp_ep_h to = nullptr;
    bool reads = false;       // a caller's bytes, until it is given back
    bool waited_for = false;  // by somebody who gives it back
    ucs_status_t status = UCS_OK;
    std::atomic<bool> done{false};  // after `status`
  };

  /// The worker calls back until its end, therefore this outlives it.
  UcxOutbox(UcxWorker& worker, bool threads) : worker_(worker), threads_(threads) {}
  UcxOutbox(const UcxOutbox&) = delete;
  UcxOutbox& operator=(const UcxOutbox&) = delete;

  /// UCS_OK: it is sent. UCS_INPROGRESS: UCX reads `bytes` until it is; if `under_way` is not nullptr, *under_way is
  /// then done, and to be given back. May be called in UCX's callbacks.
  ucs_status_t send(ucp_ep_h to, const Request& request, std::span<const std::byte> bytes = {},
                    Message** under_way = nullptr);
  ucs_status_t send(ucp_ep_h to, const Answer& answer, std::span<const std::byte> bytes);
  void give_back(Message& message);
  /// There is something to that endpoint of which UCX may still read the bytes.
  bool reads_for(ucp_ep_h to);

 private:
  static void on_sent(void* request, ucs_status_t status, void* message);

  Message& take(ucp_ep_h to, bool reads, bool waited_for);
  ucs_status_t call_ucx(ucp_ep_h to, unsigned number, std::span<const std::byte> header,
                        std::span<const std::byte> bytes, Message& message);
  /// Not held while UCX is called, which calls back while it holds a lock of its own.
  [[nodiscard]] std::unique_lock<std::mutex> lock() {
    return threads_ ? std::unique_lock(mutex_) : std::unique_lock(mutex_, std::defer_lock);
  }

  UcxWorker& worker_;
  const bool threads_;
  std::mutex mutex_;
  Places<Message> messages_;
};

}  // namespace shmem
