// SPDX-License-Identifier: Apache-2.0
// Serves the requests of other PEs.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "shmem/net/requests.hpp"
#include "shmem/net/ucx/peers.hpp"
#include "shmem/net/ucx/send_queue.hpp"

namespace shmem {

/// Runs in any thread that progresses the worker. A PE whose request is invalid is refused with its next answer, and
/// counts as lost for this PE: both end the job.
class UcxServer {
 public:
  /// The worker calls back until its end: this outlives it. `peers` may be constructed later.
  UcxServer(UcxWorker& worker, UcxSendQueue& send_queue, UcxPeers& peers, const NetworkSettings& settings,
            std::uint64_t job);
  UcxServer(const UcxServer&) = delete;
  UcxServer& operator=(const UcxServer&) = delete;

 private:
  static ucs_status_t on_request(void* server, const void* header, std::size_t header_length, void* data,
                                 std::size_t length, const ucp_am_recv_param_t* parameters);
  // UCX calls back one at a time. These may call UCX, but not wait.
  void serve(const Request& request, std::span<const std::byte> bytes, ucp_ep_h asker);
  void answer_get(const Request& request, ucp_ep_h asker);
  void answer(ucp_ep_h asker, const Answer& answer, std::span<const std::byte> bytes = {});
  void refuse(const Request& request);
  void drop_foreign(const Request& request);
  [[nodiscard]] std::uint64_t refused(const Request& request) const {
    return refused_[static_cast<std::size_t>(request.from)] ? 1 : 0;
  }

  UcxSendQueue& send_queue_;
  UcxPeers& peers_;
  const RequestedMemory memory_;
  const std::vector<bool> is_remote_;
  const std::uint64_t job_;
  std::vector<bool> refused_;      // PEs whose request was refused
  bool foreign_reported_ = false;  // a request of another job
};

/// Reads the header of a message. False: the message is not one of ours.
template <typename Header>
bool read_header(Header& header, const void* bytes, std::size_t length, const ucp_am_recv_param_t& parameters) {
  if (length != sizeof header || (parameters.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    return false;
  }
  std::memcpy(&header, bytes, sizeof header);
  return true;
}

/// UCX calls `callback` for messages with this id.
void receive_by(const UcxWorker& worker, unsigned number, ucp_am_recv_callback_t callback, void* argument);

}  // namespace shmem
