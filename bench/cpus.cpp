// SPDX-License-Identifier: Apache-2.0
#include "bench/cpus.hpp"

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace bench {
namespace {

cpu_set_t allowed_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  return allowed;
}

}  // namespace

CpuPair first_two_cpus() {
  const cpu_set_t allowed = allowed_cpus();
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE && cpus.size() < 2; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      cpus.push_back(cpu);
    }
  }
  if (cpus.size() < 2) {
    throw std::runtime_error("round trips between processors need two of them, and this process may use only one");
  }
  return {cpus[0], cpus[1]};
}

Pinned::Pinned(int cpu) : before_(allowed_cpus()) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot run on processor " + std::to_string(cpu));
  }
}

Pinned::~Pinned() {
  ::sched_setaffinity(0, sizeof before_, &before_);
}

}  // namespace bench
