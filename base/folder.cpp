// SPDX-License-Identifier: Apache-2.0
#include "base/folder.hpp"

#include <dirent.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace base {

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), ::closedir);
  // No other thread has this DIR.
  while (const dirent* const entry = entries ? ::readdir(entries.get()) : nullptr) {  // NOLINT(concurrency-mt-unsafe)
    if (const std::string_view name = entry->d_name; name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace base
