// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/port_agreement.hpp"

#include <thread>

namespace shmem {
namespace {

// For a port that another PE has just given up.
constexpr std::chrono::seconds kPatience{5};
constexpr std::chrono::milliseconds kPause{5};

bool has_port(const Job& job, int pe) {
  // Relaxed: a barrier of the bootstrap lies between the store and the load.
  return job.metadata(pe).has_port.load(std::memory_order_relaxed) != 0;
}

void say(const Job& job, bool has) {
  job.metadata(job.me).has_port.store(has ? 1 : 0, std::memory_order_relaxed);
}

int count_ports(const Job& job) {
  int count = 0;
  for (int pe = 0; pe < job.size; ++pe) {
    count += has_port(job, pe) ? 1 : 0;
  }
  return count;
}

/// PEs 0..n-1 have a port, PE n has none.
int ports_in_front(const Job& job) {
  int count = 0;
  while (count < job.size && has_port(job, count)) {
    ++count;
  }
  return count;
}

bool open_patiently(GbaPort& port) {
  const auto deadline = Clock::now() + kPatience;
  while (!port.open()) {
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

Result<void> try_port(const Job& job, GbaPort& port) {
  auto opened = port.open();
  say(job, opened.has_value());
  return opened;
}

Result<int> settle_ports(const Job& job, GbaPort& port) {
  const int ports = count_ports(job);
  // The nodes of a job take the same steps, whether they have something to settle or not.
  if (ports == ports_in_front(job) && !job.on_several_nodes()) {
    return ports;
  }
  const bool has = has_port(job, job.me);
  const bool shall = job.me < ports && job.options.gba != GbaUse::kOff;
  if (has && !shall) {
    port.close();
  }
  if (auto ok = job.bootstrap->barrier(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  say(job, shall && (has || open_patiently(port)));
  if (auto ok = job.bootstrap->barrier(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  const int settled = ports_in_front(job);
  if (job.me >= settled) {
    port.close();
  }
  return settled;
}

}  // namespace shmem
