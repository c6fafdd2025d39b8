// SPDX-License-Identifier: Apache-2.0
// Times as people read them.
#pragma once

#include <chrono>
#include <string>

namespace shmem {

/// "120 s", "0.150 s".
inline std::string seconds_text(std::chrono::milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (time.count() % 1000 != 0) text += "." + std::to_string(time.count() % 1000 + 1000).substr(1);
  return text + " s";
}

}  // namespace shmem
