// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_requests.hpp"

#include <algorithm>
#include <cstring>

#include "shmem/net/ucx_server.hpp"

namespace shmem {

namespace {

constexpr const char* kRefused = "it does not have the memory that it was asked for";

}  // namespace

UcxRequests::UcxRequests(UcxWorker& worker, UcxOutbox& outbox, UcxPeers& peers, UcxPatience& patience, int me,
                         bool threads)
    : outbox_(outbox), peers_(peers), patience_(patience), me_(me), threads_(threads) {
  receive_by(worker, UcxOutbox::kAnswers, on_answer, this);
}

Request UcxRequests::request_of(RequestKind kind, const FarPlace& place) const {
  Request request;
  request.kind = kind;
  request.segment = place.segment;
  request.from = me_;
  request.offset = place.offset;
  return request;
}

Request UcxRequests::change_of(const FarPlace& word, std::size_t size, AtomicOperation operation, std::uint64_t operand,
                               std::uint64_t compared) const {
  Request request = request_of(RequestKind::kAtomic, word);
  request.operation = operation;
  request.word_size = static_cast<std::uint8_t>(size);
  request.operand = operand;
  request.compared = compared;
  return request;
}

Result<void> UcxRequests::put(const FarPlace& to, const void* from, std::size_t bytes, Waits waits) {
  const Doing doing{"put", bytes, "to"};
  const std::span all(static_cast<const std::byte*>(from), bytes);
  auto held = peers_.lock();
  const auto peer = peers_.reach(to.pe, doing);
  if (!peer) return tl::make_unexpected(peer.error());
  ++(*peer)->begun;
  std::vector<Message*> under_way;
  ucs_status_t status = UCS_OK;
  for (std::size_t at = 0; at < bytes && !UCS_STATUS_IS_ERR(status); at += UcxOutbox::kLongest) {
    const auto piece = all.subspan(at, std::min(UcxOutbox::kLongest, bytes - at));
    Message* message = nullptr;
    status = outbox_.send((*peer)->endpoint, request_of(RequestKind::kPut, {to.pe, to.segment, to.offset + at}), piece,
                          waits == Waits::kYes ? &message : nullptr);
    if (status == UCS_INPROGRESS && message != nullptr) under_way.push_back(message);
  }
  if (held.owns_lock()) held.unlock();
  auto finished = under_way.empty() ? Result<void>() : finish(under_way, **peer, doing);
  return finished && UCS_STATUS_IS_ERR(status) ? peers_.error(**peer, status, doing) : finished;
}

/// Until UCX needs the caller's memory no more.
Result<void> UcxRequests::finish(const std::vector<Message*>& messages, UcxPeer& peer, const Doing& doing) {
  auto first = messages.begin();  // of those that are not done
  const auto done = [&] {
    while (first != messages.end() && (*first)->done.load(std::memory_order_acquire)) ++first;
    return first == messages.end();
  };
  const auto waited = patience_.wait(done, &peer);
  if (waited != std::errc{}) {
    // The caller gets his memory back now, therefore nothing may go any more.
    peers_.give_up(peer);
    patience_.settle(done);
  }
  ucs_status_t status = UCS_OK;
  for (Message* message : messages) {
    if (!message->done.load(std::memory_order_acquire)) continue;  // UCX may still call back: its place is taken
    if (message->status != UCS_OK) status = message->status;
    outbox_.give_back(*message);
  }
  if (waited != std::errc{}) return patience_.error(waited, peers_, peer, doing);
  if (status != UCS_OK) return peers_.error(peer, status, doing);
  return {};
}

Result<void> UcxRequests::get(void* to, const FarPlace& from, std::size_t bytes, Waits waits) {
  const Doing doing{"get", bytes, "from"};
  auto held = peers_.lock();
  const auto peer = peers_.reach(from.pe, doing);
  if (!peer) return tl::make_unexpected(peer.error());
  if (bytes == 0) return {};
  if (waits == Waits::kNo) ++(*peer)->begun;
  Request request = request_of(RequestKind::kGet, from);
  request.operand = bytes;
  const auto asked = ask(**peer, request, {static_cast<std::byte*>(to), bytes}, waits, doing);
  if (!asked) return tl::make_unexpected(asked.error());
  if (waits == Waits::kNo) return {};
  if (held.owns_lock()) held.unlock();
  const auto done = wait(**asked, doing);
  return done ? Result<void>() : tl::make_unexpected(done.error());
}

Result<std::uint64_t> UcxRequests::fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                                std::uint64_t operand, std::uint64_t compared) {
  auto held = peers_.lock();
  const auto peer = peers_.reach(word.pe, kChanging);
  if (!peer) return tl::make_unexpected(peer.error());
  const auto asked = ask(**peer, change_of(word, size, operation, operand, compared), {}, Waits::kYes, kChanging);
  if (!asked) return tl::make_unexpected(asked.error());
  if (held.owns_lock()) held.unlock();
  return wait(**asked, kChanging);
}

Result<void> UcxRequests::post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                      std::uint64_t operand) {
  auto held = peers_.lock();
  const auto peer = peers_.reach(word.pe, kChanging);
  if (!peer) return tl::make_unexpected(peer.error());
  ++(*peer)->begun;
  Message* message = nullptr;
  const auto status = outbox_.send((*peer)->endpoint, change_of(word, size, operation, operand), {}, &message);
  if (UCS_STATUS_IS_ERR(status)) return peers_.error(**peer, status, kChanging);
  if (held.owns_lock()) held.unlock();
  // Who posts faster than they go must not fill the memory.
  return status == UCS_INPROGRESS ? finish({message}, **peer, kChanging) : Result<void>();
}

Result<void> UcxRequests::quiet() {
  std::vector<Flush> flushes;
  Result<void> result = begin_flushes(flushes);
  for (const Flush& flush : flushes) {
    auto done = finish_flush(flush);
    if (!done && result) result = std::move(done);
  }
  return result;
}

Result<void> UcxRequests::begin_flushes(std::vector<Flush>& flushes) {
  Result<void> result;
  const auto held = peers_.lock();
  for (UcxPeer* peer : peers_.connected()) {
    if (peer->flushed == peer->begun) continue;
    const auto asked = peer->lost.load(std::memory_order_acquire) != nullptr
                           ? Result<Expected*>(peers_.lost_error(*peer, kQuieting))
                           : ask(*peer, request_of(RequestKind::kFlush, {}), {}, Waits::kYes, kQuieting);
    if (asked) {
      flushes.push_back({peer, *asked, peer->begun});
    } else if (result) {
      result = tl::make_unexpected(asked.error());
    }
  }
  return result;
}

Result<void> UcxRequests::finish_flush(const Flush& flush) {
  if (const auto done = wait(*flush.answer, kQuieting); !done) {
    stop(*flush.peer);
    return tl::make_unexpected(done.error());
  }
  const auto held = peers_.lock();
  flush.peer->flushed = std::max(flush.peer->flushed, flush.begun);
  return {};
}

void UcxRequests::stop(UcxPeer& peer) {
  const auto reads = [&] { return outbox_.reads_for(peer.endpoint); };
  // Where nothing does, a later quiet may find it done.
  if (!forget_started_gets(peer) && !reads()) return;
  peers_.give_up(peer);
  patience_.settle([&] { return !reads(); });
}

bool UcxRequests::forget_started_gets(const UcxPeer& peer) {
  const auto held = lock();
  bool any = false;
  for (Expected& expected : expected_.all()) {
    if (!expected.used || expected.waited_for || expected.peer != &peer) continue;
    release(expected);
    any = true;
  }
  return any;
}

Result<UcxRequests::Expected*> UcxRequests::ask(UcxPeer& peer, Request request, std::span<std::byte> to, Waits waits,
                                                const Doing& doing) {
  Expected& expected = expect(peer, to, waits == Waits::kYes);
  request.number = (std::uint64_t{expected.turn} << 32) | expected.name;
  const auto status = outbox_.send(peer.endpoint, request);
  if (!UCS_STATUS_IS_ERR(status)) return &expected;
  forget(expected);
  ++peer.begun;  // what has failed is not done at the next quiet() either
  return peers_.error(peer, status, doing);
}

Result<std::uint64_t> UcxRequests::wait(Expected& expected, const Doing& doing) {
  UcxPeer& peer = *expected.peer;
  const auto waited = patience_.wait([&expected] { return expected.done.load(std::memory_order_acquire); }, &peer);
  // Copied before the place is given back, and if it is done, UCX's callback is through with it.
  const bool good = waited == std::errc{} && !expected.refused;
  const std::uint64_t value = good ? expected.value : 0;
  forget(expected);  // what comes late goes nowhere
  if (good) return value;
  {
    const auto held = peers_.lock();
    ++peer.begun;  // as in ask()
  }
  if (waited != std::errc{}) return patience_.error(waited, peers_, peer, doing);
  return peers_.lost_error(peer, doing);
}

ucs_status_t UcxRequests::on_answer(void* requests, const void* header, std::size_t header_length, void* data,
                                    std::size_t length, const ucp_am_recv_param_t* parameters) {
  Answer answer;
  if (read_header(answer, header, header_length, *parameters)) {
    static_cast<UcxRequests*>(requests)->take_answer(answer, {static_cast<const std::byte*>(data), length});
  }
  return UCS_OK;
}

void UcxRequests::take_answer(const Answer& answer, std::span<const std::byte> bytes) {
  const auto held = lock();
  const std::size_t name = answer.number & 0xffffffff;
  if (name == 0 || name > expected_.all().size()) return;
  Expected& expected = expected_.all()[name - 1];
  if (!expected.used || expected.turn != answer.number >> 32) return;  // nobody waits for it any more
  const bool fits = bytes.size() <= expected.left && answer.value <= expected.bytes - bytes.size();
  if (answer.refused != 0 || (expected.bytes > 0 && !fits)) {
    peers_.note_lost(*expected.peer, kRefused);
    expected.refused = true;
    expected.left = 0;
  } else if (expected.bytes > 0) {
    std::memcpy(expected.to + answer.value, bytes.data(), bytes.size());
    expected.left -= bytes.size();
  }
  if (expected.left > 0) return;
  if (!expected.waited_for) return release(expected);
  expected.value = answer.value;
  expected.done.store(true, std::memory_order_release);  // pairs with wait()
}

UcxRequests::Expected& UcxRequests::expect(UcxPeer& peer, std::span<std::byte> to, bool waited_for) {
  const auto held = lock();
  Expected& expected = expected_.take();
  if (expected.name == 0) expected.name = static_cast<std::uint32_t>(expected_.all().size());
  ++expected.turn;
  expected.used = true;
  expected.waited_for = waited_for;
  expected.peer = &peer;
  expected.to = to.data();
  expected.bytes = expected.left = to.size();
  expected.refused = false;
  expected.done.store(false, std::memory_order_relaxed);
  return expected;
}

void UcxRequests::forget(Expected& expected) {
  const auto held = lock();
  release(expected);
}

void UcxRequests::release(Expected& expected) {
  expected.used = false;
  expected_.give_back(expected);
}

}  // namespace shmem
