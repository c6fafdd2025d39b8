// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM 1.6, sections 9.8 and 9.11: signals of 64 bits, and Ascend's of 32.
#include "shmem/api/entry.hpp"
#include "shmem/memory/parking.hpp"

namespace api = shmem::api;

namespace {

template <typename T>
std::atomic_ref<T> remote_signal(const shmem::Context& context, const char* call, T* mine, int pe) {
  if (reinterpret_cast<std::uintptr_t>(mine) % sizeof(T) != 0) {
    api::end_job(context, call, "the signal is not aligned to its size");
  }
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

/// Acquire: pairs with set() and add(); what was put before the signal is visible to who sees it.
template <typename T>
T fetch(const T* mine) {
  return std::atomic_ref<T>(*const_cast<T*>(mine)).load(std::memory_order_acquire);
}

template <typename T>
bool compare(T value, int cmp, T with) {
  switch (cmp) {
    case SHMEM_CMP_EQ:
      return value == with;
    case SHMEM_CMP_NE:
      return value != with;
    case SHMEM_CMP_GT:
      return value > with;
    case SHMEM_CMP_GE:
      return value >= with;
    case SHMEM_CMP_LT:
      return value < with;
    default:
      return value <= with;
  }
}

template <typename T>
T wait_until(const char* call, T* mine, int cmp, T with) {
  const shmem::Context& context = api::running(call);
  if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_LE) {
    api::end_job(context, call, std::to_string(cmp) + " is no comparison (SHMEM_CMP_EQ ... SHMEM_CMP_LE)");
  }
  // Also checks that the address can be one that another PE signals.
  const auto signal = remote_signal(context, call, mine, context.my_pe());
  T value{};
  const auto reached = [&] { return compare(value = signal.load(std::memory_order_acquire), cmp, with); };
  if (shmem::wait_parked(context.job(), reached, shmem::JobWatch(context.job())) != std::errc{}) {
    api::end_job(context, call, "given up: " + context.job().bootstrap->aborted().value_or("the job was ended"));
  }
  return value;
}

}  // namespace

SHMEM_ROUTINE(void, signal_set, (uint64_t * sig_addr, uint64_t signal, int pe)) {
  set("shmem_signal_set", sig_addr, signal, pe);
}

SHMEM_ROUTINE(void, signal_add, (uint64_t * sig_addr, uint64_t signal, int pe)) {
  add("shmem_signal_add", sig_addr, signal, pe);
}

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
