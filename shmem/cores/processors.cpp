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

}  // namespace shmem
