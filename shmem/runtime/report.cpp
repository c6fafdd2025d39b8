// SPDX-License-Identifier: Apache-2.0
// What the first PE prints at start: SHMEM_VERSION, SHMEM_INFO, and huge pages that are not available.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json_text.hpp"
#include "base/size_text.hpp"
#include "shmem/config/build.hpp"
#include "shmem/config/config_file.hpp"
#include "shmem/config/log.hpp"
#include "shmem/config/unknown_variables.hpp"
#include "shmem/cores/cpu_quota.hpp"
#include "shmem/memory/pages.hpp"
#include "shmem/runtime/runtime.hpp"
#include "shmem/version.hpp"

namespace shmem {
namespace {

/// The variables of this process. A configuration file that has become wrong since the start counts as empty.
std::vector<Setting> settings_now() {
  const auto config = process_config();
  return read_settings(process_environment(), config ? *config : ConfigValues());
}

/// The variables as members of a JSON array.
std::string variables_json() {
  std::string text;
  for (const Setting& setting : settings_now()) {
    text += fmt::format(R"({}{{"name":"{}","value":{},"from":{}}})", text.empty() ? "" : ",", setting.spec->name,
                        base::json_text(setting.value), base::json_text(setting.source));
  }
  return text;
}

std::string because(const std::string& reason) {
  return reason.empty() ? "" : fmt::format(" ({})", reason);
}

}  // namespace

void Runtime::report_start() const {
  if (job_.world_me() != 0) {
    return;
  }
  if (job_.options.info_json) {
    return report_json();
  }
  for (const std::string& line : unknown_variables(environ)) {
    log(LogLevel::kWarn, "%s", line.c_str());
  }
  if (job_.options.version || job_.options.info) {
    log(LogLevel::kInfo, "shmem: libshmem %s (OpenSHMEM 1.6 names), %s, %zu MiB of heap each", kVersion,
        base::count(job_.world_size(), "PE").c_str(), job_.memory.heap_size() >> 20);
  }
}

void Runtime::report_rest() const {
  if (job_.world_me() != 0 || job_.options.info_json) {
    return;
  }
  if (job_.options.info && job_.on_several_nodes()) {
    log(LogLevel::kInfo, "shmem: %d nodes, by %s", job_.nodes.count, job_.network->describe().c_str());
  } else if (job_.options.info) {
    log(LogLevel::kInfo, "shmem: 1 node");
  }
  report_processors();
  report_placement();
  if (job_.options.info) {
    const std::string& why_not = job_.globals.why_not();
    log(LogLevel::kInfo, "shmem: global variables: %s%s", why_not.empty() ? "symmetric, " : "not symmetric: ",
        why_not.empty() ? job_.globals.describe().c_str() : why_not.c_str());
    report_variables();
  }
}

void Runtime::report_json() const {
  const Placement& placement = job_.memory.placement();
  const std::string& why_not = job_.globals.why_not();
  const std::string pages = to_string(placement.pages) + because(job_.memory.pages_reason());
  const std::string text = fmt::format(
      R"({{"schema":{},"event":"start","build":{},"pes":{},"heap_bytes":{},"nodes":{},"network":{},"globals":{},)"
      R"("pages":{},"numa":{},"variables":[{}]}})",
      kJsonSchema, build_json(), job_.world_size(), job_.memory.heap_size(), job_.nodes.count,
      job_.on_several_nodes() ? base::json_text(job_.network->describe()) : "null",
      base::json_text(why_not.empty() ? "symmetric, " + job_.globals.describe() : "not symmetric: " + why_not),
      base::json_text(pages), base::json_text(placement.numa + because(placement.numa_reason)), variables_json());
  log(LogLevel::kInfo, "%s", text.c_str());
}

// OpenSHMEM 1.6, section 8: SHMEM_INFO prints helpful text about all its variables, which are these.
void Runtime::report_variables() const {
  constexpr std::array<std::string_view, 4> kOfTheSpecification{"SHMEM_VERSION", "SHMEM_INFO", "SHMEM_SYMMETRIC_SIZE",
                                                                "SHMEM_DEBUG"};
  log(LogLevel::kInfo, "shmem: environment variables that are set, and those of OpenSHMEM (shmem_info lists all %zu):",
      option_table().size());
  for (const Setting& setting : settings_now()) {
    const bool is_standard = std::ranges::find(kOfTheSpecification, setting.spec->name) != kOfTheSpecification.end();
    if (is_standard || setting.source != "default") {
      log(LogLevel::kInfo, "shmem:   %s=%s (%s): %s", setting.spec->name, setting.value.c_str(), setting.source.c_str(),
          setting.spec->help);
    }
  }
}

/// After the last barrier, before which all PEs of this node have made their last calls.
void Runtime::report_calls() const {
  if (!job_.options.info || job_.world_me() != 0) {
    return;
  }
  constexpr std::array<const char*, kCallKinds> kNames{"put", "get", "atomic", "collective"};
  std::string text;
  for (std::size_t kind = 0; kind < kCallKinds; ++kind) {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
    for (int pe = 0; pe < job_.size; ++pe) {
      calls += job_.metadata(pe).calls.calls(kind);
      bytes += job_.metadata(pe).calls.bytes(kind);
    }
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", base::count(calls, kNames[kind]),
                        base::count(bytes, "byte"));
  }
  log_info(job_.options.info_json,
           {"calls", 0, fmt::format("calls of the {} of this node: {}", base::count(job_.size, "PE"), text)});
}

void Runtime::report_processors() const {
  if (!job_.options.info) {
    return;
  }
  const auto own = own_cpus();
  const int mine = own ? static_cast<int>(own->size()) : job_.processors;
  std::string text = fmt::format("{} for the {} of this node", job_.processors, base::count(job_.size, "PE"));
  if (job_.size > job_.processors) {
    text += ", which take turns";
  } else {
    text += mine == 1 ? ", PE 0 is bound to one" : ", PEs are not bound to one each";
  }
  if (const auto quota = cpu_quota(); quota) {
    text += fmt::format("; control groups leave this PE {}.{:03} of them, and have throttled it {}",
                        quota->thousandths / 1000, quota->thousandths % 1000, base::count(times_throttled(), "time"));
  }
  log(LogLevel::kInfo, "shmem: processors: %s", text.c_str());
}

void Runtime::report_sharing() const {
  if (!job_.options.info || job_.options.info_json || !job_.sharing) {
    return;
  }
  const char* const who = job_.size > job_.processors ? "program" : "PE";
  if (job_.sharing->refused()) {
    log(LogLevel::kInfo, "shmem: PE %d could not leave a processor that another %s used: the kernel refused it",
        job_.world_me(), who);
  }
  if (const auto moves = job_.sharing->moves(); moves != 0) {
    log(LogLevel::kInfo, "shmem: PE %d has left a processor that another %s used %llu times", job_.world_me(), who,
        static_cast<unsigned long long>(moves));
  }
}

void Runtime::report_placement() const {
  const Placement& placement = job_.memory.placement();
  const std::string pages = to_string(placement.pages) + because(job_.memory.pages_reason());
  const HugePages wanted = job_.options.placement.pages;
  const bool missed = (wanted == HugePages::kHugetlb && placement.pages != PageKind::kHugetlb) ||
                      (wanted == HugePages::kThp && placement.pages != PageKind::kThp);
  if (job_.options.info) {
    log(LogLevel::kInfo, "shmem: pages of the heaps: %s; NUMA: %s%s", pages.c_str(), placement.numa.c_str(),
        because(placement.numa_reason).c_str());
  } else if (missed) {
    log(LogLevel::kWarn, "shmem: SHMEM_HUGEPAGES=%s is not available; pages of the heaps: %s",
        wanted == HugePages::kThp ? "thp" : "hugetlb", pages.c_str());
  }
}

}  // namespace shmem
