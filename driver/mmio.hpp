// SPDX-License-Identifier: Apache-2.0
// Mapped device memory, typed and bounds-checked, and the fences around it.
//
// An access is one naturally aligned load or store of its size, which the compiler never splits, merges or drops. A
// store has release order: earlier stores of this thread to ordinary memory are visible before it (the fences below are
// what a processor needs on top). Nothing orders a store before a later load, and nothing says when a posted store
// arrives. Write-combining is never assumed.
#pragma once

#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace gba {

static_assert(std::endian::native == std::endian::little, "registers and flags are little-endian (uapi rule 1)");

/// A word of device memory. A view: the mapping outlives it.
template <std::unsigned_integral T>
class MmioWord {
 public:
  MmioWord() = default;
  explicit MmioWord(T* address) : address_(address) {}

  /// What the other side stored before its store of this value is visible.
  [[nodiscard]] T load() const { return std::atomic_ref<T>(*address_).load(std::memory_order_acquire); }
  /// Only the value counts; nothing is ordered by it.
  [[nodiscard]] T load_relaxed() const { return std::atomic_ref<T>(*address_).load(std::memory_order_relaxed); }
  /// What this thread stored before is visible to a reader that sees the value.
  void store(T value) const { std::atomic_ref<T>(*address_).store(value, std::memory_order_release); }

  explicit operator bool() const { return address_ != nullptr; }

 private:
  static_assert(std::atomic_ref<T>::is_always_lock_free);
  T* address_ = nullptr;
};

/// A mapped region. A view: the mapping outlives it. Thread-safe.
class MmioRegion {
 public:
  MmioRegion() = default;
  explicit MmioRegion(std::span<std::byte> bytes) : bytes_(bytes) {}

  /// The word at `offset`. An offset outside the region or unaligned is a bug here and throws std::out_of_range.
  template <std::unsigned_integral T>
  [[nodiscard]] MmioWord<T> word(std::uint64_t offset) const {
    if (offset % sizeof(T) != 0 || offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) {
      throw std::out_of_range("gba: access outside a mapped region");
    }
    return MmioWord<T>(reinterpret_cast<T*>(bytes_.data() + offset));
  }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

 private:
  std::span<std::byte> bytes_;
};

}  // namespace gba

// The fences of the driver, named by their use. Everything else is ordered by acquire and release on the object itself.
namespace gba::ordering {

/// Between stores to ordinary memory and the doorbell store that tells others of them. A release store is enough if
/// the doorbell is ordinary memory or stores are never reordered (x86); a weakly ordered processor needs a barrier that
/// covers device memory too, and one that has none here does not compile.
inline void data_before_doorbell() {
#if defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#elif !defined(__x86_64__)
#error "which barrier orders stores to memory before a store to a device on this processor?"
#endif
}

/// Between the store of a doorbell and the load of WAKEUP: neither may pass the other, or the device sleeps on a
/// doorbell without being woken. Pairs with the device's fence between its store of WAKEUP and its last scan
/// (uapi rule 14).
inline void doorbell_before_wakeup() {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer does not understand a fence. A locked read-modify-write is one on x86, where it runs.
  static std::atomic<unsigned> fence{0};
  fence.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace gba::ordering
