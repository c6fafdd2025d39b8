// SPDX-License-Identifier: Apache-2.0
// How this libshmem was built: for shmem_info --build and SHMEM_INFO=json.
#pragma once

#include <string>
#include <vector>

namespace shmem {

/// The version of the layout of all JSON that libshmem and shmem_info print. A new field does not change it.
constexpr int kJsonSchema = 1;

/// One fact.
struct BuildFact {
  const char* name;   // in JSON
  const char* title;  // in text
  std::string value;  // "": the part is not in this build
};

/// Version, commit, compiler, the libraries that it was built for, and what it can do.
std::vector<BuildFact> build_facts();

/// The same as a JSON object; null for a part that is not in this build.
std::string build_json();

/// The commit of the source tree, with "-dirty" if files differed from it; "unknown" without git, and in programs that
/// are linked with parts of the library only.
const char* build_commit();

}  // namespace shmem
