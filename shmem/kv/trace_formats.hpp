// SPDX-License-Identifier: Apache-2.0
// The two formats that public traces have, a line at a time. Errors say what is wrong with the line; the caller adds
// where.
#pragma once

#include <string_view>

#include "shmem/kv/trace.hpp"

namespace shmem::kv {

/// Mooncake: {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}; other members are ignored.
Result<Request> parse_mooncake(std::string_view line);

/// The first line of an Azure LLM inference trace.
constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
/// Azure: 2023-11-16 18:15:46.6805900,374,44
Result<Request> parse_azure(std::string_view line);

}  // namespace shmem::kv
