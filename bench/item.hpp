// SPDX-License-Identifier: Apache-2.0
// One thing that the processes of a job measure together, and something simpler beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/conductor.hpp"

namespace bench {

/// All PEs call either with the same count; process 0 gets the nanoseconds of one.
struct Item {
  std::string name;
  std::function<double(std::uint32_t count)> figure;
  std::function<double(std::uint32_t count)> base;
  std::uint32_t most = 100'000;  // calls in one go
};

/// "64 B", "4 KiB", "1 MiB".
inline std::string size_text(std::size_t size) {
  if (size >= std::size_t{1} << 20) {
    return std::to_string(size >> 20) + " MiB";
  }
  return size >= 1024 ? std::to_string(size >> 10) + " KiB" : std::to_string(size) + " B";
}

/// The rest of main() of a program that is started as one process of the job: FILE REPEATS PART, where PART says what
/// `items_of` is to give. Prints points (points.hpp).
using ItemsOf = std::function<std::vector<Item>(Player& player, const std::string& part)>;
int measure_items(int argc, char** argv, const ItemsOf& items_of);

}  // namespace bench
