// SPDX-License-Identifier: Apache-2.0
// A PE that goes through barriers and sees whether anybody leaves one before all have entered it. Told so, it also cuts
// its own connection to the device in the middle.
//
//   barrier_pes ROUNDS [--cut PE ROUND] [--no-finalize]
#include <shmem.h>
#include <shmemx.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

struct Arguments {
  std::uint64_t rounds = 1000;
  int cut_pe = -1;
  std::uint64_t cut_round = 0;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--cut") == 0 && i + 2 < argc) {
      arguments.cut_pe = std::atoi(argv[i + 1]);
      arguments.cut_round = std::strtoull(argv[i + 2], nullptr, 10);
      i += 2;
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

std::atomic_ref<std::uint64_t> entered_by(std::uint64_t* word, int pe) {
  return std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(shmem_ptr(word, pe)));
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  shmem_init();
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  auto* word = static_cast<std::uint64_t*>(shmem_calloc(1, sizeof(std::uint64_t)));
  if (word == nullptr) {
    return 2;
  }
  std::printf("PE %d pid %d started\n", me, static_cast<int>(::getpid()));
  std::fflush(stdout);

  std::uint64_t early = 0;
  for (std::uint64_t k = 1; k <= arguments.rounds; ++k) {
    if (me == arguments.cut_pe && k == arguments.cut_round) {
      std::printf("PE %d cut %d connections\n", me, cut_connections());
    }
    // Relaxed on purpose: the barrier has to order these.
    entered_by(word, me).store(k, std::memory_order_relaxed);
    shmem_barrier_all();
    for (int pe = 0; pe < pes; ++pe) {
      early += entered_by(word, pe).load(std::memory_order_relaxed) < k ? 1 : 0;
    }
  }

  shmemx_team_info_t stats;
  shmemx_team_info(SHMEM_TEAM_WORLD, &stats);
  std::printf("PE %d: %s, early %llu, by device %llu, by software %llu\n", me, stats.algorithm,
              static_cast<unsigned long long>(early), static_cast<unsigned long long>(stats.by_device),
              static_cast<unsigned long long>(stats.by_software));
  if (me == 0 && stats.reason[0] != '\0') {
    std::printf("reason: %s\n", stats.reason);
  }
  shmem_free(word);
  shmem_finalize();
  return early == 0 ? 0 : 1;
}
