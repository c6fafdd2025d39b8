// SPDX-License-Identifier: Apache-2.0
// A PE that runs barriers and checks that no PE leaves one before all have entered it. With --cut, PE cuts its own
// connection to the device at ROUND; it also does so whenever it gets SIGUSR2. With --watch, PE 0 prints how often the
// PEs have begun to use the device. SIGUSR1 to PE 0 ends the barriers of all PEs. The PEs record their progress in
// their heaps or, with --board, in a file that all of them share, which needs no network. With --skew, each PE enters
// each barrier late by a random time up to MICROSECONDS.
//
//   barrier_pes ROUNDS [--cut PE ROUND] [--watch] [--board FILE] [--skew MICROSECONDS]
#include <fcntl.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

namespace {

struct Arguments {
  std::uint64_t rounds = 1000;
  int cut_pe = -1;
  std::uint64_t cut_round = 0;
  bool watch = false;
  const char* board = nullptr;
  unsigned skew = 0;
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
    } else if (std::strcmp(argv[i], "--board") == 0 && i + 1 < argc) {
      arguments.board = argv[++i];
    } else if (std::strcmp(argv[i], "--skew") == 0 && i + 1 < argc) {
      arguments.skew = static_cast<unsigned>(std::atoi(argv[++i]));
    } else {
      arguments.rounds = std::strtoull(argv[i], nullptr, 10);
    }
  }
  return arguments;
}

/// Shuts down every stream socket of AF_UNIX: the only one is the driver's connection.
int cut_connections() {
  int cut = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    int type = 0;
    int domain = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM &&
        ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX) {
      cut += ::shutdown(fd, SHUT_RDWR) == 0 ? 1 : 0;
    }
  }
  return cut;
}

/// The progress that each PE records for the others.
struct Shown {
  std::uint64_t entered;  // the last round
  std::uint64_t last;     // written by PE 0: the round after which all end
};

class Board {
 public:
  /// Collective. Uses the heaps if `file` is nullptr. It may fail: see exists().
  Board(const char* file, int me) : me_(me) {
    if (file == nullptr) {
      in_heap_ = static_cast<Shown*>(shmem_calloc(1, sizeof(Shown)));
      return;
    }
    const int fd = ::open(file, O_RDWR | O_CLOEXEC);
    void* const all = ::mmap(nullptr, kFile, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ::close(fd);
    in_file_ = all == MAP_FAILED ? nullptr : static_cast<Shown*>(all);
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board() {
    if (in_file_ != nullptr) {
      ::munmap(in_file_, kFile);
    }
  }
  /// Collective.
  void end() {
    if (in_heap_ != nullptr) {
      shmem_free(in_heap_);
    }
  }

  [[nodiscard]] bool exists() const { return in_heap_ != nullptr || in_file_ != nullptr; }
  void show(std::uint64_t Shown::*word, std::uint64_t value) {
    Shown& mine = in_file_ != nullptr ? in_file_[me_] : *in_heap_;
    std::atomic_ref(mine.*word).store(value, std::memory_order_relaxed);
  }
  /// Relaxed on purpose: the barrier must order these accesses. Words of another node are read through the network.
  [[nodiscard]] std::uint64_t look(std::uint64_t Shown::*word, int pe) const {
    Shown* const there = in_file_ != nullptr ? in_file_ + pe : static_cast<Shown*>(shmem_ptr(in_heap_, pe));
    return there != nullptr ? std::atomic_ref(there->*word).load(std::memory_order_relaxed)
                            : shmem_uint64_atomic_fetch(&(in_heap_->*word), pe);
  }

 private:
  static constexpr std::size_t kFile = 4096;

  int me_;
  Shown* in_heap_ = nullptr;
  Shown* in_file_ = nullptr;  // those of all PEs, by number
};

std::uint64_t done_by_device() {
  shmemx_team_info_t stats;
  shmemx_team_info(SHMEM_TEAM_WORLD, &stats);
  return stats.by_device;
}

/// Reports that the PEs use the device: when it has done so many barriers in a row that the library would not count a
/// loss as one more failed return (the next attempt would be delayed then) or, if barriers are slow, when it has done
/// them for two seconds.
class Watch {
 public:
  /// Called after each barrier.
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
  Board board(arguments.board, me);
  if (!board.exists()) {
    return 2;
  }
  std::printf("PE %d pid %d started\n", me, static_cast<int>(::getpid()));
  std::fflush(stdout);

  std::uint64_t early = 0;
  std::minstd_rand random(static_cast<unsigned>(me) + 1);
  Watch watch;
  if (me == 0) {
    board.show(&Shown::last, arguments.rounds);
  }
  shmem_barrier_all();
  for (std::uint64_t k = 1; k <= board.look(&Shown::last, 0); ++k) {
    if (asked_to_cut != 0 || (me == arguments.cut_pe && k == arguments.cut_round)) {
      asked_to_cut = 0;
      std::printf("PE %d cut %d connections\n", me, cut_connections());
      std::fflush(stdout);
    }
    // The round after this one: other PEs may enter this one without reading the number of the last round again.
    if (me == 0 && asked_to_end != 0 && board.look(&Shown::last, 0) == arguments.rounds) {
      board.show(&Shown::last, k + 1);
    }
    if (arguments.skew != 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % arguments.skew));
    }
    board.show(&Shown::entered, k);
    shmem_barrier_all();
    for (int pe = 0; pe < pes; ++pe) {
      early += board.look(&Shown::entered, pe) < k ? 1 : 0;
    }
    if (arguments.watch && me == 0) {
      watch.look();
    }
  }

  shmemx_team_info_t stats;
  shmemx_team_info(SHMEM_TEAM_WORLD, &stats);
  std::printf("PE %d: %s, early %llu, by device %llu, by software %llu\n", me, stats.algorithm,
              static_cast<unsigned long long>(early), static_cast<unsigned long long>(stats.by_device),
              static_cast<unsigned long long>(stats.by_software));
  // The others only say that a member left.
  const std::string_view reason = stats.reason;
  if (!reason.empty() && (me == 0 || reason.find("a member left the group") == reason.npos)) {
    std::printf("reason: %s (PE %d)\n", stats.reason, me);
  }
  board.end();
  shmem_finalize();
  return early == 0 ? 0 : 1;
}
