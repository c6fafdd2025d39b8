// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/direct.hpp"

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
  if (size == sizeof half) {
    std::memcpy(&word, &half, sizeof half);
  }
  return word;
}

std::uint64_t value_of(std::uint64_t word, std::size_t size) {
  std::uint32_t half = 0;
  std::memcpy(&half, &word, sizeof half);
  return size == sizeof half ? half : word;
}

}  // namespace

template <typename Call>
Result<UcxDirect::Started> UcxDirect::begin(const RemotePlace& place, const OpText& op, Call call) {
  const auto held = peers_.lock();
  const auto peer = peers_.reach(place.pe, op);
  if (!peer) {
    return peer.error();
  }
  const auto key = peers_.key(**peer, place, op);
  if (!key) {
    return key.error();
  }
  ++(*peer)->begun;
  return Started{*peer, call((*peer)->endpoint, peers_.address(place), *key)};
}

/// Waits until UCX no longer needs the caller's memory.
Result<void> UcxDirect::finish(Started& started, const OpText& op) {
  if (started.request == nullptr) {
    return {};
  }
  if (UCS_PTR_IS_ERR(started.request)) {
    return peers_.error(*started.peer, UCS_PTR_STATUS(started.request), op);
  }
  const UcxCalls& calls = worker_.calls();
  const auto done = [&] { return calls.request_check_status(started.request) != UCS_INPROGRESS; };
  const auto waited = wait_policy_.wait(done, started.peer);
  if (waited != std::errc{}) {
    // The caller gets its memory back now, so nothing may be transferred any more.
    peers_.give_up(*started.peer);
    wait_policy_.settle(done);
  }
  const auto status = calls.request_check_status(started.request);
  started.given_up = status == UCS_INPROGRESS;
  calls.request_free(started.request);
  if (waited == std::errc::timed_out || waited == std::errc::operation_canceled) {
    return wait_policy_.error(waited, peers_, *started.peer, op);
  }
  if (status != UCS_OK) {
    return peers_.error(*started.peer, status, op);
  }
  return {};
}

/// UCX goes on in the background, and calls back if it was asked to; quiet() reports the outcome.
Result<void> UcxDirect::leave(const Started& started, const OpText& op) {
  if (UCS_PTR_IS_ERR(started.request)) {
    return peers_.error(*started.peer, UCS_PTR_STATUS(started.request), op);
  }
  return {};
}

UcxDirect::Left& UcxDirect::left_of(int pe) {
  while (left_.size() <= static_cast<std::size_t>(pe)) {
    left_.emplace_back().calls = &worker_.calls();
  }
  return left_[static_cast<std::size_t>(pe)];
}

template <typename Call>
Result<void> UcxDirect::move(const RemotePlace& place, const OpText& op, Waits waits, Call call) {
  ucp_request_param_t parameters{};
  auto started = begin(place, op, [&](ucp_ep_h endpoint, std::uint64_t address, ucp_rkey_h key) {
    if (waits == Waits::kYes) {
      return call(endpoint, address, key, &parameters);
    }
    Left& left = left_of(place.pe);
    left.count.fetch_add(1, std::memory_order_relaxed);  // UCX may call back before it returns
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.user_data = &left;
    parameters.cb.send = [](void* request, ucs_status_t /*quiet() reports it*/, void* data) {
      auto& ended = *static_cast<Left*>(data);
      ended.calls->request_free(request);
      ended.count.fetch_sub(1, std::memory_order_release);  // pairs with finish_flush()
    };
    void* const request = call(endpoint, address, key, &parameters);
    if (!UCS_PTR_IS_PTR(request)) {
      left.count.fetch_sub(1, std::memory_order_relaxed);
    }
    return request;
  });
  if (!started) {
    return started.error();
  }
  return waits == Waits::kYes ? finish(*started, op) : leave(*started, op);
}

Result<void> UcxDirect::put(const RemotePlace& to, const void* from, std::size_t bytes, Waits waits) {
  return move(to, {"put", bytes, "to"}, waits,
              [&](ucp_ep_h endpoint, std::uint64_t address, ucp_rkey_h key, const ucp_request_param_t* parameters) {
                return worker_.calls().put_nbx(endpoint, from, bytes, address, key, parameters);
              });
}

Result<void> UcxDirect::get(void* to, const RemotePlace& from, std::size_t bytes, Waits waits) {
  return move(from, {"get", bytes, "from"}, waits,
              [&](ucp_ep_h endpoint, std::uint64_t address, ucp_rkey_h key, const ucp_request_param_t* parameters) {
                return worker_.calls().get_nbx(endpoint, to, bytes, address, key, parameters);
              });
}

Result<UcxDirect::Started> UcxDirect::begin_atomic(const RemotePlace& word, std::size_t size, ucp_atomic_op_t operation,
                                                   const void* operand, void* answer) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
  parameters.datatype = ucp_dt_make_contig(size);
  if (answer != nullptr) {
    parameters.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    parameters.reply_buffer = answer;
  }
  return begin(word, kChanging, [&](ucp_ep_h endpoint, std::uint64_t address, ucp_rkey_h key) {
    return worker_.calls().atomic_op_nbx(endpoint, operation, operand, 1, address, key, &parameters);
  });
}

Result<std::uint64_t> UcxDirect::fetch_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                              std::uint64_t operand, std::uint64_t compared) {
  const bool compares = operation == AtomicOperation::kCompareSwap;
  Swap* swap = nullptr;
  {
    const auto held = peers_.lock();
    swap = &take_swap();
  }
  // UCX compares the word with `operand`, stores what is at `answer`, and then writes the answer there.
  swap->operand = word_of(operation == AtomicOperation::kFetch ? 0 : (compares ? compared : operand), size);
  swap->answer = word_of(operand, size);
  auto started = begin_atomic(word, size, ucx_operation(operation), &swap->operand, &swap->answer);
  Result<void> done = started ? finish(*started, kChanging) : started.error();
  const std::uint64_t before = value_of(swap->answer, size);
  if (!started || !started->given_up) {
    swap->used.store(false, std::memory_order_release);  // pairs with take_swap()
  }
  if (!done) {
    return done.error();
  }
  return before;
}

Result<void> UcxDirect::post_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                    std::uint64_t operand) {
  const auto code = ucx_operation(operation);
  if (code == UCP_ATOMIC_OP_SWAP) {
    return begin_swap(word, size, operand);
  }
  const std::uint64_t first = word_of(operand, size);
  auto started = begin_atomic(word, size, code, &first, nullptr);
  return started ? finish(*started, kChanging) : started.error();
}

/// UCX has no store that is atomic to its other operations: a put may write a word twice.
Result<void> UcxDirect::begin_swap(const RemotePlace& word, std::size_t size, std::uint64_t operand) {
  Swap* swap = nullptr;
  const auto started = begin(word, kChanging, [&](ucp_ep_h endpoint, std::uint64_t address, ucp_rkey_h key) {
    swap = &take_swap();
    swap->operand = word_of(operand, size);
    ucp_request_param_t parameters{};
    parameters.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER | UCP_OP_ATTR_FIELD_CALLBACK |
                              UCP_OP_ATTR_FIELD_USER_DATA;
    parameters.datatype = ucp_dt_make_contig(size);
    parameters.reply_buffer = &swap->answer;
    parameters.user_data = swap;
    parameters.cb.send = [](void* request, ucs_status_t /*quiet() reports it*/, void* data) {
      auto& done = *static_cast<Swap*>(data);
      done.calls->request_free(request);
      done.used.store(false, std::memory_order_release);  // pairs with take_swap()
    };
    return worker_.calls().atomic_op_nbx(endpoint, UCP_ATOMIC_OP_SWAP, &swap->operand, 1, address, key, &parameters);
  });
  if (!started) {
    return started.error();
  }
  if (UCS_PTR_IS_PTR(started->request)) {
    return {};  // the callback has it
  }
  swap->used.store(false, std::memory_order_release);
  return leave(*started, kChanging);
}

/// Swaps end in about the order in which they began: either the next one is free, or all are in use.
UcxDirect::Swap& UcxDirect::take_swap() {
  if (next_swap_ >= swaps_.size()) {
    next_swap_ = 0;
  }
  // Acquire: UCX has written the answer of its last use.
  if (swaps_.empty() || swaps_[next_swap_].used.load(std::memory_order_acquire)) {
    swaps_.emplace_back().calls = &worker_.calls();
    next_swap_ = swaps_.size() - 1;
  }
  Swap& swap = swaps_[next_swap_++];
  swap.used.store(true, std::memory_order_relaxed);
  return swap;
}

Result<void> UcxDirect::quiet(PeChoice pes) {
  return flush_peers(
      peers_, pes,
      [this](const UcxPeer& peer) -> Result<void*> {
        return worker_.calls().ep_flush_nbx(peer.endpoint, &kNoParameters);
      },
      [this](UcxPeer& peer, void* request) { return finish_flush(peer, request); });
}

void UcxDirect::stop(UcxPeer& peer) {
  const Left* left = nullptr;
  {
    const auto held = peers_.lock();
    left = &left_of(peer.pe);
  }
  peers_.give_up(peer);
  wait_policy_.settle([left] { return left->count.load(std::memory_order_acquire) == 0; });
}

Result<void> UcxDirect::finish_flush(UcxPeer& peer, void* request) {
  const UcxCalls& calls = worker_.calls();
  ucs_status_t status = UCS_PTR_IS_ERR(request) ? UCS_PTR_STATUS(request) : UCS_OK;
  if (UCS_PTR_IS_PTR(request)) {
    const auto waited = wait_policy_.wait([&] { return calls.request_check_status(request) != UCS_INPROGRESS; }, &peer);
    status = calls.request_check_status(request);
    calls.request_free(request);
    if (waited == std::errc::timed_out || waited == std::errc::operation_canceled) {
      stop(peer);
      return wait_policy_.error(waited, peers_, peer, kQuieting);
    }
  }
  // A flush of a lost peer may succeed, because nothing is left to wait for.
  if (peer.lost.load(std::memory_order_acquire) != nullptr) {
    return peers_.lost_error(peer, kQuieting);
  }
  return status == UCS_OK ? Result<void>{} : peers_.error(peer, status, kQuieting);
}

}  // namespace shmem
