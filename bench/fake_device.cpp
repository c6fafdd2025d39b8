// SPDX-License-Identifier: Apache-2.0
#include "bench/fake_device.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "bench/jobs.hpp"
#include "bench/measure.hpp"
#include "tools/raw_client/raw_client.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kStartLimit{10};
constexpr std::chrono::milliseconds kPoll{5};

bool served(const std::string& socket) {
  try {
    const raw::Client client(socket);
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

FakeDevice::FakeDevice(int cpu)
    : cpu_(cpu),
      socket_("@gba-bench-" + std::to_string(::getpid())),
      process_({sibling_program("gba-fake-device"), "--socket", socket_, "--cpu", std::to_string(cpu)}, {},
               {.output = base::Output::kDiscarded, .grace = kGrace}) {
  wait_until_ready();
}

void FakeDevice::wait_until_ready() {
  const auto end = std::chrono::steady_clock::now() + kStartLimit;
  while (!served(socket_)) {
    if (!process_.running() || std::chrono::steady_clock::now() > end) {
      throw std::runtime_error("the fake device has not become ready within ten seconds");
    }
    std::this_thread::sleep_for(kPoll);
  }
}

double FakeDevice::raw_round_trip_without_it() const {
  process_.stop();
  const double nanoseconds = raw_round_trip(cpu_);
  process_.resume();
  return nanoseconds;
}

void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace bench
