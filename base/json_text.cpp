// SPDX-License-Identifier: Apache-2.0
#include "base/json_text.hpp"

#include <array>
#include <cstdio>

namespace base {

namespace {

/// The number of bytes of the UTF-8 character at the beginning of `text`, which is not empty; 0: it is not UTF-8.
std::size_t character_length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  const std::size_t length = first >= 0xc2 && first < 0xe0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  // Too long a form, half of a UTF-16 pair, or beyond the last character.
  const bool bad = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) >= 0xa0) ||
                   (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) >= 0x90);
  return bad ? 0 : length;
}

void add_escaped(std::string& out, char character) {
  if (character == '"' || character == '\\') {
    out += '\\';
    out += character;
  } else if (static_cast<unsigned char>(character) < 0x20) {
    std::array<char, 8> code{};
    std::snprintf(code.data(), code.size(), "\\u%04x", static_cast<unsigned>(character));
    out += code.data();
  } else {
    out += character;
  }
}

}  // namespace

std::string json_text(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 1) {
      add_escaped(out, text.front());
    } else {
      out += length == 0 ? std::string_view("\\ufffd") : text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

}  // namespace base
