// SPDX-License-Identifier: Apache-2.0
// Numbers in text.
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string_view>
#include <system_error>

namespace base {

/// The number that all of `text` is; nothing if it is not one, with blanks or a plus sign, or does not fit.
template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// The same, from `least` to `most`.
template <typename T>
std::optional<T> number(std::string_view text, T least, T most) {
  const auto value = number<T>(text);
  return value && *value >= least && *value <= most ? value : std::nullopt;
}

/// The same in hexadecimal digits, without 0x.
template <std::integral T>
std::optional<T> hexadecimal_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// In decimal digits, or in hexadecimal ones after 0x.
template <std::integral T>
std::optional<T> number_of_either_kind(std::string_view text) {
  return text.starts_with("0x") ? hexadecimal_number<T>(text.substr(2)) : number<T>(text);
}

}  // namespace base
