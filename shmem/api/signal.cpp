// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.8 and 9.11: 64-bit signals, alone and after a put, and Ascend's 32-bit ones.
#include "shmem/api/copied.hpp"
#include "shmem/api/waiting.hpp"
#include "shmem/memory/copy.hpp"
#include "shmem_device.h"
#include "shmemx_interface.h"

namespace api = shmem::api;
using api::Peer;
using api::Target;

namespace {

template <typename T>
std::atomic_ref<T> remote_signal(const Peer& peer, T* mine) {
  api::check_aligned(peer.runtime, peer.call, mine);
  return std::atomic_ref<T>(*reinterpret_cast<T*>(peer.at(mine, sizeof(T))));
}

/// After the puts to that PE before it; others need not answer. With an adapter this waits for a round trip, also in a
/// non-blocking call: a signal sent by a callback of the flush would be missing in a quiet that flushes before.
template <typename T>
void change_remote(const Peer& peer, T* mine, shmem::AtomicOperation operation, T value) {
  api::check_aligned(peer.runtime, peer.call, mine);
  api::remote_fence(peer);
  api::remote_post(peer, mine, sizeof(T), operation, static_cast<std::make_unsigned_t<T>>(value));
}

// Sequentially consistent, as wake_parked requires; this includes the release that orders earlier puts before the
// signal. Streaming copies bring their own sfence.
template <typename T>
void set(const Target& target, T* mine, T value) {
  const Peer peer(target);
  if (peer.is_remote()) {
    change_remote(peer, mine, shmem::AtomicOperation::kSet, value);
    return;
  }
  remote_signal(peer, mine).exchange(value, std::memory_order_seq_cst);
  peer.wake();
}

template <typename T>
void add(const Target& target, T* mine, T value) {
  const Peer peer(target);
  if (peer.is_remote()) {
    change_remote(peer, mine, shmem::AtomicOperation::kAdd, value);
    return;
  }
  remote_signal(peer, mine).fetch_add(value, std::memory_order_seq_cst);
  peer.wake();
}

void check_op(const Target& peer, int op) {
  if (op != SHMEM_SIGNAL_SET && op != SHMEM_SIGNAL_ADD) {
    api::end_job(peer.runtime, peer.call, std::to_string(op) + " is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD");
  }
}

template <typename T>
void operate(const Target& peer, T* mine, T value, int op) {
  check_op(peer, op);
  if (op == SHMEM_SIGNAL_SET) {
    set(peer, mine, value);
  } else {
    add(peer, mine, value);
  }
}

/// The caller may change `source` on return, or after the next quiet.
template <std::size_t Size, api::Done Reusable>
void put_signal(const Target& target, void* dest, const void* source, std::size_t nelems, std::uint64_t* sig_addr,
                std::uint64_t signal, int sig_op) {
  check_op(target, sig_op);  // before any data is copied
  const Peer peer(target);
  const std::size_t bytes = api::bytes_of(peer, nelems, Size);
  peer.count(shmem::CallKind::kPut, bytes);
  if (peer.is_remote()) {
    api::remote_put(peer, dest, source, bytes, Reusable);
  } else if (bytes != 0) {
    std::byte* const theirs = peer.at_if_mapped(dest, bytes, source);
    if (theirs == nullptr) [[unlikely]] {
      api::put_copied(peer, dest, source, {.block = bytes});
    } else {
      shmem::copy_bytes(theirs, source, bytes);
    }
  }
  operate(peer, sig_addr, signal, sig_op);
}

/// Acquire: pairs with set() and add(); puts before the signal are visible once the signal is.
template <typename T>
T fetch(const T* mine) {
  return std::atomic_ref<T>(*const_cast<T*>(mine)).load(std::memory_order_acquire);
}

/// `whose`: kAnotherPe only if the word is in the heap of one.
template <typename T>
T wait_until(const char* call, T* word, int cmp, T with, api::WordsOf whose = api::WordsOf::kThisPe) {
  const shmem::Runtime& runtime = api::running(call);
  api::check_cmp(runtime, call, cmp);
  api::check_aligned(runtime, call, word);
  // Also checks that another PE could signal at this address.
  const auto signal = whose == api::WordsOf::kAnotherPe
                          ? std::atomic_ref<T>(*word)
                          : remote_signal(api::Peer({runtime, call, runtime.my_pe()}), word);
  T value = signal.load(std::memory_order_acquire);  // here and below: as in fetch()
  const auto reached = [&] { return api::compare(value = signal.load(std::memory_order_acquire), cmp, with); };
  api::wait_here(
      runtime, call, reached, [&] { return api::unmet(runtime, word, value, cmp, with); }, {}, whose);
  return value;
}

}  // namespace

#define SHMEM_DEFINE_PUT_SIGNAL(NAME, TYPE, SIZE, REUSABLE)                                                      \
  SHMEM_ROUTINE_WITH_CTX(                                                                                        \
      void, NAME,                                                                                                \
      (TYPE * dest, const TYPE* source, size_t nelems, uint64_t* sig_addr, uint64_t signal, int sig_op, int pe), \
      (put_signal<SIZE, api::Done::REUSABLE>), (dest, source, nelems, sig_addr, signal, sig_op))
#define SHMEM_DEFINE_TYPED(NAME, TYPE)                                 \
  SHMEM_DEFINE_PUT_SIGNAL(NAME##_put_signal, TYPE, sizeof(TYPE), kNow) \
  SHMEM_DEFINE_PUT_SIGNAL(NAME##_put_signal_nbi, TYPE, sizeof(TYPE), kWithQuiet)
#define SHMEM_DEFINE_SIZED(BITS, BYTES)                          \
  SHMEM_DEFINE_PUT_SIGNAL(put##BITS##_signal, void, BYTES, kNow) \
  SHMEM_DEFINE_PUT_SIGNAL(put##BITS##_signal_nbi, void, BYTES, kWithQuiet)
SHMEM_RMA_TYPES(SHMEM_DEFINE_TYPED)
SHMEM_SIZES(SHMEM_DEFINE_SIZED)
SHMEM_DEFINE_PUT_SIGNAL(putmem_signal, void, 1, kNow)
SHMEM_DEFINE_PUT_SIGNAL(putmem_signal_nbi, void, 1, kWithQuiet)

SHMEM_ROUTINE_WITH_CTX(void, signal_set, (uint64_t * sig_addr, uint64_t signal, int pe), set, (sig_addr, signal))
SHMEM_ROUTINE_WITH_CTX(void, signal_add, (uint64_t * sig_addr, uint64_t signal, int pe), add, (sig_addr, signal))

SHMEM_ROUTINE(uint64_t, signal_fetch, (const uint64_t* sig_addr)) try {
  api::progress();
  return fetch(sig_addr);
}
SHMEM_CATCH(uint64_t)

SHMEM_ROUTINE(uint64_t, signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value)) try {
  return wait_until("shmem_signal_wait_until", sig_addr, cmp, cmp_value);
}
SHMEM_CATCH(uint64_t)

extern "C" {

void shmemx_signal32_set(int32_t* sig_addr, int32_t signal, int pe) noexcept try {
  set(api::peer("shmemx_signal32_set", pe), sig_addr, signal);
}
SHMEM_CATCH(void)

void shmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) noexcept try {
  operate(api::peer("shmemx_signal_op", pe), sig_addr, signal, sig_op);
}
SHMEM_CATCH(void)

void shmemx_signal32_op(int32_t* sig_addr, int32_t signal, int sig_op, int pe) noexcept try {
  operate(api::peer("shmemx_signal32_op", pe), sig_addr, signal, sig_op);
}
SHMEM_CATCH(void)

void shmemx_signal32_add(int32_t* sig_addr, int32_t signal, int pe) noexcept try {
  add(api::peer("shmemx_signal32_add", pe), sig_addr, signal);
}
SHMEM_CATCH(void)

int32_t shmemx_signal32_fetch(const int32_t* sig_addr) noexcept try {
  api::progress();
  return fetch(sig_addr);
}
SHMEM_CATCH(int32_t)

int32_t shmemx_signal32_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_value) noexcept try {
  return wait_until("shmemx_signal32_wait_until", sig_addr, cmp, cmp_value);
}
SHMEM_CATCH(int32_t)
void shmemx_signal32(const char* call, int32_t* sig_addr, int32_t signal, int sig_op, int pe) noexcept try {
  shmemx_await_default_stream();
  operate(api::peer(call, pe), sig_addr, signal, sig_op);
}
SHMEM_CATCH(void)

int32_t shmemx_await_signal32(const char* call, int32_t* sig_addr, int cmp, int32_t cmp_value) noexcept try {
  shmemx_await_default_stream();
  return wait_until(call, sig_addr, cmp, cmp_value,
                    api::words_at(api::running(call).job(), sig_addr, sizeof *sig_addr));
}
SHMEM_CATCH(int32_t)
}
