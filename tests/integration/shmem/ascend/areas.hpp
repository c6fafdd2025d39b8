// SPDX-License-Identifier: Apache-2.0
// For kernels of this folder that move data: memory for each core, and what is in it afterwards.
#pragma once

#include <kernel_operator.h>

#include "check.h"

namespace areas {

inline constexpr size_t kRoom = 128;  // elements of each core

/// The argument of a kernel: for each core, memory for elements of up to 16 bytes, and a signal.
struct Work {
  char* dest;
  char* source;
  int32_t* signal;
};

/// The memory of a core, as elements of T.
template <typename T>
struct Areas {
  T* dest;
  T* source;
  int32_t* signal;

  explicit Areas(const Work& work) {
    const auto core = static_cast<size_t>(AscendC::GetBlockIdx());
    dest = reinterpret_cast<T*>(work.dest + core * kRoom * 16);
    source = reinterpret_cast<T*>(work.source + core * kRoom * 16);
    signal = work.signal + core;
  }
  /// Different for each core, too.
  static T value(int pe, size_t i) {
    return static_cast<T>(pattern(pe, i + static_cast<size_t>(AscendC::GetBlockIdx())));
  }
  static T untouched() { return static_cast<T>(99); }

  void fill() const {
    for (size_t i = 0; i < kRoom; ++i) {
      source[i] = value(aclshmem_my_pe(), i);
      dest[i] = untouched();
    }
    *signal = 0;
    aclshmem_barrier_all();
  }
  template <typename Expected>
  void look(size_t length, Expected expected) const {
    aclshmem_barrier_all();
    for (size_t i = 0; i < length; ++i) {
      CHECK(dest[i] == expected(i));
    }
    CHECK(dest[length] == untouched());
  }
};

/// `move` takes `length` elements from PE `pe`, in order.
template <typename T, typename Move>
void moves(const Work& work, int pe, size_t length, Move move) {
  const Areas<T> areas(work);
  areas.fill();
  move(areas);
  areas.look(length, [pe](size_t i) { return Areas<T>::value(pe, i); });
}

/// 5 blocks of 3 elements, 7 apart at the source and 4 at the destination.
inline constexpr non_contiguous_copy_param kBlocks{5, 3, 7, 4};

template <typename T, typename Move>
void moves_blocks(const Work& work, int pe, Move move) {
  const Areas<T> areas(work);
  areas.fill();
  move(areas);
  areas.look(19, [pe](size_t i) { return i % 4 < 3 ? Areas<T>::value(pe, i / 4 * 7 + i % 4) : Areas<T>::untouched(); });
}

template <typename T>
AscendC::GlobalTensor<T> global(T* elements) {
  AscendC::GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(elements, kRoom);
  return tensor;
}

inline void arrives(int32_t* signal, int32_t value) {
  CHECK(aclshmem_signal_wait_until(signal, ACLSHMEM_CMP_EQ, value) == value);
}

}  // namespace areas
