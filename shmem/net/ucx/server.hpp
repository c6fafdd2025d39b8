// SPDX-License-Identifier: Apache-2.0
// Serves the requests of other PEs.
#pragma once

#include <span>

#include "shmem/net/request_server.hpp"
#include "shmem/net/ucx/peers.hpp"
#include "shmem/net/ucx/send_queue.hpp"

namespace shmem {

/// A RequestServer for UCX's messages. Runs in any thread that progresses the worker.
class UcxServer {
 public:
  /// The worker calls back until its end: this outlives it. `peers` may be constructed later.
  UcxServer(UcxWorker& worker, UcxSendQueue& send_queue, UcxPeers& peers, const NetworkSettings& settings,
            std::uint64_t job);
  UcxServer(const UcxServer&) = delete;
  UcxServer& operator=(const UcxServer&) = delete;

  // Thread-safe.
  void add(Segment segment, std::span<std::byte> memory) { requests_.add(segment, memory); }
  void remove(Segment segment) { requests_.remove(segment); }

 private:
  class Requester;
  // UCX calls back one at a time. It may call UCX, but not wait.
  static ucs_status_t on_request(void* server, const void* header, std::size_t header_length, void* data,
                                 std::size_t length, const ucp_am_recv_param_t* parameters);

  UcxSendQueue& send_queue_;
  UcxPeers& peers_;
  RequestServer requests_;
};

}  // namespace shmem
