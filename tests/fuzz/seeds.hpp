// SPDX-License-Identifier: Apache-2.0
// The inputs that fuzzing starts from: one for each thing that a client can do, good or bad.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace fuzz {

using Seeds = std::map<std::string, std::vector<std::byte>>;  // by name

Seeds message_seeds();
Seeds session_seeds();

}  // namespace fuzz
