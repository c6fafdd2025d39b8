// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_direct.hpp"

#include <cstring>

namespace shmem {

namespace {

constexpr ucp_request_param_t kNoParameters{};

ucp_atomic_op_t ucx_operation(AtomicOperation operation) {
  switch (operation) {
    case AtomicOperation::kAdd:
    case AtomicOperation::kFetch:  // adds 0
      return UCP_ATOMIC_OP_ADD;
    case AtomicOperation::kAnd:
      return UCP_ATOMIC_OP_AND;
    case AtomicOperation::kOr:
      return UCP_ATOMIC_OP_OR;
    case AtomicOperation::kXor:
      return UCP_ATOMIC_OP_XOR;
    case AtomicOperation::kSwap:
    case AtomicOperation::kSet:
      return UCP_ATOMIC_OP_SWAP;
    case AtomicOperation::kCompareSwap:
      return UCP_ATOMIC_OP_CSWAP;
  }
  return UCP_ATOMIC_OP_LAST;
}

/// The low bytes of `value`, as a word of `size` bytes.
std::uint64_t word_of(std::uint64_t value, std::size_t size) {
  const auto half = static_cast<std::uint32_t>(value);
  std::uint64_t word = value;
  if (size == sizeof half) std::memcpy(&word, &half, sizeof half);
  return word;
}

std::uint64_t value_of(std::uint64_t word, std::size_t size) {
  std::uint32_t half = 0;
  std::memcpy(&half, &word, sizeof half);
  return size == sizeof half ? half : word;
}

}  // namespace

Result<UcxDirect::Started> UcxDirect::begin_put(const FarPlace& to, const void* from, std::size_t bytes) {
  const auto held = peers_.lock();
  const auto peer = peers_.reach(to.pe, {"put", bytes, "to"});
  if (!peer) return tl::make_unexpected(peer.error());
  ++(*peer)->begun;
  return Started{*peer, worker_.calls().put_nbx((*peer)->endpoint, from, bytes, peers_.address(to),
                                                (*peer)->keys[static_cast<std::size_t>(to.segment)], &kNoParameters)};
}

Result<UcxDirect::Started> UcxDirect::begin_get(void* to, const FarPlace& from, std::size_t bytes) {
  const auto held = peers_.lock();
  const auto peer = peers_.reach(from.pe, {"get", bytes, "from"});
  if (!peer) return tl::make_unexpected(peer.error());
  ++(*peer)->begun;
  return Started{*peer, worker_.calls().get_nbx((*peer)->endpoint, to, bytes, peers_.address(from),
                                                (*peer)->keys[static_cast<std::size_t>(from.segment)], &kNoParameters)};
}

/// Until UCX needs the caller's memory no more.
Result<void> UcxDirect::finish(Started& started, const Doing& doing) {
  if (started.request == nullptr) return {};
  if (UCS_PTR_IS_ERR(started.request)) return peers_.error(*started.peer, UCS_PTR_STATUS(started.request), doing);
  const UcxCalls& calls = worker_.calls();
  const auto done = [&] { return calls.request_check_status(started.request) != UCS_INPROGRESS; };
  const auto waited = patience_.wait(done, started.peer);
  if (waited != std::errc{}) {
    // The caller gets his memory back now, therefore nothing may come or go any more.
    peers_.give_up(*started.peer);
    patience_.settle(done);
  }
  const auto status = calls.request_check_status(started.request);
  started.given_up = status == UCS_INPROGRESS;
  calls.request_free(started.request);
  if (waited == std::errc::timed_out || waited == std::errc::operation_canceled) {
    return patience_.error(waited, peers_, *started.peer, doing);
  }
  if (status != UCS_OK) return peers_.error(*started.peer, status, doing);
  return {};
}

/// UCX goes on without us; quiet() hears of it.
Result<void> UcxDirect::leave(const Started& started, const Doing& doing) {
  if (UCS_PTR_IS_ERR(started.request)) return peers_.error(*started.peer, UCS_PTR_STATUS(started.request), doing);
  if (started.request != nullptr) worker_.calls().request_free(started.request);
  return {};
}

Result<void> UcxDirect::put(const FarPlace& to, const void* from, std::size_t bytes, Waits waits) {
  const Doing doing{"put", bytes, "to"};
  auto started = begin_put(to, from, bytes);
  if (!started) return tl::make_unexpected(started.error());
  return waits == Waits::kYes ? finish(*started, doing) : leave(*started, doing);
}

Result<void> UcxDirect::get(void* to, const FarPlace& from, std::size_t bytes, Waits waits) {
  const Doing doing{"get", bytes, "from"};
  auto started = begin_get(to, from, bytes);
  if (!started) return tl::make_unexpected(started.error());
  return waits == Waits::kYes ? finish(*started, doing) : leave(*started, doing);
}

Result<UcxDirect::Started> UcxDirect::begin_atomic(const FarPlace& word, std::size_t size, ucp_atomic_op_t operation,
                                                   const void* operand, void* answer) {
  const auto held = peers_.lock();
  const auto peer = peers_.reach(word.pe, kChanging);
  if (!peer) return tl::make_unexpected(peer.error());
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
  parameters.datatype = ucp_dt_make_contig(size);
  if (answer != nullptr) {
    parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    parameters.reply_buffer = answer;
  }
  ++(*peer)->begun;
  return Started{*peer,
                 worker_.calls().atomic_op_nbx((*peer)->endpoint, operation, operand, 1, peers_.address(word),
                                               (*peer)->keys[static_cast<std::size_t>(word.segment)], &parameters)};
}

Result<std::uint64_t> UcxDirect::fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                              std::uint64_t operand, std::uint64_t compared) {
  const bool compares = operation == AtomicOperation::kCompareSwap;
  Swap* swap = nullptr;
  {
    const auto held = peers_.lock();
    swap = &take_swap();
  }
  // UCX compares with its operand, and takes what is to be stored from where the answer will be.
  swap->operand = word_of(operation == AtomicOperation::kFetch ? 0 : (compares ? compared : operand), size);
  swap->answer = word_of(operand, size);
  auto started = begin_atomic(word, size, ucx_operation(operation), &swap->operand, &swap->answer);
  Result<void> done = started ? finish(*started, kChanging) : tl::make_unexpected(started.error());
  const std::uint64_t before = value_of(swap->answer, size);
  if (!started || !started->given_up) swap->used.store(false, std::memory_order_release);  // pairs with take_swap()
  if (!done) return tl::make_unexpected(done.error());
  return before;
}

Result<void> UcxDirect::post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                    std::uint64_t operand) {
  const auto code = ucx_operation(operation);
  if (code == UCP_ATOMIC_OP_SWAP) return begin_swap(word, size, operand);
  const std::uint64_t first = word_of(operand, size);
  auto started = begin_atomic(word, size, code, &first, nullptr);
  return started ? finish(*started, kChanging) : tl::make_unexpected(started.error());
}

/// UCX has no store that is atomic to its other operations: a put may write a word twice.
Result<void> UcxDirect::begin_swap(const FarPlace& word, std::size_t size, std::uint64_t operand) {
  const auto held = peers_.lock();
  const auto peer = peers_.reach(word.pe, kChanging);
  if (!peer) return tl::make_unexpected(peer.error());
  Swap& swap = take_swap();
  swap.operand = word_of(operand, size);
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER | UCP_OP_ATTR_FIELD_CALLBACK |
                            UCP_OP_ATTR_FIELD_USER_DATA;
  parameters.datatype = ucp_dt_make_contig(size);
  parameters.reply_buffer = &swap.answer;
  parameters.user_data = &swap;
  parameters.cb.send = [](void* request, ucs_status_t /*quiet() hears of it*/, void* data) {
    auto& done = *static_cast<Swap*>(data);
    done.calls->request_free(request);
    done.used.store(false, std::memory_order_release);  // pairs with take_swap()
  };
  ++(*peer)->begun;
  void* request =
      worker_.calls().atomic_op_nbx((*peer)->endpoint, UCP_ATOMIC_OP_SWAP, &swap.operand, 1, peers_.address(word),
                                    (*peer)->keys[static_cast<std::size_t>(word.segment)], &parameters);
  if (UCS_PTR_IS_PTR(request)) return {};
  swap.used.store(false, std::memory_order_relaxed);
  if (request == nullptr) return {};
  return peers_.error(**peer, UCS_PTR_STATUS(request), kChanging);
}

/// They come back in about the order in which they went: the next is free, or all are in use.
UcxDirect::Swap& UcxDirect::take_swap() {
  if (next_swap_ >= swaps_.size()) next_swap_ = 0;
  // Acquire: UCX has written the answer of its last use.
  if (swaps_.empty() || swaps_[next_swap_].used.load(std::memory_order_acquire)) {
    swaps_.emplace_back().calls = &worker_.calls();
    next_swap_ = swaps_.size() - 1;
  }
  Swap& swap = swaps_[next_swap_++];
  swap.used.store(true, std::memory_order_relaxed);
  return swap;
}

Result<void> UcxDirect::quiet() {
  std::vector<Flush> flushes;
  Result<void> result = begin_flushes(flushes);
  for (const Flush& flush : flushes) {
    auto done = finish_flush(flush);
    if (!done && result) result = std::move(done);
  }
  return result;
}

Result<void> UcxDirect::begin_flushes(std::vector<Flush>& flushes) {
  Result<void> result;
  const auto held = peers_.lock();
  for (UcxPeer* peer : peers_.connected()) {
    if (peer->flushed == peer->begun) continue;
    if (peer->lost.load(std::memory_order_acquire) != nullptr) {
      if (result) result = peers_.lost_error(*peer, kQuieting);
      continue;
    }
    flushes.push_back({peer, worker_.calls().ep_flush_nbx(peer->endpoint, &kNoParameters), peer->begun});
  }
  return result;
}

Result<void> UcxDirect::finish_flush(const Flush& flush) {
  const UcxCalls& calls = worker_.calls();
  ucs_status_t status = UCS_PTR_IS_ERR(flush.request) ? UCS_PTR_STATUS(flush.request) : UCS_OK;
  if (UCS_PTR_IS_PTR(flush.request)) {
    const auto waited =
        patience_.wait([&] { return calls.request_check_status(flush.request) != UCS_INPROGRESS; }, flush.peer);
    status = calls.request_check_status(flush.request);
    calls.request_free(flush.request);
    if (waited == std::errc::timed_out || waited == std::errc::operation_canceled) {
      // What was started may still be under way, and its bytes are the caller's again.
      peers_.give_up(*flush.peer);
      for (int look = 0; look < 100; ++look) worker_.progress();
      return patience_.error(waited, peers_, *flush.peer, kQuieting);
    }
  }
  // A flush of a lost peer may succeed: there is nothing left to wait for.
  if (flush.peer->lost.load(std::memory_order_acquire) != nullptr) return peers_.lost_error(*flush.peer, kQuieting);
  if (status != UCS_OK) return peers_.error(*flush.peer, status, kQuieting);
  const auto held = peers_.lock();
  flush.peer->flushed = std::max(flush.peer->flushed, flush.begun);
  return {};
}

}  // namespace shmem
