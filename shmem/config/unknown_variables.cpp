// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/unknown_variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "shmem/config/options.hpp"

namespace shmem {
namespace {

constexpr std::string_view kPrefix = "SHMEM_";

/// A variable of another library, or, with an underscore at the end, all that begin so.
struct Foreign {
  std::string_view name;
  const char* library;
  const char* instead;
};
constexpr const char* kSandia = "Sandia OpenSHMEM's";
constexpr const char* kCray = "Cray OpenSHMEMX's";
constexpr std::array kForeign{
    Foreign{"SHMEM_SYMMETRIC_HEAP_SIZE", "Open MPI's", "SHMEM_SYMMETRIC_SIZE"},
    Foreign{"SHMEM_SYMMETRIC_HEAP_ALLOCATOR", "Open MPI's", nullptr},
    Foreign{"SHMEM_SYMMETRIC_HEAP_USE_HUGE_PAGES", kSandia, "SHMEM_HUGEPAGES"},
    Foreign{"SHMEM_SYMMETRIC_HEAP_", kSandia, nullptr},
    Foreign{"SHMEM_BCAST_ALGORITHM", kSandia, "SHMEM_COLLECTIVE_TUNING"},
    Foreign{"SHMEM_REDUCE_ALGORITHM", kSandia, "SHMEM_COLLECTIVE_TUNING"},
    Foreign{"SHMEM_COLLECT_ALGORITHM", kSandia, "SHMEM_COLLECTIVE_TUNING"},
    Foreign{"SHMEM_FCOLLECT_ALGORITHM", kSandia, "SHMEM_COLLECTIVE_TUNING"},
    Foreign{"SHMEM_COLL_", kSandia, "SHMEM_COLLECTIVE_TUNING"},
    Foreign{"SHMEM_OFI_", kSandia, nullptr},
    Foreign{"SHMEM_BOUNCE_", kSandia, nullptr},
    Foreign{"SHMEM_CMA_", kSandia, nullptr},
    Foreign{"SHMEM_TEAMS_MAX", kSandia, nullptr},
    Foreign{"SHMEM_TRAP_ON_ABORT", kSandia, nullptr},
    Foreign{"SHMEM_VERSION_DISPLAY", kCray, "SHMEM_VERSION"},
    Foreign{"SHMEM_ENV_DISPLAY", kCray, "SHMEM_INFO"},
    Foreign{"SHMEM_MEMINFO_DISPLAY", kCray, "SHMEM_INFO"},
};

bool is_known(std::string_view name) {
  return std::ranges::any_of(option_table(), [name](const OptionSpec& spec) { return name == spec.name; });
}

/// How many letters have to be inserted, removed or replaced to make one of the other.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

/// The variable that is nearly `name`, or "".
std::string_view nearest(std::string_view name) {
  constexpr std::size_t kMost = 3;
  std::size_t best = std::min(kMost, (name.size() - kPrefix.size()) / 3) + 1;
  std::string_view found;
  for (const OptionSpec& spec : option_table()) {
    if (const std::size_t far = distance(name, spec.name); far < best) {
      best = far;
      found = spec.name;
    }
  }
  return found;
}

const Foreign* foreign(std::string_view name) {
  const auto* const found = std::ranges::find_if(kForeign, [name](const Foreign& one) {
    return one.name.ends_with('_') ? name.starts_with(one.name) : name == one.name;
  });
  return found != kForeign.end() ? found : nullptr;
}

/// "" if nothing can be said.
std::string describe(std::string_view name) {
  const std::string begin = fmt::format("shmem: warning: {} is ignored: ", name);
  if (const Foreign* const other = foreign(name)) {
    return begin + (other->instead != nullptr
                        ? fmt::format("it is {}; use {} here", other->library, other->instead)
                        : fmt::format("it is {}, and nothing takes its place here", other->library));
  }
  const std::string_view meant = nearest(name);
  return meant.empty() ? "" : begin + fmt::format("is {} meant? shmem_info lists all variables", meant);
}

}  // namespace

std::string nearest_variable(std::string_view name) {
  const std::string full = name.starts_with(kPrefix) ? std::string(name) : std::string(kPrefix) + std::string(name);
  return std::string(nearest(full));
}

std::vector<std::string> unknown_variables(const char* const* environment) {
  std::vector<std::string> lines;
  for (; *environment != nullptr; ++environment) {
    const std::string_view variable(*environment);
    const std::string_view name = variable.substr(0, variable.find('='));
    if (!name.starts_with(kPrefix) || is_known(name)) {
      continue;
    }
    if (std::string line = describe(name); !line.empty()) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

}  // namespace shmem
