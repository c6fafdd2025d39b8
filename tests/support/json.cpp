// SPDX-License-Identifier: Apache-2.0
#include "tests/support/json.hpp"

#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace test_support {
namespace {

using nlohmann::json;

template <typename T>
std::shared_ptr<const json> make(T&& value) {
  return std::make_shared<const json>(std::forward<T>(value));
}

}  // namespace

Json Json::Iterator::operator*() const {
  return all_->with(&*std::next(all_->value_->begin(), static_cast<std::ptrdiff_t>(index_)));
}

Json::Json(std::nullptr_t) : value_(make(nullptr)) {}
Json::Json(bool value) : value_(make(value)) {}
Json::Json(int value) : value_(make(std::int64_t{value})) {}
Json::Json(unsigned value) : value_(make(std::uint64_t{value})) {}
Json::Json(long value) : value_(make(std::int64_t{value})) {}
Json::Json(unsigned long value) : value_(make(std::uint64_t{value})) {}
Json::Json(double value) : value_(make(value)) {}
Json::Json(const char* text) : value_(make(std::string(text))) {}
Json::Json(const std::string& text) : value_(make(text)) {}

Json Json::array() {
  return Json(make(json::array()));
}

Json Json::object() {
  return Json(make(json::object()));
}

Json Json::parse(const std::string& text) {
  return Json(make(json::parse(text)));
}

Json Json::parse(std::istream& text) {
  return Json(make(json::parse(text)));
}

Json Json::parse_or_null(const std::string& text) {
  auto parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_discarded() ? Json() : Json(make(std::move(parsed)));
}

Json Json::parse_or_null(std::istream& text) {
  return parse_or_null(std::string(std::istreambuf_iterator<char>(text), {}));
}

bool Json::is_null() const {
  return value_->is_null();
}

bool Json::is_object() const {
  return value_->is_object();
}

bool Json::is_string() const {
  return value_->is_string();
}

bool Json::is_number() const {
  return value_->is_number();
}

bool Json::contains(const std::string& name) const {
  return value_->contains(name);
}

std::size_t Json::size() const {
  return value_->size();
}

Json Json::with(const json* part) const {
  return part == nullptr ? Json() : Json(Value(value_, part));
}

Json Json::at(const std::string& name) const {
  if (!contains(name)) {
    throw std::out_of_range("no " + name + " in " + value_->dump());
  }
  return with(&value_->at(name));
}

Json Json::at(std::size_t index) const {
  return with(&value_->at(index));
}

Json Json::operator[](const std::string& name) const {
  return with(contains(name) ? &value_->at(name) : nullptr);
}

Json Json::operator[](std::size_t index) const {
  return with(value_->is_array() && index < size() ? &value_->at(index) : nullptr);
}

std::string Json::value(const std::string& name, const char* otherwise) const {
  return value_->value(name, otherwise);
}

bool Json::value(const std::string& name, bool otherwise) const {
  return value_->value(name, otherwise);
}

int Json::value(const std::string& name, int otherwise) const {
  return value_->value(name, otherwise);
}

Json Json::value(const std::string& name, const Json& otherwise) const {
  return contains(name) ? at(name) : otherwise;
}

template <typename T>
T Json::get() const {
  return value_->get<T>();
}
template bool Json::get() const;
template int Json::get() const;
template unsigned Json::get() const;
template std::int64_t Json::get() const;
template std::uint64_t Json::get() const;
template double Json::get() const;
template std::string Json::get() const;
template std::vector<std::string> Json::get() const;

Json::operator std::string() const {
  return get<std::string>();
}

std::string Json::dump() const {
  return value_->dump();
}

bool operator==(const Json& one, const Json& other) {
  return *one.value_ == *other.value_;
}

std::partial_ordering operator<=>(const Json& one, const Json& other) {
  if (one.value_->is_number() != other.value_->is_number() || one.value_->is_string() != other.value_->is_string()) {
    return std::partial_ordering::unordered;
  }
  if (one == other) {
    return std::partial_ordering::equivalent;
  }
  return *one.value_ < *other.value_   ? std::partial_ordering::less
         : *other.value_ < *one.value_ ? std::partial_ordering::greater
                                       : std::partial_ordering::unordered;
}

std::ostream& operator<<(std::ostream& out, const Json& json) {
  return out << json.dump();
}

}  // namespace test_support
