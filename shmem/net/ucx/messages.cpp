// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/messages.hpp"

#include <fmt/format.h>

#include <new>

namespace shmem {
namespace {

constexpr std::uint64_t kAllTagBits = UcxMessages::kTags - 1;

Error unknown(std::uint64_t number) {
  return fail(std::errc::invalid_argument, fmt::format("shmem: there is no send or receive with number {}", number));
}

}  // namespace

UcxMessages::~UcxMessages() {
  for (Message& message : messages_.all()) {
    if (!message.used || message.request == nullptr) {
      continue;
    }
    if (!is_done(message)) {
      stop(message);
    }
    worker_.calls().request_free(message.request);
  }
}

Result<std::uint64_t> UcxMessages::start_send(int pe, std::uint64_t tag, const void* from, std::size_t bytes) {
  // UCX only reads it.
  return start(false, pe, {tag, kAllTagBits}, const_cast<void*>(from), bytes, nullptr);
}

Result<std::uint64_t> UcxMessages::start_receive(int pe, std::uint64_t tag, void* to, std::size_t bytes) {
  return start(true, pe, {tag, kAllTagBits}, to, bytes, nullptr);
}

Result<std::uint64_t> UcxMessages::start_receive_any(int pe, const TagPattern& tags, void* to, std::size_t bytes,
                                                     Arrival& arrival) {
  return start(true, pe, tags, to, bytes, &arrival);
}

Result<std::uint64_t> UcxMessages::start(bool receive, int pe, const TagPattern& tags, void* memory, std::size_t bytes,
                                         Arrival* arrival) {
  if (tags.tag >= kTags) {
    return fail(std::errc::invalid_argument,
                fmt::format("shmem: the tag of a message is {}; the largest is 2^48 - 1", tags.tag));
  }
  const auto held = peers_.lock();
  // Receives need an endpoint too: only that reports the loss of the sender.
  auto peer = peers_.reach(pe, receive ? OpText{"receive", bytes, "from"} : OpText{"send", bytes, "to"});
  const bool lost = !peer && peer.error().code == std::errc::connection_reset;
  if (!peer && !(receive && lost && has_come_from(pe, tags))) {
    return peer.error();
  }

  Message& message = take();
  message.receive = receive;
  message.peer = &peers_.at(pe);
  message.bytes = bytes;
  message.tags = tags;
  message.arrival = arrival;
  message.job = job_;
  message.status = UCS_OK;
  message.length = bytes;
  message.done.store(false, std::memory_order_relaxed);
  void* request = call_ucx(message, memory);
  if (UCS_PTR_IS_ERR(request)) {
    const auto status = UCS_PTR_STATUS(request);
    give_back(message);
    return peers_.error(*message.peer, status, op_of(message));
  }
  message.request = request;
  sent_bytes_.fetch_add(receive ? 0 : bytes, std::memory_order_relaxed);  // a statistic
  if (request == nullptr) {
    message.done.store(true, std::memory_order_relaxed);
  }
  return (std::uint64_t{message.turn} << 32) | message.name;
}

void* UcxMessages::call_ucx(Message& message, void* memory) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.user_data = &message;
  const std::uint64_t tag = ucx_tag(message.receive ? message.peer->pe : me_, message.tags.tag);
  if (!message.receive) {
    parameters.cb.send = on_sent;
    return worker_.calls().tag_send_nbx(message.peer->endpoint, memory, message.bytes, tag, &parameters);
  }
  parameters.cb.recv = on_received;
  // Only the callback gets the length.
  parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return worker_.calls().tag_recv_nbx(worker_.worker(), memory, message.bytes, tag, message.tags.mask | ~kAllTagBits,
                                      &parameters);
}

void UcxMessages::on_sent(void* /*request*/, ucs_status_t status, void* message) {
  auto& sent = *static_cast<Message*>(message);
  sent.status = status;
  sent.done.store(true, std::memory_order_release);  // pairs with is_done()
}

void UcxMessages::on_received(void* /*request*/, ucs_status_t status, const ucp_tag_recv_info_t* info, void* message) {
  auto& received = *static_cast<Message*>(message);
  received.status = status;
  if (status == UCS_OK) {
    received.length = info->length;
  }
  if (received.arrival != nullptr && (status == UCS_OK || status == UCS_ERR_MESSAGE_TRUNCATED)) {
    *received.arrival = {(info->sender_tag ^ received.job) & kAllTagBits, info->length};
  }
  received.done.store(true, std::memory_order_release);  // pairs with is_done()
}

UcxMessages::Message& UcxMessages::take() {
  Message& message = messages_.take();
  if (message.name == 0) {
    message.name = static_cast<std::uint32_t>(messages_.all().size());
  }
  message.used = true;
  return message;
}

void UcxMessages::give_back(Message& message) {
  message.used = false;
  message.request = nullptr;
  ++message.turn;
  messages_.give_back(message);
}

UcxMessages::Message* UcxMessages::find(std::uint64_t number) {
  const auto held = peers_.lock();
  const std::size_t name = number & 0xffffffff;
  if (name != 0 && name <= messages_.all().size()) {
    Message& message = messages_.all()[name - 1];
    if (message.used && message.turn == number >> 32) {
      return &message;
    }
  }
  return nullptr;
}

/// As the policy says. It is stopped if it is not done.
std::errc UcxMessages::wait_or_stop(Message& message, std::optional<std::chrono::nanoseconds> limit) {
  try {
    const auto waited = wait_policy_.wait([&message] { return is_done(message); }, message.peer, limit,
                                          [&] { return is_interrupted(message); });
    if (waited != std::errc{}) {
      stop(message);
    }
    return waited;
  } catch (const std::bad_alloc&) {
    stop(message);
    release(message);
    throw;
  }
}

Result<void> UcxMessages::wait(std::uint64_t number, std::optional<std::chrono::nanoseconds> limit) {
  Message* const found = find(number);
  if (found == nullptr) {
    return unknown(number);
  }
  Message& message = *found;
  const auto waited = wait_or_stop(message, limit);
  // The message may have arrived at the last moment.
  if (waited == std::errc{} || (is_done(message) && message.status == UCS_OK)) {
    auto result = outcome(message);
    release(message);
    return result;
  }
  const UcxPeer& peer = *message.peer;
  const OpText what = op_of(message);
  release(message);
  return wait_policy_.error(waited, peers_, peer, what, limit);
}

Result<bool> UcxMessages::test(std::uint64_t number) {
  Message* const found = find(number);
  if (found == nullptr) {
    return unknown(number);
  }
  Message& message = *found;
  worker_.progress();
  if (!is_done(message)) {
    const bool interrupted = is_interrupted(message);
    if (!interrupted && message.peer->lost.load(std::memory_order_acquire) == nullptr) {
      return false;
    }
    stop(message);
    // UCX may leave a receive whose bytes were on their way as it is: it has not succeeded.
    if (!is_done(message) || (interrupted && message.status != UCS_OK)) {
      const UcxPeer& peer = *message.peer;
      const OpText what = op_of(message);
      release(message);
      return wait_policy_.error(interrupted ? std::errc::owner_dead : std::errc::connection_reset, peers_, peer, what);
    }
  }
  const auto result = outcome(message);
  release(message);
  if (!result) {
    return result.error();
  }
  return true;
}

void UcxMessages::cancel(std::uint64_t number) {
  Message* const found = find(number);
  if (found == nullptr) {
    return;
  }
  if (!is_done(*found)) {
    stop(*found);
  }
  release(*found);
}

bool UcxMessages::has_come(const TagPattern& pattern) const {
  ucp_tag_recv_info_t info{};
  const std::uint64_t mask = pattern.mask & (kTags - 1);  // from any sender
  return worker_.calls().tag_probe_nb(worker_.worker(), pattern.tag ^ job_, mask, 0, &info) != nullptr;
}

bool UcxMessages::has_come_from(int pe, const TagPattern& tags) const {
  ucp_tag_recv_info_t info{};
  return worker_.calls().tag_probe_nb(worker_.worker(), ucx_tag(pe, tags.tag), tags.mask | ~kAllTagBits, 0, &info) !=
         nullptr;
}

bool UcxMessages::is_interrupted(const Message& message) const {
  const auto pattern = interrupts_ ? interrupts_(message.tags.tag) : std::nullopt;
  return pattern && has_come(*pattern);
}

Result<void> UcxMessages::outcome(const Message& message) const {
  if (message.status == UCS_OK && message.length == message.bytes) {
    return {};
  }
  const std::string whose = fmt::format("the message with tag {} from {} to {}", message.tags.tag,
                                        peers_.name(message.peer->pe), peers_.my_name());
  if (message.status == UCS_ERR_MESSAGE_TRUNCATED) {
    return fail(std::errc::message_size,
                fmt::format("shmem: {} is longer than the {} bytes that are expected", whose, message.bytes));
  }
  if (message.status == UCS_OK) {
    return fail(std::errc::message_size,
                fmt::format("shmem: {} has {} bytes, not {}", whose, message.length, message.bytes));
  }
  return peers_.error(*message.peer, message.status, op_of(message));
}

void UcxMessages::release(Message& message) {
  const auto held = peers_.lock();
  // A message that UCX may still finish keeps its place for good.
  if (!is_done(message)) {
    ++message.turn;
    return;
  }
  if (message.request != nullptr) {
    worker_.calls().request_free(message.request);
  }
  give_back(message);
}

void UcxMessages::stop(Message& message) {
  if (message.receive) {
    worker_.calls().request_cancel(worker_.worker(), message.request);
  }
  // A cancelled receive ends soon. A receive whose bytes are on their way, and a send, end with the endpoint.
  for (int look = 0; look < 100 && !is_done(message); ++look) {
    worker_.progress();
  }
  if (is_done(message)) {
    return;
  }
  peers_.give_up(*message.peer);
  wait_policy_.settle([&message] { return is_done(message); });
}

OpText UcxMessages::op_of(const Message& message) {
  return message.receive ? OpText{"receive", message.bytes, "from"} : OpText{"send", message.bytes, "to"};
}

}  // namespace shmem
