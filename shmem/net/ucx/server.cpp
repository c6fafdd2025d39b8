// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/server.hpp"

#include <algorithm>
#include <utility>

#include "shmem/config/log.hpp"

namespace shmem {

void receive_by(const UcxWorker& worker, unsigned number, ucp_am_recv_callback_t callback, void* argument) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = number;
  handler.cb = callback;
  handler.arg = argument;
  worker.calls().worker_set_am_recv_handler(worker.worker(), &handler);
}

UcxServer::UcxServer(UcxWorker& worker, UcxSendQueue& send_queue, UcxPeers& peers, const NetworkSettings& settings,
                     std::uint64_t job)
    : send_queue_(send_queue),
      peers_(peers),
      memory_(settings.segments),
      is_remote_(settings.is_remote),
      job_(job),
      refused_(is_remote_.size()) {
  receive_by(worker, UcxSendQueue::kRequests, on_request, this);
}

ucs_status_t UcxServer::on_request(void* server, const void* header, std::size_t header_length, void* data,
                                   std::size_t length, const ucp_am_recv_param_t* parameters) {
  Request request;
  if (!read_header(request, header, header_length, *parameters)) {
    return UCS_OK;
  }
  const bool answers = (parameters->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) != 0;
  static_cast<UcxServer*>(server)->serve(request, {static_cast<const std::byte*>(data), length},
                                         answers ? parameters->reply_ep : nullptr);
  return UCS_OK;
}

void UcxServer::serve(const Request& request, std::span<const std::byte> bytes, ucp_ep_h asker) {
  if (request.from < 0 || static_cast<std::size_t>(request.from) >= is_remote_.size() ||
      !is_remote_[static_cast<std::size_t>(request.from)]) {
    return;  // not from a PE on another node
  }
  if (request.job != job_) {
    return drop_foreign(request);
  }
  switch (request.kind) {
    case RequestKind::kPut:
      if (!memory_.put(request, bytes)) {
        refuse(request);
      }
      return;
    case RequestKind::kGet:
      return answer_get(request, asker);
    case RequestKind::kAtomic: {
      const auto before = memory_.change(request);
      if (!before) {
        refuse(request);
      }
      return answer(asker, {request.number, before.value_or(0), refused(request)});
    }
    case RequestKind::kFlush:
      return answer(asker, {request.number, 0, refused(request)});
  }
  refuse(request);
  answer(asker, {request.number, 0, refused(request)});
}

void UcxServer::answer_get(const Request& request, ucp_ep_h asker) {
  const auto wanted = memory_.get(request);
  if (!wanted) {
    refuse(request);
    return answer(asker, {request.number, 0, refused(request)});
  }
  for (std::size_t at = 0; at < wanted->size(); at += UcxSendQueue::kLongest) {
    const std::size_t piece = std::min(UcxSendQueue::kLongest, wanted->size() - at);
    answer(asker, {request.number, at, 0}, wanted->subspan(at, piece));
  }
}

void UcxServer::answer(ucp_ep_h asker, const Answer& answer, std::span<const std::byte> bytes) {
  // A PE that has died has no endpoint.
  if (asker != nullptr && answer.number != 0) {
    Answer of_this_job = answer;
    of_this_job.job = job_;
    send_queue_.send(asker, of_this_job, bytes);
  }
}

/// Without an answer, and without harm to the PE whose number it has: any program can send one.
void UcxServer::drop_foreign(const Request& request) {
  if (!std::exchange(foreign_reported_, true)) {
    log(LogLevel::kWarn,
        "shmem: %s got a message that is not of this job, as if from %s: it was not carried out, and others like it "
        "will "
        "not be. Another program can reach this PE's network ports",
        peers_.my_name().c_str(), peers_.name(request.from).c_str());
  }
}

void UcxServer::refuse(const Request& request) {
  refused_[static_cast<std::size_t>(request.from)] = true;
  peers_.note_lost(request.from, "it asked for memory that this PE does not have");
}

}  // namespace shmem
