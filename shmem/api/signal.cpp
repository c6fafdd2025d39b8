// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.8 and 9.11: signals of 64 bits, and Ascend's of 32.
#include "shmem/api/waiting.hpp"
#include "shmem_device.h"

namespace api = shmem::api;

namespace {

template <typename T>
std::atomic_ref<T> remote_signal(const shmem::Context& context, const char* call, T* mine, int pe) {
  api::check_aligned(context, call, mine);
  return std::atomic_ref<T>(*reinterpret_cast<T*>(api::remote(context, call, mine, sizeof(T), pe)));
}

// Sequentially consistent, as wake_parked asks for; that includes the release which orders earlier puts before the
// signal.
template <typename T>
void set(const char* call, T* mine, T value, int pe) {
  const shmem::Context& context = api::running(call);
  remote_signal(context, call, mine, pe).exchange(value, std::memory_order_seq_cst);
  shmem::wake_parked(context.job(), pe);
}

template <typename T>
void add(const char* call, T* mine, T value, int pe) {
  const shmem::Context& context = api::running(call);
  remote_signal(context, call, mine, pe).fetch_add(value, std::memory_order_seq_cst);
  shmem::wake_parked(context.job(), pe);
}

template <typename T>
void operate(const char* call, T* mine, T value, int op, int pe) {
  switch (op) {
    case SHMEM_SIGNAL_SET:
      return set(call, mine, value, pe);
    case SHMEM_SIGNAL_ADD:
      return add(call, mine, value, pe);
    default:
      api::end_job(api::running(call), call, std::to_string(op) + " is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD");
  }
}

/// Acquire: pairs with set() and add(); what was put before the signal is visible to who sees it.
template <typename T>
T fetch(const T* mine) {
  return std::atomic_ref<T>(*const_cast<T*>(mine)).load(std::memory_order_acquire);
}

template <typename T>
T wait_until(const char* call, T* mine, int cmp, T with) {
  const shmem::Context& context = api::running(call);
  api::check_cmp(context, call, cmp);
  // Also checks that the address can be one that another PE signals.
  const auto signal = remote_signal(context, call, mine, context.my_pe());
  T value = signal.load(std::memory_order_acquire);  // here and below: as in fetch()
  const auto reached = [&] { return api::compare(value = signal.load(std::memory_order_acquire), cmp, with); };
  api::wait_here(context, call, reached, [&] { return api::unmet(value, cmp, with); });
  return value;
}

}  // namespace

SHMEM_ROUTINE(uint64_t, signal_fetch, (const uint64_t* sig_addr)) {
  return fetch(sig_addr);
}

SHMEM_ROUTINE(uint64_t, signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value)) {
  return wait_until("shmem_signal_wait_until", sig_addr, cmp, cmp_value);
}

extern "C" {

void shmemx_signal32_set(int32_t* sig_addr, int32_t signal, int pe) noexcept {
  set("shmemx_signal32_set", sig_addr, signal, pe);
}

void shmemx_signal_op(uint64_t* sig_addr, uint64_t signal, int sig_op, int pe) noexcept {
  operate("shmemx_signal_op", sig_addr, signal, sig_op, pe);
}

void shmemx_signal32_op(int32_t* sig_addr, int32_t signal, int sig_op, int pe) noexcept {
  operate("shmemx_signal32_op", sig_addr, signal, sig_op, pe);
}

void shmemx_signal32_add(int32_t* sig_addr, int32_t signal, int pe) noexcept {
  add("shmemx_signal32_add", sig_addr, signal, pe);
}

int32_t shmemx_signal32_fetch(const int32_t* sig_addr) noexcept {
  return fetch(sig_addr);
}

int32_t shmemx_signal32_wait_until(int32_t* sig_addr, int cmp, int32_t cmp_value) noexcept {
  return wait_until("shmemx_signal32_wait_until", sig_addr, cmp, cmp_value);
}
}
