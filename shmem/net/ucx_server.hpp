// SPDX-License-Identifier: Apache-2.0
// Does what other PEs ask of this one by requests.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "shmem/net/requests.hpp"
#include "shmem/net/ucx_outbox.hpp"
#include "shmem/net/ucx_peers.hpp"

namespace shmem {

/// In whatever thread progresses the worker. A PE whose request is none that can be done hears of it with its next
/// answer, and this one with what it next has to do with that one: both end the job.
class UcxServer {
 public:
  /// The worker calls back until its end, therefore this outlives it. `peers` need not be there yet.
  UcxServer(UcxWorker& worker, UcxOutbox& outbox, UcxPeers& peers, const NetworkSettings& settings);
  UcxServer(const UcxServer&) = delete;
  UcxServer& operator=(const UcxServer&) = delete;

 private:
  static ucs_status_t on_request(void* server, const void* header, std::size_t header_length, void* data,
                                 std::size_t length, const ucp_am_recv_param_t* parameters);
  // UCX calls back one at a time. May call it, but not wait.
  void serve(const Request& request, std::span<const std::byte> bytes, ucp_ep_h asker);
  void answer_get(const Request& request, ucp_ep_h asker);
  void answer(ucp_ep_h asker, const Answer& answer, std::span<const std::byte> bytes = {});
  void refuse(const Request& request);
  [[nodiscard]] std::uint64_t refused(const Request& request) const {
    return refused_[static_cast<std::size_t>(request.from)] ? 1 : 0;
  }

  UcxOutbox& outbox_;
  UcxPeers& peers_;
  const RequestedMemory memory_;
  const std::vector<bool> is_far_;
  std::vector<bool> refused_;  // PEs of which a request was refused
};

/// `header` of a message of `length` bytes. False: it is none of ours.
template <typename Header>
bool read_header(Header& header, const void* bytes, std::size_t length, const ucp_am_recv_param_t& parameters) {
  if (length != sizeof header || (parameters.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return false;
  std::memcpy(&header, bytes, sizeof header);
  return true;
}

/// UCX calls `callback` for the messages of this number.
void receive_by(const UcxWorker& worker, unsigned number, ucp_am_recv_callback_t callback, void* argument);

}  // namespace shmem
