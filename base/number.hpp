// SPDX-License-Identifier: Apache-2.0
// Numbers in text.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace base {

/// Reads a number at the beginning of `text` and removes it there. Returns nothing, and leaves `text`, if there is no
/// number, if blanks or a plus sign come first, or if it does not fit. `radix`: 10 unless given.
template <typename T>
std::optional<T> take_number(std::string_view& text, std::same_as<int> auto... radix) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, radix...);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// True if `text` began with `character`, which it loses.
inline bool take(std::string_view& text, char character) {
  const bool found = text.starts_with(character);
  text.remove_prefix(found ? 1 : 0);
  return found;
}

/// The number that all of `text` is; nothing as above.
template <typename T>
std::optional<T> number(std::string_view text) {
  const auto value = take_number<T>(text);
  return text.empty() ? value : std::nullopt;
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
  const auto value = take_number<T>(text, 16);
  return text.empty() ? value : std::nullopt;
}

/// In decimal digits, or in hexadecimal ones after 0x.
template <std::integral T>
std::optional<T> number_of_either_kind(std::string_view text) {
  return text.starts_with("0x") ? hexadecimal_number<T>(text.substr(2)) : number<T>(text);
}

}  // namespace base
