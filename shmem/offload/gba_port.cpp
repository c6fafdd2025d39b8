// SPDX-License-Identifier: Apache-2.0
#include "shmem/offload/gba_port.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <thread>
#include <vector>

namespace shmem {
namespace {

/// The PCI address of the function that `pe` opens, or "" for the device that gba_open() finds.
Result<std::string> function_of(int pe) {
  const char* const named = std::getenv("GBA_DEVICE");
  std::uint32_t count = 0;
  if ((named != nullptr && *named != '\0') || gba_list(nullptr, 0, &count) != 0 || count < 2) {
    return std::string();
  }
  std::vector<std::array<char, GBA_ADDRESS_SIZE>> functions(count);
  gba_list(reinterpret_cast<char(*)[GBA_ADDRESS_SIZE]>(functions.data()), count, &count);
  const auto index = static_cast<std::size_t>(pe);
  if (index >= std::min<std::size_t>(count, functions.size())) {
    return fail(std::errc::device_or_resource_busy,
                fmt::format("this machine's GBAs have {} functions, and the PEs before this one use them", count));
  }
  return std::string(functions[index].data());
}

// How long to try to open a port that another PE has just closed, and the pause between tries.
constexpr std::chrono::seconds kOpenLimit{5};
constexpr std::chrono::milliseconds kOpenPause{5};

bool has_port(const Job& job, int pe) {
  // Relaxed: a barrier of the bootstrap lies between the store and the load.
  return job.metadata(pe).has_port.load(std::memory_order_relaxed) != 0;
}

void publish_port(const Job& job, bool has) {
  job.metadata(job.me).has_port.store(has ? 1 : 0, std::memory_order_relaxed);
}

/// For a process that takes the place of a PE later.
int publish_settled(const Job& job, int ports) {
  job.metadata(job.me).settled_ports.store(ports + 1, std::memory_order_relaxed);
  return ports;
}

/// The number of ports that the other PEs settled when the job started.
int settled_ports(const Job& job) {
  for (int pe = 0; pe < job.size; ++pe) {
    const int settled = job.metadata(pe).settled_ports.load(std::memory_order_relaxed);
    if (pe != job.me && settled != 0) {
      return settled - 1;
    }
  }
  return 0;
}

int count_ports(const Job& job) {
  int count = 0;
  for (int pe = 0; pe < job.size; ++pe) {
    count += has_port(job, pe) ? 1 : 0;
  }
  return count;
}

/// How many PEs from PE 0 on have a port, up to the first one without.
int ports_in_front(const Job& job) {
  int count = 0;
  while (count < job.size && has_port(job, count)) {
    ++count;
  }
  return count;
}

bool open_released(GbaPort& port) {
  const auto deadline = Clock::now() + kOpenLimit;
  while (!port.open()) {
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(kOpenPause);
  }
  return true;
}

}  // namespace

Result<void> GbaPort::open() {
  const auto path = function_of(pe_);
  if (!path) {
    return path.error();
  }
  gba_barrier_port* port = nullptr;
  if (const int error = gba_barrier_port_open(path->empty() ? nullptr : path->c_str(), &port); error != 0) {
    return fail(std::errc{-error}, gba_error_text());
  }
  port_.reset(port);
  return {};
}

Result<gba_device_info> GbaPort::info() const {
  gba_device_info info{};
  if (const int error = gba_barrier_port_get_info(port_.get(), &info); error != 0) {
    return fail(std::errc{-error}, gba_error_text());
  }
  return info;
}

Result<void> try_port(const Job& job, GbaPort& port) {
  auto opened = port.open();
  publish_port(job, opened.has_value());
  return opened;
}

Result<int> settle_ports(const Job& job, GbaPort& port) {
  if (job.bootstrap->replaces()) {
    // Without a port, the joins of a PE that had one fail.
    const int ports = publish_settled(job, settled_ports(job));
    publish_port(job, job.me < ports);
    return ports;
  }
  const int ports = count_ports(job);
  // All nodes of a job take the same steps, even if a node has nothing to settle.
  if (ports == ports_in_front(job) && !job.on_several_nodes()) {
    return publish_settled(job, ports);
  }
  const bool has = has_port(job, job.me);
  const bool entitled = job.me < ports && job.options.gba != GbaUse::kOff;
  if (has && !entitled) {
    port.close();
  }
  if (auto ok = job.bootstrap->barrier(); !ok) {
    return ok.error();
  }
  publish_port(job, entitled && (has || open_released(port)));
  if (auto ok = job.bootstrap->barrier(); !ok) {
    return ok.error();
  }
  const int settled = publish_settled(job, ports_in_front(job));
  if (job.me >= settled) {
    port.close();
  }
  return settled;
}

BarrierWaiter::BarrierWaiter(const WaitPolicy& policy) : policy_(policy) {
  waiting_.spins = policy.spins;
  waiting_.yields = policy.yields;
  waiting_.context = this;
  if (policy.background != nullptr) {
    waiting_.progress = [](void* context) { self(context).policy_.advance(); };
  }
  waiting_.yield = [](void* context) {
    const WaitPolicy& waits = self(context).policy_;
    if (!waits.may_yield(waits.spins)) {
      return 0;
    }
    waits.yield();
    return 1;
  };
  waiting_.check = [](void* context, std::uint64_t* longest_ns) {
    std::chrono::nanoseconds longest{static_cast<std::int64_t>(*longest_ns)};
    const std::errc error = self(context).check(longest);
    *longest_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(longest.count(), 0));
    return -static_cast<int>(error);
  };
  waiting_.nap = [](void* context, std::uint64_t ns) {
    self(context).sleep(std::chrono::nanoseconds{static_cast<std::int64_t>(ns)});
  };
}

void BarrierWaiter::sleep(std::chrono::nanoseconds time) {
  const std::atomic<std::uint32_t> never_woken{0};
  futex_sleep(never_woken, 0, policy_.limit_nap(time), policy_.alarm);
}

}  // namespace shmem
