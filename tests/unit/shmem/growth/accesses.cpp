// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/shmem/growth/accesses.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

namespace accesses {
namespace {

Observer* observer = nullptr;

void tell(const void* address, std::size_t size, Kind kind) {
  // What the observer itself accesses is not reported.
  if (Observer* const told = std::exchange(observer, nullptr); told != nullptr) {
    told->access(address, size, kind);
    observer = told;
  }
}

}  // namespace

void report_to(Observer* to) {
  observer = to;
}

}  // namespace accesses

// What g++ and clang++ call, and what the linker puts in the place of memcpy and memmove (--wrap).
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
using accesses::Kind;
using accesses::tell;

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void* /*caller*/) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void** address) {
  tell(address, sizeof(void*), Kind::kRead);
}
void __tsan_vptr_update(void** address, void* /*value*/) {
  tell(address, sizeof(void*), Kind::kWrite);
}
void __tsan_read_range(void* address, unsigned long size) {
  tell(address, size, Kind::kRead);
}
void __tsan_write_range(void* address, unsigned long size) {
  tell(address, size, Kind::kWrite);
}

#define PLAIN(size)                        \
  void __tsan_read##size(void* address) {  \
    tell(address, size, Kind::kRead);      \
  }                                        \
  void __tsan_write##size(void* address) { \
    tell(address, size, Kind::kWrite);     \
  }
#define UNALIGNED(size)                              \
  void __tsan_unaligned_read##size(void* address) {  \
    tell(address, size, Kind::kRead);                \
  }                                                  \
  void __tsan_unaligned_write##size(void* address) { \
    tell(address, size, Kind::kWrite);               \
  }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)

// The order does not matter on one thread.
#define RMW(bits, name)                                                                                           \
  std::uint##bits##_t __tsan_atomic##bits##_##name(volatile std::uint##bits##_t* word, std::uint##bits##_t value, \
                                                   int /*order*/) {                                               \
    tell(const_cast<std::uint##bits##_t*>(word), sizeof *word, Kind::kSignal);                                    \
    return __atomic_##name(word, value, __ATOMIC_SEQ_CST);                                                        \
  }
#define EXCHANGE(bits, strength, weak)                                                                            \
  int __tsan_atomic##bits##_compare_exchange_##strength(volatile std::uint##bits##_t* word,                       \
                                                        std::uint##bits##_t* expected, std::uint##bits##_t value, \
                                                        int /*order*/, int /*failure*/) {                         \
    tell(const_cast<std::uint##bits##_t*>(word), sizeof *word, Kind::kSignal);                                    \
    return __atomic_compare_exchange_n(word, expected, value, weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : 0;  \
  }
#define ATOMIC(bits)                                                                                                \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* word, int /*order*/) {         \
    tell(const_cast<const std::uint##bits##_t*>(word), sizeof *word, Kind::kRead);                                  \
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);                                                                 \
  }                                                                                                                 \
  void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* word, std::uint##bits##_t value, int /*order*/) {  \
    tell(const_cast<std::uint##bits##_t*>(word), sizeof *word, Kind::kWrite);                                       \
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                                 \
  std::uint##bits##_t __tsan_atomic##bits##_exchange(volatile std::uint##bits##_t* word, std::uint##bits##_t value, \
                                                     int /*order*/) {                                               \
    tell(const_cast<std::uint##bits##_t*>(word), sizeof *word, Kind::kSignal);                                      \
    return __atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                                 \
  RMW(bits, fetch_add)                                                                                              \
  RMW(bits, fetch_sub)                                                                                              \
  RMW(bits, fetch_or)                                                                                               \
  RMW(bits, fetch_and)                                                                                              \
  EXCHANGE(bits, strong, false)                                                                                     \
  EXCHANGE(bits, weak, true)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_atomic_thread_fence(int /*order*/) {}
void __tsan_atomic_signal_fence(int /*order*/) {}

void* __real_memcpy(void* to, const void* from, std::size_t size);
void* __real_memmove(void* to, const void* from, std::size_t size);
void* __wrap_memcpy(void* to, const void* from, std::size_t size) {
  tell(from, size, Kind::kRead);
  tell(to, size, Kind::kWrite);
  return __real_memcpy(to, from, size);
}
void* __wrap_memmove(void* to, const void* from, std::size_t size) {
  tell(from, size, Kind::kRead);
  tell(to, size, Kind::kWrite);
  return __real_memmove(to, from, size);
}
// What newer versions of clang++ make of them.
void* __tsan_memcpy(void* to, const void* from, std::size_t size) {
  return __wrap_memcpy(to, from, size);
}
void* __tsan_memmove(void* to, const void* from, std::size_t size) {
  return __wrap_memmove(to, from, size);
}
void* __tsan_memset(void* to, int value, std::size_t size) {
  tell(to, size, Kind::kWrite);
  return std::memset(to, value, size);
}
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
