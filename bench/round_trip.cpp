// SPDX-License-Identifier: Apache-2.0
#include "bench/round_trip.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>

#include "bench/clock.hpp"
#include "bench/cpus.hpp"

namespace bench {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::uint64_t kSpinsBetweenLooksAtTheClock = std::uint64_t{1} << 22;
constexpr std::uint64_t kWarmUp = 1'000;

/// No pause instruction: this is the fastest that the machine can be.
void await(const std::atomic<std::uint64_t>& line, std::uint64_t value) {
  std::chrono::steady_clock::time_point limit{};
  for (std::uint64_t spins = 1; line.load(std::memory_order_acquire) != value; ++spins) {
    if (spins % kSpinsBetweenLooksAtTheClock != 0) {
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (limit == std::chrono::steady_clock::time_point{}) {
      limit = now + kPatience;
    } else if (now > limit) {
      throw std::runtime_error("the other side of a round trip has not answered for ten seconds");
    }
  }
}

struct Unmap {
  void operator()(PingPong* lines) const { ::munmap(lines, sizeof *lines); }
};

std::unique_ptr<PingPong, Unmap> make_shared_lines() {
  void* memory = ::mmap(nullptr, sizeof(PingPong), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mmap of shared memory");
  }
  return std::unique_ptr<PingPong, Unmap>(new (memory) PingPong{});
}

[[noreturn]] void echo_process(PingPong& lines, int cpu) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const Pinned pinned(cpu);
    echo(lines, kWarmUp);
    echo(lines, kRoundTrips);
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

}  // namespace

double ping(PingPong& lines, std::uint64_t rounds) {
  const std::uint64_t first = lines.request.load(std::memory_order_relaxed) + 1;
  const Stopwatch watch;
  for (std::uint64_t round = first; round < first + rounds; ++round) {
    lines.request.store(round, std::memory_order_release);  // read by echo
    await(lines.reply, round);
  }
  return watch.nanoseconds() / static_cast<double>(rounds);
}

void echo(PingPong& lines, std::uint64_t rounds) {
  const std::uint64_t first = lines.reply.load(std::memory_order_relaxed) + 1;
  for (std::uint64_t round = first; round < first + rounds; ++round) {
    await(lines.request, round);
    lines.reply.store(round, std::memory_order_release);  // read by ping
  }
}

double raw_round_trip(int other_cpu) {
  const auto lines = make_shared_lines();
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::system_error(errno, std::generic_category(), "fork");
  }
  if (child == 0) {
    echo_process(*lines, other_cpu);
  }
  ping(*lines, kWarmUp);
  const double nanoseconds = ping(*lines, kRoundTrips);
  ::waitpid(child, nullptr, 0);
  return nanoseconds;
}

}  // namespace bench
