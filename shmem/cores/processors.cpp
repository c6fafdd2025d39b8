// SPDX-License-Identifier: Apache-2.0
#include "shmem/cores/processors.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/number.hpp"
#include "base/regular_file.hpp"

namespace shmem {
namespace {

/// More than any machine has; kernels are built for up to 8192.
constexpr int kMostCpus = 1 << 16;

/// Not on the heap: PEs move within waits. The kernel refuses a set that is smaller than its own.
using CpuSet = std::array<cpu_set_t, kMostCpus / CPU_SETSIZE>;

std::optional<std::string> first_line(const std::string& file) {
  constexpr std::size_t kMost = std::size_t{64} << 10;
  auto text = base::read_text_file(file, kMost);
  if (!text || text->empty()) {
    return std::nullopt;
  }
  text->resize(std::min(text->find('\n'), text->size()));
  return *std::move(text);
}

std::optional<int> number_in(const std::string& file) {
  const auto line = first_line(file);
  return line ? cpu_number(*line) : std::nullopt;
}

/// The processors that share the last-level cache of `cpu`.
std::optional<Cpus> cache_of(int cpu, const std::string& sysfs) {
  const std::string caches = sysfs + "/cpu/cpu" + std::to_string(cpu) + "/cache/index";
  std::optional<Cpus> last;
  int most = 0;
  for (int index = 0;; ++index) {
    const std::string cache = caches + std::to_string(index);
    const auto level = number_in(cache + "/level");
    if (!level) {
      return last;
    }
    auto cpus = read_cpu_list(cache + "/shared_cpu_list");
    if (*level > most && cpus && std::ranges::binary_search(*cpus, cpu)) {
      most = *level;
      last = std::move(cpus);
    }
  }
}

}  // namespace

std::optional<int> cpu_number(const std::string& text) {
  return base::number(text, 0, kMostCpus - 1);
}

std::optional<Cpus> read_cpu_list(const std::string& file) {
  const auto line = first_line(file);
  return line ? parse_cpus(*line) : std::nullopt;
}

std::optional<Cpus> parse_cpus(const std::string& text) {
  Cpus cpus;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const auto dash = part.find('-');
    const auto first = cpu_number(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : cpu_number(part.substr(dash + 1));
    if (!first || !last || *last < *first) {
      return std::nullopt;
    }
    for (int cpu = *first; cpu <= *last; ++cpu) {
      cpus.push_back(cpu);
    }
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

bool own_cpus(Cpus& cpus) {
  CpuSet set;
  if (::sched_getaffinity(0, sizeof set, set.data()) != 0) {
    return false;
  }
  cpus.clear();
  for (std::size_t part = 0; part < set.size(); ++part) {
    for (int cpu = 0, left = CPU_COUNT(&set[part]); left > 0; ++cpu) {
      if (CPU_ISSET(cpu, &set[part])) {
        cpus.push_back(static_cast<int>(part) * CPU_SETSIZE + cpu);
        --left;
      }
    }
  }
  return true;
}

Result<Cpus> own_cpus() {
  Cpus cpus;
  if (!own_cpus(cpus)) {
    return fail_errno(errno, "cannot ask which processors may be used: sched_getaffinity");
  }
  return cpus;
}

bool run_on(const Cpus& cpus) {
  CpuSet set{};
  for (const int cpu : cpus) {
    CPU_SET_S(static_cast<std::size_t>(cpu), sizeof set, set.data());
  }
  return ::sched_setaffinity(0, CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus.back()) + 1), set.data()) == 0;
}

bool run_on_any() {
  CpuSet set;
  std::memset(set.data(), 0xff, sizeof set);
  return ::sched_setaffinity(0, sizeof set, set.data()) == 0;
}

CpuLocation locate(const Cpus& cpus, const std::string& sysfs) {
  if (cpus.empty()) {
    return {};
  }
  CpuLocation location;
  const auto cache = cache_of(cpus.front(), sysfs);
  if (cache && std::ranges::includes(*cache, cpus)) {
    location.cache = cache->front() + 1;
  }
  const std::string topology = sysfs + "/cpu/cpu" + std::to_string(cpus.front()) + "/topology/";
  auto socket = read_cpu_list(topology + "package_cpus_list");
  if (!socket) {
    socket = read_cpu_list(topology + "core_siblings_list");  // Linux before 5.2
  }
  if (socket && !socket->empty() && std::ranges::includes(*socket, cpus)) {
    location.socket = socket->front() + 1;
  }
  return location;
}

}  // namespace shmem
