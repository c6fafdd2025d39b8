// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/environment.hpp"

#include <unistd.h>

#include <algorithm>

namespace shmem::launcher {

Environment::Environment() {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries_.emplace_back(*entry);
}

void Environment::set(const std::string& name, const std::string& value) {
  const std::string start = name + "=";
  const auto is_it = [&](const std::string& entry) { return entry.rfind(start, 0) == 0; };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_it), entries_.end());
  entries_.push_back(start + value);
}

}  // namespace shmem::launcher
