// SPDX-License-Identifier: Apache-2.0
// File descriptors as received from a client.
#pragma once

#include <unistd.h>

#include <cstdint>

#include "fake_device/closer.hpp"

namespace fake_device_test {

inline fake_device::Closer& closer() {
  static fake_device::Closer closer;
  return closer;
}

inline fake_device::Given given(base::UniqueFd fd) {
  return {closer(), std::make_shared<fake_device::FdAccount>(), std::move(fd)};
}

/// A duplicate, as after passing over a socket: the caller keeps its own descriptor.
inline fake_device::Given again(const base::UniqueFd& fd) {
  return given(base::UniqueFd(::dup(fd.get())));
}

/// Reads an eventfd that does not block. 0: it has no count.
inline std::uint64_t take_count(const base::UniqueFd& eventfd) {
  std::uint64_t count = 0;
  return ::read(eventfd.get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count) ? count : 0;
}

}  // namespace fake_device_test
