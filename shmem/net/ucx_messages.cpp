// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_messages.hpp"

namespace shmem {

UcxMessages::~UcxMessages() {
  for (Message& message : places_) {
    if (!message.used || message.request == nullptr) continue;
    if (!is_done(message)) stop(message);
    worker_.calls().request_free(message.request);
  }
}

Result<std::uint64_t> UcxMessages::start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) {
  // UCX reads it only.
  return start(false, pe, tag, const_cast<void*>(from), bytes);
}

Result<std::uint64_t> UcxMessages::start_receive(int pe, std::uint64_t tag, void* to, std::size_t bytes) {
  return start(true, pe, tag, to, bytes);
}

Result<std::uint64_t> UcxMessages::start(bool receive, int pe, std::uint64_t tag, void* memory, std::size_t bytes) {
  if (tag >= kTags) {
    return fail(std::errc::invalid_argument,
                "shmem: the tag of a message is " + std::to_string(tag) + "; the largest is 2^48 - 1");
  }
  const auto held = peers_.lock();
  // A receive too: only an endpoint tells us that the sender is lost.
  auto peer = peers_.reach(pe, receive ? Doing{"receive", bytes, "from"} : Doing{"send", bytes, "to"});
  if (!peer) return tl::make_unexpected(peer.error());

  Message& message = take_place();
  message.receive = receive;
  message.peer = *peer;
  message.bytes = bytes;
  message.tag = tag;
  message.status = UCS_OK;
  message.length = bytes;
  message.done.store(false, std::memory_order_relaxed);
  void* request = call_ucx(message, memory);
  if (UCS_PTR_IS_ERR(request)) {
    const auto status = UCS_PTR_STATUS(request);
    auto error = peers_.error(**peer, status, doing(message));
    give_back(message);
    return error;
  }
  message.request = request;
  if (request == nullptr) message.done.store(true, std::memory_order_relaxed);
  return (std::uint64_t{message.turn} << 32) | message.place;
}

void* UcxMessages::call_ucx(Message& message, void* memory) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.user_data = &message;
  const auto sender = static_cast<std::uint64_t>(message.receive ? message.peer->pe : me_);
  const std::uint64_t tag = (sender << 48) | message.tag;
  if (!message.receive) {
    parameters.cb.send = on_sent;
    return worker_.calls().tag_send_nbx(message.peer->endpoint, memory, message.bytes, tag, &parameters);
  }
  parameters.cb.recv = on_received;
  // The callback alone tells the length.
  parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return worker_.calls().tag_recv_nbx(worker_.worker(), memory, message.bytes, tag, ~std::uint64_t{0}, &parameters);
}

void UcxMessages::on_sent(void* /*request*/, ucs_status_t status, void* message) {
  auto& sent = *static_cast<Message*>(message);
  sent.status = status;
  sent.done.store(true, std::memory_order_release);  // pairs with is_done()
}

void UcxMessages::on_received(void* /*request*/, ucs_status_t status, const ucp_tag_recv_info_t* info, void* message) {
  auto& received = *static_cast<Message*>(message);
  received.status = status;
  if (status == UCS_OK) received.length = info->length;
  received.done.store(true, std::memory_order_release);  // pairs with is_done()
}

UcxMessages::Message& UcxMessages::take_place() {
  if (free_.empty()) {
    Message& made = places_.emplace_back();
    made.place = static_cast<std::uint32_t>(places_.size() - 1);
    free_.push_back(&made);
  }
  Message& message = *free_.back();
  free_.pop_back();
  message.used = true;
  return message;
}

void UcxMessages::give_back(Message& message) {
  message.used = false;
  message.request = nullptr;
  ++message.turn;
  free_.push_back(&message);
}

Result<UcxMessages::Message*> UcxMessages::find(std::uint64_t number) {
  const auto held = peers_.lock();
  const std::size_t place = number & 0xffffffff;
  if (place < places_.size() && places_[place].used && places_[place].turn == number >> 32) return &places_[place];
  return fail(std::errc::invalid_argument, "shmem: there is no send or receive with number " + std::to_string(number));
}

Result<void> UcxMessages::wait(std::uint64_t number, std::optional<std::chrono::nanoseconds> limit) {
  const auto found = find(number);
  if (!found) return tl::make_unexpected(found.error());
  Message& message = **found;
  const auto waited = patience_.wait([&message] { return is_done(message); }, message.peer, limit);
  if (waited != std::errc{}) stop(message);
  // It may have come at the last moment.
  if (waited == std::errc{} || (is_done(message) && message.status == UCS_OK)) {
    auto result = outcome(message);
    release(message);
    return result;
  }
  const UcxPeer& peer = *message.peer;
  const Doing what = doing(message);
  release(message);
  return patience_.error(waited, peers_, peer, what, limit);
}

Result<bool> UcxMessages::test(std::uint64_t number) {
  const auto found = find(number);
  if (!found) return tl::make_unexpected(found.error());
  Message& message = **found;
  worker_.progress();
  if (!is_done(message)) {
    if (message.peer->lost.load(std::memory_order_acquire) == nullptr) return false;
    stop(message);
  }
  const auto result = outcome(message);
  release(message);
  if (!result) return tl::make_unexpected(result.error());
  return true;
}

void UcxMessages::cancel(std::uint64_t number) {
  const auto found = find(number);
  if (!found) return;
  if (!is_done(**found)) stop(**found);
  release(**found);
}

Result<void> UcxMessages::outcome(const Message& message) const {
  if (message.status == UCS_OK && message.length == message.bytes) return {};
  const std::string whose = "the message with tag " + std::to_string(message.tag) + " from " +
                            peers_.name(message.peer->pe) + " to " + peers_.my_name();
  if (message.status == UCS_ERR_MESSAGE_TRUNCATED) {
    return fail(std::errc::message_size, "shmem: " + whose + " is longer than the " + std::to_string(message.bytes) +
                                             " bytes that are expected");
  }
  if (message.status == UCS_OK) {
    return fail(std::errc::message_size, "shmem: " + whose + " has " + std::to_string(message.length) + " bytes, not " +
                                             std::to_string(message.bytes));
  }
  return peers_.error(*message.peer, message.status, doing(message));
}

void UcxMessages::release(Message& message) {
  const auto held = peers_.lock();
  // What UCX may still finish keeps its place for ever.
  if (!is_done(message)) {
    ++message.turn;
    return;
  }
  if (message.request != nullptr) worker_.calls().request_free(message.request);
  give_back(message);
}

void UcxMessages::stop(Message& message) {
  if (message.receive) worker_.calls().request_cancel(worker_.worker(), message.request);
  // A cancelled receive is done at the next look. One whose bytes are on their way, and a send, end with the endpoint.
  for (int look = 0; look < 100 && !is_done(message); ++look) worker_.progress();
  if (is_done(message)) return;
  peers_.give_up(*message.peer);
  patience_.settle([&message] { return is_done(message); });
}

Doing UcxMessages::doing(const Message& message) {
  return message.receive ? Doing{"receive", message.bytes, "from"} : Doing{"send", message.bytes, "to"};
}

}  // namespace shmem
