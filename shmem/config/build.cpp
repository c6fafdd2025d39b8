// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/build.hpp"

#include <fmt/format.h>

#include "base/json_text.hpp"
#include "shmem/build_values.hpp"
#include "shmem/version.hpp"

namespace shmem {

// libshmem and shmem_info replace this one (commit.cpp.in). Unit tests do not, so that they need
// no new link for each commit.
[[gnu::weak]] const char* build_commit() {
  return "unknown";
}

namespace {

constexpr bool has(const char* value) {
  return *value != '\0';
}

std::string compiler() {
  std::string text = fmt::format("{}, {}", kBuildCompiler, kBuildType);
  return has(kBuildSanitizers) ? fmt::format("{}, -fsanitize={}", text, kBuildSanitizers) : text;
}

/// The values that SHMEM_BOOTSTRAP may have in this build.
std::string bootstraps() {
  return fmt::format("local, uid{}{}", has(kBuildPmix) ? ", pmix" : "", has(kBuildMpi) ? ", mpi" : "");
}

}  // namespace

std::vector<BuildFact> build_facts() {
  return {
      {"version", "version", kVersion},
      {"openshmem", "OpenSHMEM", "1.6"},
      {"commit", "commit", build_commit()},
      {"compiler", "compiler", compiler()},
      {"architecture", "architecture", kBuildArchitecture},
      {"ucx", "UCX", kBuildUcx},
      {"pmix", "PMIx", kBuildPmix},
      {"mpi", "MPI", kBuildMpi},
      {"bootstraps", "bootstraps", bootstraps()},
      {"network", "network", has(kBuildUcx) ? "UCX, loaded by jobs on several nodes" : ""},
  };
}

std::string build_json() {
  std::string text;
  for (const BuildFact& fact : build_facts()) {
    text += fmt::format("{}\"{}\":{}", text.empty() ? "{" : ",", fact.name,
                        fact.value.empty() ? "null" : base::json_text(fact.value));
  }
  return text + "}";
}

}  // namespace shmem
