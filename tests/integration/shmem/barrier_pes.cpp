// SPDX-License-Identifier: Apache-2.0
// A PE that goes through barriers and sees whether anybody leaves one before all have entered it. Told so, it also cuts
// its own connection to the device in the middle: at a round, or whenever it gets SIGUSR2. With --watch PE 0 says how
// often the device has come into use, and ends the barriers of all when it gets SIGUSR1.
//
//   barrier_pes ROUNDS [--cut PE ROUND] [--watch]
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace {

struct Arguments {
  std::uint64_t rounds = 1000;
  int cut_pe = -1;
  std::uint64_t cut_round = 0;
  bool watch = false;
};

volatile std::sig_atomic_t asked_to_end = 0;
volatile std::sig_atomic_t asked_to_cut = 0;

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--cut") == 0 && i + 2 < argc) {
      arguments.cut_pe = std::atoi(argv[i + 1]);
      arguments.cut_round = std::strtoull(argv[i + 2], nullptr, 10);
      i += 2;
    } else if (std::strcmp(argv[i], "--watch") == 0) {
      arguments.watch = true;
    } else {
      arguments.rounds = std::strtoull(argv[i], nullptr, 10);
    }
  }
  return arguments;
}

/// Ends every stream socket of this process: the only one is the driver's connection.
int cut_connections() {
  int cut = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM) {
      cut += ::shutdown(fd, SHUT_RDWR) == 0 ? 1 : 0;
    }
  }
  return cut;
}

/// What each PE shows to the others.
struct Shown {
  std::uint64_t entered;  // the last round
  std::uint64_t last;     // of PE 0: the round after which all end
};

/// `word` of this PE's, there.
std::uint64_t look_at(std::uint64_t& word, int pe) {
  auto* const there = static_cast<std::uint64_t*>(shmem_ptr(&word, pe));
  // Relaxed on purpose: the barrier has to order these. Those of another node are looked at by the network.
  return there != nullptr ? std::atomic_ref(*there).load(std::memory_order_relaxed)
                          : shmem_uint64_atomic_fetch(&word, pe);
}

void show(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

std::uint64_t done_by_device() {
  shmemx_team_info_t stats;
  shmemx_team_info(SHMEM_TEAM_WORLD, &stats);
  return stats.by_device;
}

/// Tells when the device has come into use: when so many barriers in a row went through it that a loss is not taken for
/// one more failure to come back (then the next try would take its time), or, where they are slow, for a while.
class Watch {
 public:
  /// After each barrier.
  void look() {
    const std::uint64_t now = done_by_device();
    const bool by_device = std::exchange(before_, now) < now;
    if (!by_device || in_a_row_ == 0) {
      since_ = Clock::now();
      told_ = told_ && by_device;
    }
    in_a_row_ = by_device ? in_a_row_ + 1 : 0;
    if (!told_ && by_device && (in_a_row_ >= kMany || Clock::now() - since_ > std::chrono::seconds{2})) {
      told_ = true;
      std::printf("the device is in use, %d times by now;\n", ++times_);
      std::fflush(stdout);
    }
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kMany = 1100;

  std::uint64_t before_ = 0;
  int in_a_row_ = 0;
  Clock::time_point since_;
  bool told_ = false;
  int times_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  ::signal(SIGUSR1, [](int) { asked_to_end = 1; });
  ::signal(SIGUSR2, [](int) { asked_to_cut = 1; });
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  auto* shown = static_cast<Shown*>(shmem_calloc(1, sizeof(Shown)));
  if (shown == nullptr) {
    return 2;
  }
  std::printf("PE %d pid %d started\n", me, static_cast<int>(::getpid()));
  std::fflush(stdout);

  std::uint64_t early = 0;
  Watch watch;
  if (me == 0) show(shown->last, arguments.rounds);
  shmem_barrier_all();
  for (std::uint64_t k = 1; k <= look_at(shown->last, 0); ++k) {
    if (asked_to_cut != 0 || (me == arguments.cut_pe && k == arguments.cut_round)) {
      asked_to_cut = 0;
      std::printf("PE %d cut %d connections\n", me, cut_connections());
      std::fflush(stdout);
    }
    // The round after this one: others may not look for the last round any more before they enter this one.
    if (me == 0 && asked_to_end != 0 && look_at(shown->last, 0) == arguments.rounds) show(shown->last, k + 1);
    show(shown->entered, k);
    shmem_barrier_all();
    for (int pe = 0; pe < pes; ++pe) {
      early += look_at(shown->entered, pe) < k ? 1 : 0;
    }
    if (arguments.watch && me == 0) watch.look();
  }

  shmemx_team_info_t stats;
  shmemx_team_info(SHMEM_TEAM_WORLD, &stats);
  std::printf("PE %d: %s, early %llu, by device %llu, by software %llu\n", me, stats.algorithm,
              static_cast<unsigned long long>(early), static_cast<unsigned long long>(stats.by_device),
              static_cast<unsigned long long>(stats.by_software));
  if (me == 0 && stats.reason[0] != '\0') {
    std::printf("reason: %s\n", stats.reason);
  }
  shmem_free(shown);
  shmem_finalize();
  return early == 0 ? 0 : 1;
}
