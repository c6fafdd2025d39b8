// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string>

#include "shmem/kv/trace_formats.hpp"

namespace shmem::kv {
namespace {

using Json = nlohmann::json;

tl::unexpected<Error> malformed(std::string what) {
  return fail(std::errc::bad_message, std::move(what));
}

/// A whole number in 0..most; other kinds of numbers are refused, not rounded.
std::optional<std::int64_t> whole_number(const Json& value, std::int64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    return std::nullopt;
  }
  return value.get<std::int64_t>();
}

Result<std::int64_t> number_member(const Json& object, const char* name, std::int64_t most) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return malformed(std::string("no \"") + name + "\"");
  }
  const auto number = whole_number(*found, most);
  if (!number) {
    return malformed(std::string("\"") + name + "\" is " + found->dump() + ", not a whole number in 0.." +
                     std::to_string(most));
  }
  return *number;
}

Result<std::vector<std::int64_t>> ids_member(const Json& object) {
  const auto found = object.find("hash_ids");
  if (found == object.end() || !found->is_array()) {
    return malformed(found == object.end() ? "no \"hash_ids\"" : "\"hash_ids\" is not an array");
  }
  std::vector<std::int64_t> ids;
  ids.reserve(found->size());
  for (const Json& value : *found) {
    const auto id = whole_number(value, INT64_MAX);
    if (!id) {
      return malformed("\"hash_ids\" holds " + value.dump() + ", which is no id");
    }
    ids.push_back(*id);
  }
  return ids;
}

/// The one place where the JSON library's exceptions end.
Result<Json> parse_object(std::string_view line) try {
  Json object = Json::parse(line);
  if (!object.is_object()) {
    return malformed("not a JSON object");
  }
  return object;
} catch (const Json::exception& error) {
  return malformed(std::string("not JSON: ") + error.what());
}

}  // namespace

Result<Request> parse_mooncake(std::string_view line) {
  const auto object = parse_object(line);
  if (!object) {
    return tl::make_unexpected(object.error());
  }
  const auto arrival = number_member(*object, "timestamp", INT64_MAX);
  const auto input = number_member(*object, "input_length", kMostTokens);
  const auto output = number_member(*object, "output_length", kMostTokens);
  auto ids = ids_member(*object);
  for (const auto* number : {&arrival, &input, &output}) {
    if (!*number) {
      return tl::make_unexpected(number->error());
    }
  }
  if (!ids) {
    return tl::make_unexpected(ids.error());
  }
  const std::int64_t blocks = (*input + kTokensOfPrefixBlock - 1) / kTokensOfPrefixBlock;
  if (static_cast<std::int64_t>(ids->size()) > blocks) {
    return malformed("\"hash_ids\" holds " + std::to_string(ids->size()) + " ids, and the " + std::to_string(*input) +
                     " tokens of \"input_length\" are " + std::to_string(blocks) + " blocks of " +
                     std::to_string(kTokensOfPrefixBlock));
  }
  return Request{*arrival, *input, *output, *std::move(ids)};
}

}  // namespace shmem::kv
