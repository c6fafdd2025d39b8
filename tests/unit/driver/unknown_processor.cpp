// SPDX-License-Identifier: Apache-2.0
// Must not compile: driver/mmio.hpp has no barriers for an unknown processor.
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

#undef __x86_64__
#undef __aarch64__
#include "driver/mmio.hpp"
