// SPDX-License-Identifier: Apache-2.0
// The inputs that fuzzing starts from: one for each valid or invalid action of a client.
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
