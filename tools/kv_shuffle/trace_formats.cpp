// SPDX-License-Identifier: Apache-2.0
#include "base/number.hpp"
#include "tools/kv_shuffle/trace.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/size_text.hpp"

namespace kv_program {
namespace {

using Json = nlohmann::json;

Error malformed(std::string what) {
  return fail(std::errc::bad_message, std::move(what));
}

/// A value in a message. A line can nest values so deeply that printing them would overflow the stack.
std::string shown(const Json& value) {
  constexpr std::size_t kMost = 60;
  if (value.is_structured()) {
    return value.is_array() ? "an array" : "an object";
  }
  const std::string text = value.dump(-1, ' ', true);
  return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
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
    return malformed(fmt::format("no \"{}\"", name));
  }
  const auto number = whole_number(*found, most);
  if (!number) {
    return malformed(fmt::format("\"{}\" is {}, not a whole number in 0..{}", name, shown(*found), most));
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
      return malformed(fmt::format("\"hash_ids\" holds {}, which is not an id", shown(value)));
    }
    ids.push_back(*id);
  }
  return ids;
}

/// The JSON library's exceptions become Errors here, and nowhere else.
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
    return object.error();
  }
  const auto arrival = number_member(*object, "timestamp", INT64_MAX);
  const auto input = number_member(*object, "input_length", kMostTokens);
  const auto output = number_member(*object, "output_length", kMostTokens);
  auto ids = ids_member(*object);
  for (const auto* number : {&arrival, &input, &output}) {
    if (!*number) {
      return number->error();
    }
  }
  if (!ids) {
    return ids.error();
  }
  const std::int64_t blocks = (*input + kTokensOfPrefixBlock - 1) / kTokensOfPrefixBlock;
  if (static_cast<std::int64_t>(ids->size()) > blocks) {
    return malformed(fmt::format("\"hash_ids\" holds {} ids, and the {} tokens of \"input_length\" are {} of {}",
                                 ids->size(), *input, base::count(blocks, "block"), kTokensOfPrefixBlock));
  }
  return Request{*arrival, *input, *output, *std::move(ids)};
}

namespace {

using Text = std::string_view;

/// All of `text` as a number in least..most, digits only.
std::optional<std::int64_t> number(Text text, std::int64_t least, std::int64_t most) {
  return text.starts_with('-') ? std::nullopt : base::number(text, least, most);
}

/// Text up to `separator`, which is taken off `rest` with it; nothing if there is none.
std::optional<Text> cut(Text& rest, char separator) {
  const auto at = rest.find(separator);
  if (at == Text::npos) {
    return std::nullopt;
  }
  const Text part = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  return part;
}

/// Three fields with two separators in between.
std::optional<std::array<Text, 3>> cut_three(Text text, char separator) {
  const auto first = cut(text, separator);
  const auto second = first ? cut(text, separator) : std::nullopt;
  if (!second || text.find(separator) != Text::npos) {
    return std::nullopt;
  }
  return std::array<Text, 3>{*first, *second, text};
}

std::optional<std::chrono::sys_days> parse_date(Text text) {
  const auto fields = cut_three(text, '-');
  if (!fields) {
    return std::nullopt;
  }
  const auto year = number((*fields)[0], 1970, 9999);
  const auto month = number((*fields)[1], 1, 12);
  const auto day = number((*fields)[2], 1, 31);
  if (!year || !month || !day) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year{static_cast<int>(*year)},
                                         std::chrono::month{static_cast<unsigned>(*month)},
                                         std::chrono::day{static_cast<unsigned>(*day)}};
  return date.ok() ? std::optional(std::chrono::sys_days{date}) : std::nullopt;
}

/// "46.6805900" or "46" in milliseconds.
std::optional<std::int64_t> parse_seconds(Text text) {
  const Text whole = text.substr(0, text.find('.'));
  const auto seconds = number(whole, 0, 60);
  if (!seconds || whole.size() == text.size()) {
    return seconds ? std::optional(*seconds * 1000) : std::nullopt;
  }
  const Text fraction = text.substr(whole.size() + 1);
  if (fraction.empty() || fraction.size() > 9 || fraction.find_first_not_of("0123456789") != Text::npos) {
    return std::nullopt;
  }
  std::string milliseconds(fraction.substr(0, 3));
  milliseconds.resize(3, '0');
  return *seconds * 1000 + *number(milliseconds, 0, 999);
}

std::optional<std::int64_t> parse_time(Text text) {
  const auto fields = cut_three(text, ':');
  if (!fields) {
    return std::nullopt;
  }
  const auto hours = number((*fields)[0], 0, 23);
  const auto minutes = number((*fields)[1], 0, 59);
  const auto milliseconds = parse_seconds((*fields)[2]);
  if (!hours || !minutes || !milliseconds) {
    return std::nullopt;
  }
  return (*hours * 60 + *minutes) * 60'000 + *milliseconds;
}

/// Milliseconds since 1970.
std::optional<std::int64_t> parse_timestamp(Text text) {
  const auto date = cut(text, ' ');
  const auto days = date ? parse_date(*date) : std::nullopt;
  const auto time = days ? parse_time(text) : std::nullopt;
  if (!time) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(days->time_since_epoch()).count() + *time;
}

}  // namespace

Result<Request> parse_azure(std::string_view line) {
  const auto fields = cut_three(line, ',');
  if (!fields) {
    return malformed(fmt::format("not three fields ({})", kAzureHeader));
  }
  const auto arrival = parse_timestamp((*fields)[0]);
  if (!arrival) {
    return malformed(fmt::format("TIMESTAMP is \"{}\", not a time like 2023-11-16 18:15:46.6805900", (*fields)[0]));
  }
  const auto input = number((*fields)[1], 0, kMostTokens);
  const auto output = number((*fields)[2], 0, kMostTokens);
  if (!input || !output) {
    const std::size_t wrong = input ? 2 : 1;
    return malformed(fmt::format("{} is \"{}\", not a whole number in 0..{}",
                                 input ? "GeneratedTokens" : "ContextTokens", (*fields)[wrong], kMostTokens));
  }
  return Request{*arrival, *input, *output, {}};
}

}  // namespace kv_program
