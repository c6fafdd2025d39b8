// SPDX-License-Identifier: Apache-2.0
// Text and JSON for standard output.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace tool {

using Json = nlohmann::ordered_json;

void print_text(const std::string& text);
/// On several lines; on one where there is one object after the other.
void print_json(const Json& json);
void print_json_line(const Json& json);

/// Columns as wide as they must be, two blanks between them, the last one as it is.
std::string table(const std::vector<std::vector<std::string>>& rows);

/// "34.2 s", "7.25 us".
std::string duration(std::uint64_t ns);
/// "2 MiB", "4 KiB", "17 bytes".
std::string size(std::uint64_t bytes);
/// "1eaf:0b01".
std::string pci_id(unsigned vendor, unsigned device);
/// "1 group", "2 groups".
std::string count(std::uint64_t number, const std::string& thing);
std::string join(const std::vector<std::string>& parts, const std::string& separator);

}  // namespace tool
