// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/requests.hpp"

#include <algorithm>

#include "shmem/net/ucx/server.hpp"

namespace shmem {

namespace {

constexpr const char* kRefused = "it does not have the memory that this PE asked for";
constexpr const char* kDisordered =
    "this PE's requests came to it in another order than they were sent, or not all of them (do variables UCX_* spread "
    "them over several paths?)";

}  // namespace

UcxRequests::UcxRequests(UcxWorker& worker, UcxSendQueue& send_queue, UcxPeers& peers, UcxWaitPolicy& wait_policy,
                         int me, std::uint64_t job)
    : send_queue_(send_queue),
      peers_(peers),
      wait_policy_(wait_policy),
      me_(me),
      job_(job),
      answers_(job,
               [this](int pe, Refusal why) { peers_.note_lost(pe, why == Refusal::kOrder ? kDisordered : kRefused); }) {
  receive_by(worker, UcxSendQueue::kAnswers, on_answer, this);
}

Request UcxRequests::request_of(RequestKind kind, const RemotePlace& place) const {
  return {.kind = kind,
          .segment = place.segment,
          .from = static_cast<std::uint16_t>(me_),
          .offset = place.offset,
          .job = job_};
}

ucs_status_t UcxRequests::send(UcxPeer& peer, Request request, std::span<const std::byte> bytes, Message** under_way) {
  request.sequence = peer.requests;
  const auto status = send_queue_.send(peer.endpoint, request, bytes, under_way);
  if (!UCS_STATUS_IS_ERR(status)) {
    ++peer.requests;
  }
  return status;
}

Request UcxRequests::change_of(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                               std::uint64_t operand, std::uint64_t compared) const {
  Request request = request_of(RequestKind::kAtomic, word);
  request.operation = operation;
  request.word_size = static_cast<std::uint8_t>(size);
  request.operand = operand;
  request.compared = compared;
  return request;
}

Result<void> UcxRequests::put(const RemotePlace& to, const void* from, std::size_t bytes, Waits waits) {
  const OpText op{"put", bytes, "to"};
  const std::span all(static_cast<const std::byte*>(from), bytes);
  auto held = peers_.lock();
  const auto peer = peers_.reach(to.pe, op);
  if (!peer) {
    return peer.error();
  }
  ++(*peer)->begun;
  std::vector<Message*> under_way;
  ucs_status_t status = UCS_OK;
  for (std::size_t at = 0; at < bytes && !UCS_STATUS_IS_ERR(status); at += UcxSendQueue::kLongest) {
    const auto piece = all.subspan(at, std::min(UcxSendQueue::kLongest, bytes - at));
    Message* message = nullptr;
    status = send(**peer, request_of(RequestKind::kPut, {to.pe, to.segment, to.offset + at}), piece,
                  waits == Waits::kYes ? &message : nullptr);
    if (status == UCS_INPROGRESS && message != nullptr) {
      under_way.push_back(message);
    }
  }
  held.unlock();
  auto finished = under_way.empty() ? Result<void>() : finish(under_way, **peer, op);
  return finished && UCS_STATUS_IS_ERR(status) ? peers_.error(**peer, status, op) : finished;
}

/// Waits until UCX no longer needs the caller's memory.
Result<void> UcxRequests::finish(const std::vector<Message*>& messages, UcxPeer& peer, const OpText& op) {
  auto first = messages.begin();  // the first one that may not be done
  const auto done = [&] {
    while (first != messages.end() && (*first)->done.load(std::memory_order_acquire)) {
      ++first;
    }
    return first == messages.end();
  };
  const auto waited = wait_policy_.wait(done, &peer);
  if (waited != std::errc{}) {
    // The caller gets its memory back now, so nothing may be sent any more.
    peers_.give_up(peer);
    wait_policy_.settle(done);
  }
  ucs_status_t status = UCS_OK;
  for (Message* message : messages) {
    if (!message->done.load(std::memory_order_acquire)) {
      continue;  // UCX may still call back: the message keeps its place
    }
    if (message->status != UCS_OK) {
      status = message->status;
    }
    send_queue_.give_back(*message);
  }
  if (waited != std::errc{}) {
    return wait_policy_.error(waited, peers_, peer, op);
  }
  if (status != UCS_OK) {
    return peers_.error(peer, status, op);
  }
  return {};
}

Result<void> UcxRequests::get(void* to, const RemotePlace& from, std::size_t bytes, Waits waits) {
  const OpText op{"get", bytes, "from"};
  auto held = peers_.lock();
  const auto peer = peers_.reach(from.pe, op);
  if (!peer) {
    return peer.error();
  }
  if (bytes == 0) {
    return {};
  }
  if (waits == Waits::kNo) {
    ++(*peer)->begun;
  }
  Request request = request_of(RequestKind::kGet, from);
  request.operand = bytes;
  const auto asked = ask(**peer, request, {static_cast<std::byte*>(to), bytes}, waits, op);
  if (!asked) {
    return asked.error();
  }
  if (waits == Waits::kNo) {
    return {};
  }
  held.unlock();
  const auto done = wait(**peer, **asked, op);
  return done ? Result<void>() : done.error();
}

Result<std::uint64_t> UcxRequests::fetch_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                                std::uint64_t operand, std::uint64_t compared) {
  auto held = peers_.lock();
  const auto peer = peers_.reach(word.pe, kChanging);
  if (!peer) {
    return peer.error();
  }
  const auto asked = ask(**peer, change_of(word, size, operation, operand, compared), {}, Waits::kYes, kChanging);
  if (!asked) {
    return asked.error();
  }
  held.unlock();
  return wait(**peer, **asked, kChanging);
}

Result<void> UcxRequests::post_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                      std::uint64_t operand) {
  auto held = peers_.lock();
  const auto peer = peers_.reach(word.pe, kChanging);
  if (!peer) {
    return peer.error();
  }
  ++(*peer)->begun;
  Message* message = nullptr;
  const auto status = send(**peer, change_of(word, size, operation, operand), {}, &message);
  if (UCS_STATUS_IS_ERR(status)) {
    return peers_.error(**peer, status, kChanging);
  }
  held.unlock();
  // Waiting keeps a PE that posts faster than the network sends from filling its memory.
  return status == UCS_INPROGRESS ? finish({message}, **peer, kChanging) : Result<void>();
}

Result<void> UcxRequests::quiet(PeChoice pes) {
  return flush_peers(
      peers_, pes,
      [this](UcxPeer& peer) { return ask(peer, request_of(RequestKind::kFlush, {}), {}, Waits::kYes, kQuieting); },
      [this](UcxPeer& peer, Expected* answer) -> Result<void> {
        const auto done = wait(peer, *answer, kQuieting);
        if (done) {
          return {};
        }
        stop(peer);
        return done.error();
      });
}

void UcxRequests::stop(UcxPeer& peer) {
  const auto reads = [&] { return send_queue_.reads_for(peer.endpoint); };
  // If nothing does, a later quiet may succeed.
  if (!answers_.forget_started(peer.pe) && !reads()) {
    return;
  }
  peers_.give_up(peer);
  wait_policy_.settle([&] { return !reads(); });
}

Result<UcxRequests::Expected*> UcxRequests::ask(UcxPeer& peer, Request request, std::span<std::byte> to, Waits waits,
                                                const OpText& op) {
  Expected& expected = answers_.expect(peer.pe, to, waits == Waits::kYes);
  request.number = expected.number;
  const auto status = send(peer, request);
  if (!UCS_STATUS_IS_ERR(status)) {
    return &expected;
  }
  answers_.forget(expected);
  ++peer.begun;  // so that the next quiet() fails too
  return peers_.error(peer, status, op);
}

Result<std::uint64_t> UcxRequests::wait(UcxPeer& peer, Expected& expected, const OpText& op) {
  const auto waited = wait_policy_.wait([&expected] { return expected.done.load(std::memory_order_acquire); }, &peer);
  // Copied before the place is given back. If `done`, UCX's callback no longer uses it.
  const bool good = waited == std::errc{} && !expected.refused;
  const std::uint64_t value = good ? expected.value : 0;
  answers_.forget(expected);  // a late answer is dropped
  if (good) {
    return value;
  }
  {
    const auto held = peers_.lock();
    ++peer.begun;  // as in ask()
  }
  if (waited != std::errc{}) {
    return wait_policy_.error(waited, peers_, peer, op);
  }
  return peers_.lost_error(peer, op);
}

ucs_status_t UcxRequests::on_answer(void* requests, const void* header, std::size_t header_length, void* data,
                                    std::size_t length, const ucp_am_recv_param_t* parameters) {
  if (is_whole(*parameters)) {
    static_cast<UcxRequests*>(requests)->answers_.take(bytes_of(header, header_length), bytes_of(data, length));
  }
  return UCS_OK;
}

}  // namespace shmem
