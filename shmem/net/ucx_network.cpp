// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_network.hpp"

#include <cstring>

namespace shmem {

namespace {

constexpr ucp_request_param_t kNoParameters{};
constexpr const char* kNoAnswer = "it did not answer in time";

std::optional<ucp_atomic_op_t> ucx_operation(AtomicOperation operation) {
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
  return std::nullopt;
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

UcxNetwork::UcxNetwork(const Bootstrap& world, std::unique_ptr<UcxWorker> worker, std::unique_ptr<UcxMemory> memory,
                       std::vector<Greeting> greetings, const NetworkSettings& settings)
    : worker_(std::move(worker)),
      memory_(std::move(memory)),
      peers_(*worker_, std::move(greetings), settings, world.rank()),
      patience_(world, *worker_, settings),
      messages_(*worker_, peers_, patience_, world.rank()) {}

UcxNetwork::~UcxNetwork() = default;

std::string UcxNetwork::describe() const {
  return "ucx " + ucx_version(worker_->calls()) + " (" + worker_->transports() + ")";
}

Result<UcxNetwork::Started> UcxNetwork::begin_put(const FarPlace& to, const void* from, std::size_t bytes) {
  if (auto inside = peers_.check(to, bytes); !inside) return tl::make_unexpected(inside.error());
  const auto held = peers_.lock();
  const auto peer = peers_.reach(to.pe, {"put", bytes, "to"});
  if (!peer) return tl::make_unexpected(peer.error());
  ++(*peer)->begun;
  return Started{*peer, worker_->calls().put_nbx((*peer)->endpoint, from, bytes, peers_.address(to),
                                                 (*peer)->keys[static_cast<std::size_t>(to.segment)], &kNoParameters)};
}

Result<UcxNetwork::Started> UcxNetwork::begin_get(void* to, const FarPlace& from, std::size_t bytes) {
  if (auto inside = peers_.check(from, bytes); !inside) return tl::make_unexpected(inside.error());
  const auto held = peers_.lock();
  const auto peer = peers_.reach(from.pe, {"get", bytes, "from"});
  if (!peer) return tl::make_unexpected(peer.error());
  ++(*peer)->begun;
  return Started{*peer,
                 worker_->calls().get_nbx((*peer)->endpoint, to, bytes, peers_.address(from),
                                          (*peer)->keys[static_cast<std::size_t>(from.segment)], &kNoParameters)};
}

/// Until UCX needs the caller's memory no more.
Result<void> UcxNetwork::finish(Started& started, const Doing& doing) {
  if (started.request == nullptr) return {};
  if (UCS_PTR_IS_ERR(started.request)) return peers_.error(*started.peer, UCS_PTR_STATUS(started.request), doing);
  const UcxCalls& calls = worker_->calls();
  const auto done = [&] { return calls.request_check_status(started.request) != UCS_INPROGRESS; };
  const auto waited = patience_.wait(done, started.peer);
  if (waited != std::errc{}) {
    // The caller gets his memory back now, therefore nothing may come or go any more.
    peers_.give_up(*started.peer, kNoAnswer);
    patience_.settle(done);
  }
  const auto status = calls.request_check_status(started.request);
  started.given_up = status == UCS_INPROGRESS;
  calls.request_free(started.request);
  if (waited == std::errc::timed_out || waited == std::errc::operation_canceled) {
    return patience_.error(waited, peers_.my_name() + " waited to " + doing.verb + " " + std::to_string(doing.bytes) +
                                       " bytes " + doing.preposition + " " + peers_.name(started.peer->pe));
  }
  if (status != UCS_OK) return peers_.error(*started.peer, status, doing);
  return {};
}

/// UCX goes on without us; quiet() hears of it.
Result<void> UcxNetwork::leave(const Started& started, const Doing& doing) {
  if (UCS_PTR_IS_ERR(started.request)) return peers_.error(*started.peer, UCS_PTR_STATUS(started.request), doing);
  if (started.request != nullptr) worker_->calls().request_free(started.request);
  return {};
}

Result<void> UcxNetwork::put(const FarPlace& to, const void* from, std::size_t bytes) {
  auto started = begin_put(to, from, bytes);
  return started ? finish(*started, {"put", bytes, "to"}) : tl::make_unexpected(started.error());
}

Result<void> UcxNetwork::get(void* to, const FarPlace& from, std::size_t bytes) {
  auto started = begin_get(to, from, bytes);
  return started ? finish(*started, {"get", bytes, "from"}) : tl::make_unexpected(started.error());
}

Result<void> UcxNetwork::start_put(const FarPlace& to, const void* from, std::size_t bytes) {
  const auto started = begin_put(to, from, bytes);
  return started ? leave(*started, {"put", bytes, "to"}) : tl::make_unexpected(started.error());
}

Result<void> UcxNetwork::start_get(void* to, const FarPlace& from, std::size_t bytes) {
  const auto started = begin_get(to, from, bytes);
  return started ? leave(*started, {"get", bytes, "from"}) : tl::make_unexpected(started.error());
}

Result<void> UcxNetwork::check_word(const FarPlace& word, std::size_t size) const {
  if (size != 4 && size != 8) {
    return fail(std::errc::invalid_argument,
                "shmem: an atomic operation by the network is on 4 or 8 bytes, not " + std::to_string(size));
  }
  if (auto inside = peers_.check(word, size); !inside) return inside;
  if (peers_.address(word) % size == 0) return {};
  return fail(
      std::errc::invalid_argument,
      "shmem: the word of an atomic operation does not begin at a multiple of its " + std::to_string(size) + " bytes");
}

Result<UcxNetwork::Started> UcxNetwork::begin_atomic(const FarPlace& word, std::size_t size, ucp_atomic_op_t operation,
                                                     const void* operand, void* answer) {
  if (auto good = check_word(word, size); !good) return tl::make_unexpected(good.error());
  const auto held = peers_.lock();
  const auto peer = peers_.reach(word.pe, {"change a word of", 0, ""});
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
                 worker_->calls().atomic_op_nbx((*peer)->endpoint, operation, operand, 1, peers_.address(word),
                                                (*peer)->keys[static_cast<std::size_t>(word.segment)], &parameters)};
}

Result<std::uint64_t> UcxNetwork::fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                               std::uint64_t operand, std::uint64_t compared) {
  const auto code = ucx_operation(operation);
  if (!code) return fail(std::errc::invalid_argument, "shmem: there is no such atomic operation");
  const bool compares = operation == AtomicOperation::kCompareSwap;
  Swap* swap = nullptr;
  {
    const auto held = peers_.lock();
    swap = &take_swap();
  }
  // UCX compares with its operand, and takes what is to be stored from where the answer will be.
  swap->operand = word_of(operation == AtomicOperation::kFetch ? 0 : (compares ? compared : operand), size);
  swap->answer = word_of(operand, size);
  auto started = begin_atomic(word, size, *code, &swap->operand, &swap->answer);
  Result<void> done = started ? finish(*started, {"change a word of", 0, ""}) : tl::make_unexpected(started.error());
  const std::uint64_t before = value_of(swap->answer, size);
  if (!started || !started->given_up) swap->used.store(false, std::memory_order_release);  // pairs with take_swap()
  if (!done) return tl::make_unexpected(done.error());
  return before;
}

Result<void> UcxNetwork::post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand) {
  const auto code = ucx_operation(operation);
  if (!code || operation == AtomicOperation::kCompareSwap || operation == AtomicOperation::kFetch) {
    return fail(std::errc::invalid_argument, "shmem: this atomic operation is of no use without its answer");
  }
  if (*code == UCP_ATOMIC_OP_SWAP) return begin_swap(word, size, operand);
  const std::uint64_t first = word_of(operand, size);
  auto started = begin_atomic(word, size, *code, &first, nullptr);
  return started ? finish(*started, {"change a word of", 0, ""}) : tl::make_unexpected(started.error());
}

/// UCX has no store that is atomic to its other operations: a put may write a word twice.
Result<void> UcxNetwork::begin_swap(const FarPlace& word, std::size_t size, std::uint64_t operand) {
  if (auto good = check_word(word, size); !good) return good;
  const Doing doing{"change a word of", 0, ""};
  const auto held = peers_.lock();
  const auto peer = peers_.reach(word.pe, doing);
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
      worker_->calls().atomic_op_nbx((*peer)->endpoint, UCP_ATOMIC_OP_SWAP, &swap.operand, 1, peers_.address(word),
                                     (*peer)->keys[static_cast<std::size_t>(word.segment)], &parameters);
  if (UCS_PTR_IS_PTR(request)) return {};
  swap.used.store(false, std::memory_order_relaxed);
  if (request == nullptr) return {};
  return peers_.error(**peer, UCS_PTR_STATUS(request), doing);
}

/// They come back in about the order in which they went: the next is free, or all are in use.
UcxNetwork::Swap& UcxNetwork::take_swap() {
  if (next_swap_ >= swaps_.size()) next_swap_ = 0;
  // Acquire: UCX has written the answer of its last use.
  if (swaps_.empty() || swaps_[next_swap_].used.load(std::memory_order_acquire)) {
    swaps_.emplace_back().calls = &worker_->calls();
    next_swap_ = swaps_.size() - 1;
  }
  Swap& swap = swaps_[next_swap_++];
  swap.used.store(true, std::memory_order_relaxed);
  return swap;
}

Result<void> UcxNetwork::fence() {
  if (!worker_->one_stream()) return quiet();
  if (const auto status = worker_->calls().worker_fence(worker_->worker()); status != UCS_OK) {
    return ucx_failure(worker_->calls(), status, "shmem: " + peers_.my_name() + " cannot fence its network");
  }
  return {};
}

Result<void> UcxNetwork::quiet() {
  std::vector<Flush> flushes;
  Result<void> result = begin_flushes(flushes);
  for (const Flush& flush : flushes) {
    auto done = finish_flush(flush);
    if (!done && result) result = std::move(done);
  }
  return result;
}

Result<void> UcxNetwork::begin_flushes(std::vector<Flush>& flushes) {
  Result<void> result;
  const auto held = peers_.lock();
  for (UcxPeer* peer : peers_.connected()) {
    if (peer->flushed == peer->begun) continue;
    if (peer->lost.load(std::memory_order_acquire) != nullptr) {
      if (result) result = peers_.lost_error(*peer, {"finish what it has begun towards", 0, ""});
      continue;
    }
    flushes.push_back({peer, worker_->calls().ep_flush_nbx(peer->endpoint, &kNoParameters), peer->begun});
  }
  return result;
}

Result<void> UcxNetwork::finish_flush(const Flush& flush) {
  const UcxCalls& calls = worker_->calls();
  const Doing doing{"finish what it has begun towards", 0, ""};
  ucs_status_t status = UCS_PTR_IS_ERR(flush.request) ? UCS_PTR_STATUS(flush.request) : UCS_OK;
  if (UCS_PTR_IS_PTR(flush.request)) {
    const auto waited =
        patience_.wait([&] { return calls.request_check_status(flush.request) != UCS_INPROGRESS; }, flush.peer);
    status = calls.request_check_status(flush.request);
    calls.request_free(flush.request);
    if (waited == std::errc::timed_out || waited == std::errc::operation_canceled) {
      return patience_.error(
          waited, peers_.my_name() + " waited to finish what it has begun towards " + peers_.name(flush.peer->pe));
    }
  }
  // A flush of a lost peer may succeed: there is nothing left to wait for.
  if (flush.peer->lost.load(std::memory_order_acquire) != nullptr) return peers_.lost_error(*flush.peer, doing);
  if (status != UCS_OK) return peers_.error(*flush.peer, status, doing);
  const auto held = peers_.lock();
  flush.peer->flushed = std::max(flush.peer->flushed, flush.begun);
  return {};
}

}  // namespace shmem
