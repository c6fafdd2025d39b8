// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/send_queue.hpp"

#include <algorithm>

namespace shmem {

ucs_status_t UcxSendQueue::send(ucp_ep_h to, const Request& request, std::span<const std::byte> bytes,
                                Message** under_way) {
  Message& message = take(to, !bytes.empty(), under_way != nullptr);
  message.request = request;
  const auto status = call_ucx(to, kRequests, std::as_bytes(std::span(&message.request, 1)), bytes, message);
  if (under_way != nullptr) {
    *under_way = &message;
  }
  return status;
}

ucs_status_t UcxSendQueue::send(ucp_ep_h to, const Answer& answer, std::span<const std::byte> bytes) {
  Message& message = take(to, !bytes.empty(), false);
  message.answer = answer;
  return call_ucx(to, kAnswers, std::as_bytes(std::span(&message.answer, 1)), bytes, message);
}

ucs_status_t UcxSendQueue::call_ucx(ucp_ep_h to, unsigned number, std::span<const std::byte> header,
                                    std::span<const std::byte> bytes, Message& message) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.flags = UCP_AM_SEND_FLAG_EAGER;
  if (number == kRequests && message.request.number != 0) {
    parameters.flags |= UCP_AM_SEND_FLAG_REPLY;
  }
  parameters.cb.send = on_sent;
  parameters.user_data = &message;
  void* request =
      worker_.calls().am_send_nbx(to, number, header.data(), header.size(), bytes.data(), bytes.size(), &parameters);
  if (UCS_PTR_IS_PTR(request)) {
    return UCS_INPROGRESS;
  }
  give_back(message);
  return UCS_PTR_STATUS(request);
}

void UcxSendQueue::on_sent(void* request, ucs_status_t status, void* message) {
  auto& sent = *static_cast<Message*>(message);
  UcxSendQueue& box = *sent.box;
  box.worker_.calls().request_free(request);
  if (!sent.waited_for) {
    return box.give_back(sent);
  }
  sent.status = status;
  sent.done.store(true, std::memory_order_release);  // pairs with UcxRequests::finish()
}

UcxSendQueue::Message& UcxSendQueue::take(ucp_ep_h to, bool reads, bool waited_for) {
  const std::scoped_lock held(mutex_);
  Message& message = messages_.take();
  message.box = this;
  message.to = to;
  message.reads = reads;
  message.waited_for = waited_for;
  message.status = UCS_OK;
  message.done.store(false, std::memory_order_relaxed);
  return message;
}

void UcxSendQueue::give_back(Message& message) {
  const std::scoped_lock held(mutex_);
  message.reads = false;
  messages_.give_back(message);
}

bool UcxSendQueue::reads_for(ucp_ep_h to) {
  const std::scoped_lock held(mutex_);
  const auto& all = messages_.all();
  return std::any_of(all.begin(), all.end(), [to](const Message& one) { return one.reads && one.to == to; });
}

}  // namespace shmem
