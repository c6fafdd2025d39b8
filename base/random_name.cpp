// SPDX-License-Identifier: Apache-2.0
#include "base/random_name.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace base {

Result<RandomName> random_name() {
  std::array<std::uint8_t, sizeof(RandomName) / 2> bits{};
  if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size())) {
    return fail_errno(errno, "cannot get random bits for a socket name: getrandom");
  }
  RandomName name{};
  for (std::size_t i = 0; i < name.size(); ++i) {
    name[i] = "0123456789abcdef"[(bits[i / 2] >> (i % 2 == 0 ? 4 : 0)) & 0xf];
  }
  return name;
}

}  // namespace base
