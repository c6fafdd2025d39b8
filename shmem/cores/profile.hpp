// SPDX-License-Identifier: Apache-2.0
// The time that parts of kernels take on each core.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shmem {

/// A part of a kernel has a number, its frame. Each core writes its own row; the host reads the rows when no kernel
/// runs. The layout is that of shmemx_prof_t.
struct Profile {
  static constexpr std::size_t kCores = 64;
  static constexpr std::size_t kFrames = 1024;
  struct Core {
    std::array<std::int64_t, kFrames> count;
    std::array<std::int64_t, kFrames> time;  // less the time of entering while the core is in the frame
  };

  std::int32_t pe = 0;
  std::array<Core, kCores> cores{};
};

}  // namespace shmem
