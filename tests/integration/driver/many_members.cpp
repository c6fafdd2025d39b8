// SPDX-License-Identifier: Apache-2.0
// One barrier group of many processes, from set-up to its end in good order.
//
//   driver_member many DEVICE MEMBERS BARRIERS
//
// Each member is a process that opens the device itself. All add to one shared count before they arrive at k, so a
// member that is released from k must find at least MEMBERS * k there. Exits with 0, or with 1 if a process fails.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gba/gba.h"
#include "tests/integration/driver/driver_member.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kWaitLimit = UINT64_C(200'000'000'000);

/// In a memfd that all processes have mapped. Only member 0 writes the plain members, between two phases.
struct Shared {
  pthread_barrier_t phases;
  gba_group_handle handle;
  std::atomic<std::uint64_t> arrived;
};

struct Job {
  const char* device;
  std::uint32_t members;
  std::uint64_t barriers;
};

Shared& make_shared_page(const Job& job) {
  const int fd = ::memfd_create("many-members", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, sizeof(Shared)) != 0) {
    std::abort();
  }
  void* const page = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (page == MAP_FAILED) {
    std::abort();
  }
  auto& shared = *static_cast<Shared*>(page);
  pthread_barrierattr_t attributes;
  ::pthread_barrierattr_init(&attributes);
  ::pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  if (::pthread_barrier_init(&shared.phases, &attributes, job.members) != 0) {
    std::abort();
  }
  return shared;
}

/// A process of the job. A call that fails ends the process, and with it the job.
class Member {
 public:
  Member(const Job& job, Shared& shared, std::uint32_t index) : job_(job), shared_(shared), index_(index) {}

  void run() {
    check(gba_open(job_.device, &device_), "open");
    if (is_owner()) {
      check(gba_group_alloc(device_, job_.members, 0, &shared_.handle), "alloc");
      check(gba_group_enable(device_, &shared_.handle), "enable");
    }
    end_phase();
    check(gba_group_join(device_, &shared_.handle, index_, &group_), "join");
    end_phase();
    const auto begin = Clock::now();
    for (std::uint64_t k = 1; k <= job_.barriers; ++k) {
      pass(k);
    }
    end_phase();
    const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
    if (is_owner()) {
      std::printf("%u processes, %.1f us per barrier\n", job_.members,
                  time.count() / static_cast<double>(job_.barriers));
    }
    end_in_good_order();
  }

 private:
  [[nodiscard]] bool is_owner() const { return index_ == 0; }

  void check(int error, const char* what) const {
    if (error == 0) {
      return;
    }
    fail(std::string(what) + ": " + gba_error_text());
  }
  [[noreturn]] void fail(const std::string& what) const {
    std::printf("member %u: %s\n", index_, what.c_str());
    std::fflush(stdout);
    std::_Exit(1);
  }
  void end_phase() { ::pthread_barrier_wait(&shared_.phases); }

  void pass(std::uint64_t k) {
    // Relaxed: the barrier under test must order this before the other members' loads below.
    shared_.arrived.fetch_add(1, std::memory_order_relaxed);
    gba_group_arrive(group_, k);
    check(gba_group_wait(group_, k, kWaitLimit), "wait");
    const std::uint64_t arrived = shared_.arrived.load(std::memory_order_relaxed);
    if (arrived < k * job_.members) {
      fail("passed " + std::to_string(k) + " when " + std::to_string(arrived - (k - 1) * job_.members) +
           " had arrived");
    }
  }

  void end_in_good_order() {
    if (is_owner()) {
      check(gba_group_disable(device_, &shared_.handle), "disable");
    }
    end_phase();
    check(gba_group_leave(group_), "leave");
    end_phase();
    if (is_owner()) {
      check(gba_group_free(device_, &shared_.handle), "free");
      report_counters();
    }
    gba_close(device_);
  }
  void report_counters() {
    gba_device_counters counters{};
    check(gba_device_get_counters(device_, &counters), "counters");
    std::printf("releases %llu stale %llu rejected %llu errors %llu interrupts %llu\n",
                static_cast<unsigned long long>(counters.releases), static_cast<unsigned long long>(counters.stale),
                static_cast<unsigned long long>(counters.rejected), static_cast<unsigned long long>(counters.errors),
                static_cast<unsigned long long>(counters.interrupts));
    std::fflush(stdout);
  }

  const Job& job_;
  Shared& shared_;
  const std::uint32_t index_;
  gba_device* device_ = nullptr;
  gba_group* group_ = nullptr;
};

/// Children that do not outlive this process.
class Children {
 public:
  void start(const Job& job, Shared& shared) {
    const pid_t parent = ::getpid();
    for (std::uint32_t index = 0; index < job.members; ++index) {
      const pid_t pid = ::fork();
      if (pid < 0) {
        return;
      }
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) {
          std::_Exit(1);
        }
        Member(job, shared, index).run();
        std::_Exit(0);
      }
      pids_.push_back(pid);
    }
  }
  [[nodiscard]] std::size_t count() const { return pids_.size(); }
  /// False if one has failed; the others, which would wait for it, are killed.
  bool wait() {
    bool good = true;
    while (!pids_.empty()) {
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, 0);
      std::erase(pids_, ended);
      if (good && status != 0) {
        good = false;
        kill();
      }
    }
    return good;
  }
  void kill() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
    }
  }

 private:
  std::vector<pid_t> pids_;
};

}  // namespace

int run_many_members(std::span<char*> words) {
  if (words.size() != 4) {
    return 2;
  }
  const Job job{.device = words[1],
                .members = static_cast<std::uint32_t>(std::strtoul(words[2], nullptr, 10)),
                .barriers = std::strtoull(words[3], nullptr, 10)};
  Shared& shared = make_shared_page(job);
  Children children;
  children.start(job, shared);
  const bool all_started = children.count() == job.members;
  if (!all_started) {
    std::printf("only %zu of %u processes could be started: errno %d\n", children.count(), job.members, errno);
    children.kill();
  }
  return children.wait() && all_started ? 0 : 1;
}
