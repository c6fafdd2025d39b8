// SPDX-License-Identifier: Apache-2.0
#include "driver/report.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace gba {
namespace {

// A fixed size, so that reporting "out of memory" needs none.
thread_local std::array<char, 1024> text_of_thread{};

}  // namespace

int report(std::errc code, std::string_view text) {
  const std::size_t length = std::min(text.size(), text_of_thread.size() - 1);
  std::memmove(text_of_thread.data(), text.data(), length);
  text_of_thread[length] = '\0';
  return -static_cast<int>(code);
}

int null_argument(std::string_view function) {
  std::array<char, 128> text{};
  constexpr std::string_view kWhat = ": an argument is NULL";
  const auto end = std::copy(function.begin(), function.end(), text.begin());
  std::copy(kWhat.begin(), kWhat.end(), end);
  return report(std::errc::invalid_argument, text.data());
}

const char* error_text() {
  return text_of_thread.data();
}

}  // namespace gba
