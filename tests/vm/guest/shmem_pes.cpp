// SPDX-License-Identifier: Apache-2.0
// shmem_pes BARRIERS: PEs that make barriers of several teams at once. Each PE checks that no member leaves a barrier
// before all have entered it, and prints by what its barriers were made.
#include <shmem.h>
#include <shmemx.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

class Tested {
 public:
  /// Collective over the world. PEs start, start + stride, ... of the world, `size` of them.
  Tested(std::string name, int start, int stride, int size) : name_(std::move(name)) {
    entered_ = static_cast<std::uint64_t*>(shmem_calloc(1, sizeof *entered_));
    shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, nullptr, 0, &team_);
  }

  void barrier() {
    if (team_ == SHMEM_TEAM_INVALID) {
      return;
    }
    ++rounds_;
    // Relaxed on purpose: the barrier must order these accesses.
    std::atomic_ref(*entered_).store(rounds_, std::memory_order_relaxed);
    shmemx_team_barrier(team_);
    for (int member = 0; member < shmem_team_n_pes(team_); ++member) {
      auto* const there =
          static_cast<std::uint64_t*>(shmem_ptr(entered_, shmem_team_translate_pe(team_, member, SHMEM_TEAM_WORLD)));
      early_ += std::atomic_ref(*there).load(std::memory_order_relaxed) < rounds_ ? 1 : 0;
    }
  }

  /// Asks for another algorithm; returns the result.
  int use(const char* algorithm) { return shmemx_team_set_barrier(team_, algorithm); }

  /// Prints what the team says; false if a barrier ended early, or if the two reports disagree.
  [[nodiscard]] bool report() const {
    if (team_ == SHMEM_TEAM_INVALID) {
      return true;
    }
    shmemx_team_info_t info{};
    shmemx_barrier_stats_t stats{};
    shmemx_team_info(team_, &info);
    shmemx_barrier_stats(team_, &stats);
    const bool same = info.by_device == stats.by_device && info.by_software == stats.by_software;
    std::printf("PE %d: team %s: %s, early %u, by device %llu, by software %llu%s%s%s\n", shmem_my_pe(), name_.c_str(),
                info.algorithm, early_, static_cast<unsigned long long>(info.by_device),
                static_cast<unsigned long long>(info.by_software),
                info.reason[0] == '\0' ? "" : ", reason: ", info.reason,
                same ? "" : ", but shmemx_barrier_stats differs");
    return early_ == 0 && same;
  }

 private:
  const std::string name_;
  shmem_team_t team_ = SHMEM_TEAM_INVALID;
  std::uint64_t* entered_;
  std::uint64_t rounds_ = 0;
  unsigned early_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int barriers = argc > 1 ? std::atoi(argv[1]) : 10;
  shmem_init();
  const int pes = shmem_n_pes();
  std::vector<Tested> teams;
  teams.emplace_back("all", 0, 1, pes);
  teams.emplace_back("even", 0, 2, (pes + 1) / 2);
  teams.emplace_back("odd", 1, 2, pes / 2);
  teams.emplace_back("back", pes / 2, 1, pes - pes / 2);
  for (int i = 0; i < barriers; ++i) {
    for (auto& team : teams) {
      team.barrier();
    }
    shmem_barrier_all();
  }
  // A team may change its algorithm, and come back.
  bool good = true;
  for (const char* algorithm : {"dissemination", "gba"}) {
    good = teams.front().use(algorithm) == 0 && good;
    for (int i = 0; i < barriers; ++i) {
      teams.front().barrier();
    }
  }
  for (const auto& team : teams) {
    good = team.report() && good;
  }
  shmem_finalize();
  return good ? 0 : 1;
}
