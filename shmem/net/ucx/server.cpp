// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/server.hpp"

#include <new>

#include "shmem/config/log.hpp"

namespace shmem {

UcxServer::UcxServer(UcxWorker& worker, UcxSendQueue& send_queue, UcxPeers& peers, const NetworkSettings& settings,
                     std::uint64_t job)
    : send_queue_(send_queue),
      peers_(peers),
      requests_(settings.segments, settings.is_remote, UcxSendQueue::kLongest, job) {
  receive_by(worker, UcxSendQueue::kRequests, on_request, this);
}

class UcxServer::Requester final : public RequestServer::Replies {
 public:
  Requester(UcxServer& server, ucp_ep_h endpoint) : server_(server), endpoint_(endpoint) {}

  void answer(const Answer& answer, std::span<const std::byte> bytes) override {
    // A PE that has died has no endpoint.
    if (endpoint_ != nullptr) {
      server_.send_queue_.send(endpoint_, answer, bytes);
    }
  }
  void refuse(int pe, Refusal why) override {
    server_.peers_.note_lost(pe, why == Refusal::kOrder
                                     ? "its requests came in another order than it sent them, or not all of them (do "
                                       "variables UCX_* spread them over several paths?)"
                                     : "it asked for memory that this PE does not have");
  }
  void report_foreign(int pe) override {
    log(LogLevel::kWarn,
        "shmem: %s got a message that is not of this job, as if from %s: it was not carried out, and others like it "
        "will not be. Another program can reach this PE's network ports",
        server_.peers_.my_name().c_str(), server_.peers_.name(pe).c_str());
  }

 private:
  UcxServer& server_;
  ucp_ep_h endpoint_;
};

ucs_status_t UcxServer::on_request(void* server, const void* header, std::size_t header_length, void* data,
                                   std::size_t length, const ucp_am_recv_param_t* parameters) {
  auto& self = *static_cast<UcxServer*>(server);
  const bool answers = (parameters->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
  Requester requester(self, answers ? parameters->reply_ep : nullptr);
  if (!is_whole(*parameters)) {
    return UCS_OK;
  }
  try {
    self.requests_.serve(bytes_of(header, header_length), bytes_of(data, length), requester);
  } catch (const std::bad_alloc&) {
    // No exception leaves a callback of UCX. An answer is lost, and its PE waits until its limit.
  }
  return UCS_OK;
}

}  // namespace shmem
