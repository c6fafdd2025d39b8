// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace base {

/// Tells the processor that this is a spin loop.
inline void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace base
