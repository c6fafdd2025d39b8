// SPDX-License-Identifier: Apache-2.0
// A PE in more teams than the device has groups: the first teams get a group, the others run in software with a reason,
// and all of them work. Freed groups are used again.
#include "tests/integration/shmem/pe_checks.hpp"

PE_PART(many_teams) {
  constexpr int kTeams = 40;
  shmem_init();
  const int pes = shmem_n_pes();
  int wrong = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<shmem_team_t> teams(kTeams);
    int by_device = 0;
    for (auto& team : teams) {
      wrong += shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, nullptr, 0, &team) != 0 ? 1 : 0;
      shmemx_team_info_t stats;
      shmemx_team_info(team, &stats);
      const bool device = std::strcmp(stats.algorithm, "gba") == 0;
      by_device += device ? 1 : 0;
      wrong += device || stats.reason[0] != '\0' ? 0 : 1;
      if (shmem_my_pe() == 0 && round == 0 && !device) {
        std::printf("reason: %s\n", stats.reason);
      }
    }
    for (int i = 0; i < 20; ++i) {
      for (const auto team : teams) {
        wrong += shmem_team_sync(team) != 0 ? 1 : 0;
      }
    }
    for (const auto team : teams) {
      shmem_team_destroy(team);
    }
    std::printf("PE %d: teams by device %d, wrong %d\n", shmem_my_pe(), by_device, wrong);
  }
  shmem_finalize();
  return wrong == 0 ? 0 : 1;
}
