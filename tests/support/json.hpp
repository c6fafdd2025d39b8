// SPDX-License-Identifier: Apache-2.0
// JSON that a program has printed. nlohmann/json takes seconds to compile, so only json.cpp includes it.
#pragma once

#include <compare>
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace test_support {

/// A value, which is never changed. A member keeps the whole text's value alive.
class Json {
 public:
  /// For each element of an array, or each member of an object without its name.
  class Iterator {
   public:
    Iterator(const Json& all, std::size_t index) : all_(&all), index_(index) {}
    Json operator*() const;
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }

   private:
    const Json* all_;
    std::size_t index_;
  };

  Json() : Json(nullptr) {}
  Json(std::nullptr_t);
  Json(bool value);
  Json(int value);
  Json(unsigned value);
  Json(long value);
  Json(unsigned long value);
  Json(double value);
  Json(const char* text);
  Json(const std::string& text);
  static Json array();   // with no elements
  static Json object();  // with no members
  /// Throws if the text is not JSON.
  static Json parse(const std::string& text);
  static Json parse(std::istream& text);
  /// null if the text is not JSON.
  static Json parse_or_null(const std::string& text);
  static Json parse_or_null(std::istream& text);

  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool contains(const std::string& name) const;
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// Throws if there is no such element.
  [[nodiscard]] Json at(const std::string& name) const;
  [[nodiscard]] Json at(std::size_t index) const;
  [[nodiscard]] Json back() const { return at(size() - 1); }
  /// null if there is no such element.
  Json operator[](const std::string& name) const;
  Json operator[](std::size_t index) const;
  [[nodiscard]] Iterator begin() const { return {*this, 0}; }
  [[nodiscard]] Iterator end() const { return {*this, size()}; }

  /// The member `name` of an object, or else the default.
  [[nodiscard]] std::string value(const std::string& name, const char* otherwise) const;
  [[nodiscard]] bool value(const std::string& name, bool otherwise) const;
  [[nodiscard]] int value(const std::string& name, int otherwise) const;
  [[nodiscard]] Json value(const std::string& name, const Json& otherwise) const;

  /// json.cpp has it for text, the usual numbers, and vectors of text. Throws if the value has another type.
  template <typename T>
  [[nodiscard]] T get() const;
  operator std::string() const;
  /// As JSON, on one line.
  [[nodiscard]] std::string dump() const;

  friend bool operator==(const Json& one, const Json& other);
  /// Values of different types are not in an order.
  friend std::partial_ordering operator<=>(const Json& one, const Json& other);
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  using Value = std::shared_ptr<const nlohmann::json>;

  explicit Json(Value value) : value_(std::move(value)) {}
  /// A part of this one's value, or null if `part` is nullptr.
  [[nodiscard]] Json with(const nlohmann::json* part) const;

  Value value_;
};

}  // namespace test_support
