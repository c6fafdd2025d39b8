// SPDX-License-Identifier: Apache-2.0
// A value or the error that kept it from being made. The C interfaces turn an Error into negative errno (libgba) or
// into what OpenSHMEM says (libshmem).
#pragma once

#include <cassert>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace base {

/// `text` is whole: what was tried, on what, what happened, what the user can do.
struct Error {
  std::errc code{};
  std::string text;
};

/// Made from a T or from an E, both implicitly, so that `return other.error();` hands an error on. REQUIRES: T is not
/// E, and neither converts to the other.
template <typename T, typename E = Error>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result() requires std::is_default_constructible_v<T> : content_(std::in_place_index<0>) {}
  // The constraint leaves copies and moves out.
  template <typename U = T>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
           !std::is_same_v<std::remove_cvref_t<U>, E>)
      Result(U&& value)  // NOLINT(bugprone-forwarding-reference-overload)
      : content_(std::in_place_index<0>, std::forward<U>(value)) {}
  Result(E error) : content_(std::in_place_index<1>, std::move(error)) {}
  /// From a Result of a type that converts to T, such as a pointer to a derived class.
  template <typename U>
  requires(!std::is_same_v<U, T> && std::is_convertible_v<U, T>) Result(Result<U, E>&& other)
      : Result(other ? Result(T(*std::move(other))) : Result(std::move(other).error())) {}

  explicit operator bool() const noexcept { return content_.index() == 0; }
  [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }

  // REQUIRES: has_value().
  T& operator*() & { return *std::get_if<0>(&content_); }
  const T& operator*() const& { return *std::get_if<0>(&content_); }
  T&& operator*() && { return std::move(*std::get_if<0>(&content_)); }
  T* operator->() { return std::get_if<0>(&content_); }
  const T* operator->() const { return std::get_if<0>(&content_); }
  /// Throws std::bad_variant_access without a value.
  T& value() & { return std::get<0>(content_); }
  const T& value() const& { return std::get<0>(content_); }
  T&& value() && { return std::get<0>(std::move(content_)); }
  template <typename U>
  T value_or(U&& other) const& {
    return has_value() ? **this : static_cast<T>(std::forward<U>(other));
  }

  // REQUIRES: !has_value().
  E& error() & { return *std::get_if<1>(&content_); }
  const E& error() const& { return *std::get_if<1>(&content_); }
  E&& error() && { return std::move(*std::get_if<1>(&content_)); }

 private:
  std::variant<T, E> content_;
};

/// Success, or an error.
template <typename E>
class [[nodiscard]] Result<void, E> {
 public:
  using value_type = void;

  Result() = default;
  Result(E error) : content_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const noexcept { return content_.index() == 0; }
  [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }

  // REQUIRES: !has_value().
  E& error() & { return *std::get_if<1>(&content_); }
  const E& error() const& { return *std::get_if<1>(&content_); }
  E&& error() && { return std::move(*std::get_if<1>(&content_)); }

 private:
  std::variant<std::monostate, E> content_;
};

inline Error fail(std::errc code, std::string text) {
  return Error{code, std::move(text)};
}

/// For the middle of a message: "No such device" is "no such device" there.
inline std::string errno_text(int error) {
  std::string text = std::generic_category().message(error);
  if (text.size() > 1 && text[1] >= 'a' && text[0] >= 'A' && text[0] <= 'Z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

inline Error invalid(std::string text) {
  return fail(std::errc::invalid_argument, std::move(text));
}
/// `text` and what errno says, e.g. fail_errno(errno, "cannot map the heap").
inline Error fail_errno(int error, std::string text) {
  return Error{std::errc{error}, std::move(text) + ": " + std::generic_category().message(error)};
}

}  // namespace base
