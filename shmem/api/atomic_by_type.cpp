// SPDX-License-Identifier: Apache-2.0
// Atomic operations whose type is an argument, for interfaces with types that OpenSHMEM does not have.
#include <array>

#include "aclshmem_half.h"
#include "shmem/api/peer.hpp"
#include "shmem/layout/parking.hpp"
#include "shmem_device.h"
#include "shmemx_interface.h"

using shmem::api::Peer;
using shmem::api::remote_atomic;

namespace {

[[noreturn]] void refuse(const Peer& peer, const shmemx_atomic_t& asked) {
  shmem::api::end_job(peer.runtime, peer.call,
                      "there is no operation {} on words of type {} (SHMEMX_FETCH ..., SHMEMX_FLOAT ...)",
                      asked.operation, asked.type);
}

template <typename T>
T read(const void* argument) {
  T value;
  std::memcpy(&value, argument, sizeof value);
  return value;
}

struct Half {
  static float decode(std::uint16_t bits) { return shmemi_half_to_float(bits); }
  static std::uint16_t encode(float value) { return shmemi_half_from_float(value); }
};
struct Bfloat16 {
  static float decode(std::uint16_t bits) { return shmemi_bfloat16_to_float(bits); }
  static std::uint16_t encode(float value) { return shmemi_bfloat16_from_float(value); }
};

/// For types for which the processor has no atomic addition.
template <typename Number>
std::uint16_t add(std::atomic_ref<std::uint16_t> word, std::uint16_t operand) {
  std::uint16_t before = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(before, Number::encode(Number::decode(before) + Number::decode(operand)),
                                     std::memory_order_seq_cst)) {
  }
  return before;
}

// Sequentially consistent, as wake_parked asks for.
template <typename T>
T operate(const Peer& peer, const shmemx_atomic_t& asked, std::atomic_ref<T> word) {
  if (asked.operation == SHMEMX_FETCH) {
    return word.load(std::memory_order_seq_cst);
  }
  const T operand = read<T>(asked.operand);
  if (asked.operation == SHMEMX_SWAP) {
    return word.exchange(operand, std::memory_order_seq_cst);
  }
  if constexpr (std::is_same_v<T, std::uint16_t>) {
    if (asked.type == SHMEMX_HALF && asked.operation == SHMEMX_ADD) {
      return add<Half>(word, operand);
    }
    if (asked.type == SHMEMX_BFLOAT16 && asked.operation == SHMEMX_ADD) {
      return add<Bfloat16>(word, operand);
    }
    if (asked.type != SHMEMX_UINT16) {
      refuse(peer, asked);
    }
  }
  if (asked.operation == SHMEMX_ADD) {
    return word.fetch_add(operand, std::memory_order_seq_cst);
  }
  if constexpr (std::is_integral_v<T>) {
    switch (asked.operation) {
      case SHMEMX_COMPARE_SWAP: {
        T before = read<T>(asked.condition);
        word.compare_exchange_strong(before, operand, std::memory_order_seq_cst);
        return before;
      }
      case SHMEMX_AND:
        return word.fetch_and(operand, std::memory_order_seq_cst);
      case SHMEMX_OR:
        return word.fetch_or(operand, std::memory_order_seq_cst);
      case SHMEMX_XOR:
        return word.fetch_xor(operand, std::memory_order_seq_cst);
      default:
        break;
    }
  }
  refuse(peer, asked);
}

/// The network knows words of 4 and 8 bytes and integers only. Other operations work on a copy of the 4 bytes around
/// the word and compare-and-swap, until no other PE has changed them in between.
template <typename T>
void operate_remote(const Peer& peer, const shmemx_atomic_t& asked, const T* mine) {
  using Word = std::conditional_t<sizeof(T) == sizeof(std::uint64_t), std::uint64_t, std::uint32_t>;
  const auto inside = reinterpret_cast<std::uintptr_t>(mine) % sizeof(Word);
  const auto* around = reinterpret_cast<const Word*>(reinterpret_cast<const std::byte*>(mine) - inside);
  Word before = remote_atomic(peer, around, shmem::AtomicOperation::kFetch);
  for (;;) {
    alignas(Word) std::array<std::byte, sizeof(Word)> copy{};
    std::memcpy(copy.data(), &before, sizeof before);
    const T result = operate(peer, asked, std::atomic_ref<T>(*reinterpret_cast<T*>(copy.data() + inside)));
    Word after;
    std::memcpy(&after, copy.data(), sizeof after);
    const Word seen = asked.operation == SHMEMX_FETCH
                          ? before
                          : remote_atomic(peer, around, shmem::AtomicOperation::kCompareSwap, after, before);
    if (seen == before) {
      if (asked.before != nullptr) {
        std::memcpy(asked.before, &result, sizeof result);
      }
      return;
    }
    before = seen;
  }
}

template <typename T>
void operate_on(const Peer& peer, const shmemx_atomic_t& asked) {
  const auto* mine = static_cast<const T*>(asked.dest);
  shmem::api::check_aligned(peer.runtime, peer.call, mine);
  if (peer.is_remote()) {
    operate_remote(peer, asked, mine);
    return;
  }
  const T before = operate(peer, asked, std::atomic_ref<T>(*reinterpret_cast<T*>(peer.at(mine, sizeof(T)))));
  if (asked.before != nullptr) {
    std::memcpy(asked.before, &before, sizeof before);
  }
  if (asked.operation != SHMEMX_FETCH) {
    peer.wake();
  }
}

}  // namespace

extern "C" void shmemx_atomic(const shmemx_atomic_t* operation, int pe) noexcept try {
  shmemx_await_default_stream();
  const Peer peer(shmem::api::peer(operation->call, pe));
  switch (operation->type) {
    case SHMEMX_FLOAT:
      return operate_on<float>(peer, *operation);
    case SHMEMX_INT8:
      return operate_on<std::int8_t>(peer, *operation);
    case SHMEMX_INT16:
      return operate_on<std::int16_t>(peer, *operation);
    case SHMEMX_INT32:
      return operate_on<std::int32_t>(peer, *operation);
    case SHMEMX_INT64:
      return operate_on<std::int64_t>(peer, *operation);
    case SHMEMX_UINT8:
      return operate_on<std::uint8_t>(peer, *operation);
    case SHMEMX_UINT16:
    case SHMEMX_HALF:
    case SHMEMX_BFLOAT16:
      return operate_on<std::uint16_t>(peer, *operation);
    case SHMEMX_UINT32:
      return operate_on<std::uint32_t>(peer, *operation);
    case SHMEMX_UINT64:
      return operate_on<std::uint64_t>(peer, *operation);
    default:
      refuse(peer, *operation);
  }
}
SHMEM_CATCH(void)
