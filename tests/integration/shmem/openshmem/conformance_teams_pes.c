/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, section 9.4: what teams are made of, that they can be used at once, configurations, destruction. */
#include "conformance_check.h"

static shmem_team_t split(shmem_team_t parent, int start, int stride, int size) {
  shmem_team_t team = SHMEM_TEAM_WORLD;
  EXPECT(shmem_team_split_strided(parent, start, stride, size, NULL, 0, &team) == 0, "a valid split succeeds");
  return team;
}

/* All PEs, the last first. */
static shmem_team_t reversed(void) {
  return split(SHMEM_TEAM_WORLD, pes - 1, -1, pes);
}

/* Parent and child need no synchronisation before their first use. */
static void test_use_at_once(void) {
  static long values[8];
  values[0] = me;
  come_late(1);
  shmem_team_t team = reversed();
  EXPECT(shmem_long_sum_inscan(team, &values[1], &values[0], 1) == 0, "a new team's first call may be a scan");
  long sum = 0;
  for (int pe = me; pe < pes; ++pe) {
    sum += pe;
  }
  EXPECT(values[1] == sum, "a team's PEs are ordered by their numbers in the team");
  EXPECT(shmem_long_max_reduce(SHMEM_TEAM_WORLD, &values[2], &values[0], 1) == 0 && values[2] == pes - 1,
         "the parent can be used right after a split");
  shmem_team_t rest = split(team, 0, 1, (pes + 1) / 2);
  EXPECT((rest != SHMEM_TEAM_INVALID) == (me >= pes / 2), "a split of a new team has its first PEs");
  if (rest != SHMEM_TEAM_INVALID) {
    EXPECT(shmem_team_my_pe(rest) == pes - 1 - me, "a split of a team counts in the team's numbers");
    EXPECT(shmem_long_min_reduce(rest, &values[3], &values[0], 1) == 0 && values[3] == pes / 2,
           "a split of a new team can be used at once");
    shmem_team_destroy(rest);
  }
  shmem_team_destroy(team);
}

/* Between two teams none of which is the world. */
static void test_translate(void) {
  shmem_team_t back = reversed();
  shmem_team_t even = split(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2);
  for (int pe = 0; pe < pes; ++pe) {
    const int world = pes - 1 - pe;
    EXPECT(shmem_team_translate_pe(back, pe, SHMEM_TEAM_WORLD) == world,
           "a PE of the team has its number in the world");
    if (even != SHMEM_TEAM_INVALID) {
      EXPECT(shmem_team_translate_pe(back, pe, even) == (world % 2 == 0 ? world / 2 : -1),
             "a PE has its number in the other team, or -1 if it is not in it");
    } else {
      EXPECT(shmem_team_translate_pe(back, pe, even) == -1, "no PE is in SHMEM_TEAM_INVALID");
    }
  }
  shmem_team_destroy(even); /* on PEs that are not in it: SHMEM_TEAM_INVALID, which does nothing */
  shmem_team_destroy(back);
}

/* Rows and columns have the sizes and members that the grid has, also for a parent that is not the world. */
static void test_grid(void) {
  shmem_team_t parent = reversed();
  const int mine = shmem_team_my_pe(parent);
  for (int xrange = 1; xrange <= pes + 1; ++xrange) {
    shmem_team_t row, column;
    EXPECT(shmem_team_split_2d(parent, xrange, NULL, 0, &row, NULL, 0, &column) == 0, "a 2D split succeeds");
    const int x = mine % xrange, y = mine / xrange;
    const int in_row = (y + 1) * xrange <= pes ? xrange : pes - y * xrange;
    const int in_column = (pes - x + xrange - 1) / xrange;
    EXPECT(shmem_team_n_pes(row) == in_row, "a row has xrange PEs, the last row what is left");
    EXPECT(shmem_team_n_pes(column) == in_column, "a column has a PE of each row that is long enough");
    for (int i = 0; i < in_row; ++i) {
      EXPECT(shmem_team_translate_pe(row, i, parent) == y * xrange + i, "a row has successive PEs of the parent");
    }
    for (int i = 0; i < in_column; ++i) {
      EXPECT(shmem_team_translate_pe(column, i, parent) == i * xrange + x, "a column has every xrange-th PE");
    }
    shmem_team_destroy(column);
    shmem_team_destroy(row);
  }
  shmem_team_destroy(parent);
}

/* Three dimensions by two splits, as the specification suggests. */
static void test_grid_of_three_dimensions(void) {
  shmem_team_t line, plane, second, third;
  EXPECT(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &line, NULL, 0, &plane) == 0, "the first split succeeds");
  EXPECT(shmem_team_split_2d(plane, 2, NULL, 0, &second, NULL, 0, &third) == 0, "the split of a column succeeds");
  EXPECT(
      shmem_team_my_pe(line) == me % 2 && shmem_team_my_pe(second) == me / 2 % 2 && shmem_team_my_pe(third) == me / 4,
      "the numbers in the three teams are the coordinates");
  shmem_team_destroy(third);
  shmem_team_destroy(second);
  shmem_team_destroy(plane);
  shmem_team_destroy(line);
}

static void test_invalid_parent(void) {
  shmem_team_t row = SHMEM_TEAM_WORLD, column = SHMEM_TEAM_WORLD;
  EXPECT(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &row, NULL, 0, &column) != 0,
         "a 2D split of SHMEM_TEAM_INVALID fails");
  EXPECT(row == SHMEM_TEAM_INVALID && column == SHMEM_TEAM_INVALID, "both teams are SHMEM_TEAM_INVALID then");
}

static void test_config(void) {
  shmem_team_config_t config, told;
  config.num_contexts = -77; /* not looked at without its bit in the mask */
  shmem_team_t team;
  EXPECT(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, &config, 0, &team) == 0,
         "a configuration without a mask is not looked at");
  told.num_contexts = -5;
  EXPECT(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &told) == 0 && told.num_contexts == 0,
         "num_contexts is 0 by default");
  told.num_contexts = -5;
  EXPECT(shmem_team_get_config(team, 0, &told) == 0 && told.num_contexts == -5, "mask 0 asks for nothing");
  EXPECT(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &told) != 0 && told.num_contexts == -5,
         "SHMEM_TEAM_INVALID has no configuration");
  EXPECT(shmem_team_get_config(team, 0, NULL) == 0, "mask 0 needs no place for an answer");
  EXPECT(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, NULL) != 0, "mask 0 makes no team of SHMEM_TEAM_INVALID");
  shmem_team_destroy(team);
  /* Each column, and each row, may have its own configuration. */
  shmem_team_config_t of_row, of_column;
  of_row.num_contexts = 1 + me / 2;
  of_column.num_contexts = 10 + me % 2;
  shmem_team_t row, column;
  EXPECT(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, &of_row, SHMEM_TEAM_NUM_CONTEXTS, &row, &of_column,
                             SHMEM_TEAM_NUM_CONTEXTS, &column) == 0,
         "teams of one split may have different configurations");
  EXPECT(shmem_team_get_config(row, SHMEM_TEAM_NUM_CONTEXTS, &told) == 0 && told.num_contexts == of_row.num_contexts,
         "a row has the configuration that its PEs gave");
  EXPECT(
      shmem_team_get_config(column, SHMEM_TEAM_NUM_CONTEXTS, &told) == 0 && told.num_contexts == of_column.num_contexts,
      "a column has the configuration that its PEs gave");
  shmem_team_destroy(row);
  shmem_team_destroy(column);
}

/* Halves of the job split and destroy teams of their own, not at the same pace. */
static void test_independent_halves(void) {
  const int low = pes / 2;
  shmem_team_t first = low == 0 ? SHMEM_TEAM_INVALID : split(SHMEM_TEAM_WORLD, 0, 1, low);
  shmem_team_t second = split(SHMEM_TEAM_WORLD, low, 1, pes - low);
  shmem_team_t half = me < low ? first : second;
  static long ones[2];
  for (int i = 0; i < (me < low ? 20 : 5); ++i) {
    shmem_team_t part = split(half, shmem_team_n_pes(half) - 1, -1, shmem_team_n_pes(half));
    ones[0] = 1;
    EXPECT(shmem_long_sum_reduce(part, &ones[1], &ones[0], 1) == 0 && ones[1] == shmem_team_n_pes(half),
           "teams of one half do not depend on the other half");
    shmem_team_destroy(part);
  }
  shmem_team_destroy(half);
  shmem_barrier_all();
}

/* Destroying a team destroys its shareable contexts: more than there can be at once are made one after another. */
static void test_destroy_frees_contexts(void) {
  for (int round = 0; round < 3; ++round) {
    shmem_team_t team = reversed();
    for (int i = 0; i < 2000; ++i) {
      shmem_ctx_t ctx;
      EXPECT(shmem_team_create_ctx(team, SHMEM_CTX_SERIALIZED, &ctx) == 0, "contexts of a destroyed team take no room");
    }
    shmem_team_destroy(team);
  }
}

/* No PE leaves before all have come, and the PEs that are not in the team do not matter. */
static void test_sync(void) {
  static long come;
  shmem_team_t team = split(SHMEM_TEAM_WORLD, pes - 1, -1, (pes + 1) / 2);
  shmem_barrier_all();
  for (int round = 1; team != SHMEM_TEAM_INVALID && round <= 3 * pes; ++round) {
    come_late(round);
    shmem_long_atomic_inc(&come, pes - 1);
    shmem_quiet();
    EXPECT(shmem_team_sync(team) == 0, "shmem_team_sync returns 0");
    EXPECT(shmem_long_atomic_fetch(&come, pes - 1) >= (long)round * shmem_team_n_pes(team),
           "shmem_team_sync returns when all PEs of the team have come");
  }
  shmem_team_destroy(team);
  shmem_barrier_all();
}

PE_PART(conformance_teams) {
  start();
  test_use_at_once();
  test_translate();
  test_grid();
  test_grid_of_three_dimensions();
  test_invalid_parent();
  test_config();
  test_independent_halves();
  test_destroy_frees_contexts();
  test_sync();
  shmem_finalize();
  return 0;
}
