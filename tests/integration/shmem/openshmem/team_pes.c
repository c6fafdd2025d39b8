/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSHMEM 1.6, sections 9.4, 9.5, 9.9 and 9.12: teams, contexts, sessions, ordering. */
#include "check.h"

static long inbox[16];
static int me, pes;

static void test_predefined(void) {
  CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == pes);
  CHECK(shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1 && shmem_team_my_pe(SHMEM_TEAM_SHARED) >= 0);
  for (int i = 0; i < shmem_team_n_pes(SHMEM_TEAM_SHARED); ++i) {
    CHECK(shmem_team_ptr(SHMEM_TEAM_SHARED, &inbox, i) != NULL);
  }
  CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
  for (int pe = 0; pe < pes; ++pe) {
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_WORLD) == pe);
  }
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, pes, SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, -1, SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1);
  CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1);
  shmem_team_destroy(SHMEM_TEAM_INVALID);
  CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0 && shmem_team_sync(SHMEM_TEAM_SHARED) == 0);
}

/* PEs start, start + stride, ... in this order; a negative `stride` counts down. */
static void check_strided(int start, int stride, int size) {
  shmem_team_t team = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team) == 0);
  int mine = -1;
  for (int i = 0; i < size; ++i) {
    if (start + i * stride == me) {
      mine = i;
    }
  }
  CHECK((team != SHMEM_TEAM_INVALID) == (mine >= 0));
  CHECK(shmem_team_my_pe(team) == mine && shmem_team_n_pes(team) == (mine >= 0 ? size : -1));
  if (team == SHMEM_TEAM_INVALID) {
    return;
  }
  for (int i = 0; i < size; ++i) {
    CHECK(shmem_team_translate_pe(team, i, SHMEM_TEAM_WORLD) == start + i * stride);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, start + i * stride, team) == i);
    CHECK(shmem_team_ptr(team, inbox, i) == shmem_ptr(inbox, start + i * stride));
  }
  /* Its collectives, contexts and teams use its PE numbers. */
  long* block = inbox + 8;
  block[0] = 100 + mine;
  CHECK(shmem_team_sync(team) == 0);
  CHECK(shmem_long_broadcast(team, block + 1, block, 1, size - 1) == 0 && block[1] == 100 + size - 1);
  CHECK(shmem_long_sum_inscan(team, block + 2, block, 1) == 0);
  CHECK(block[2] == 100L * (mine + 1) + (long)mine * (mine + 1) / 2);
  shmem_ctx_t ctx = SHMEM_CTX_INVALID;
  CHECK(shmem_team_create_ctx(team, 0, &ctx) == 0);
  shmem_ctx_long_p(ctx, inbox, mine, (mine + 1) % size);
  shmem_ctx_quiet(ctx);
  CHECK(shmem_team_sync(team) == 0);
  CHECK(inbox[0] == (mine + size - 1) % size);
  shmem_team_t last = SHMEM_TEAM_INVALID;
  CHECK(shmem_team_split_strided(team, size - 1, 1, 1, NULL, 0, &last) == 0);
  CHECK((last != SHMEM_TEAM_INVALID) == (mine == size - 1));
  if (last != SHMEM_TEAM_INVALID) {
    shmem_team_destroy(last);
  }
  shmem_ctx_destroy(ctx);
  shmem_team_destroy(team);
}

static void test_strided(void) {
  check_strided(0, 1, pes);
  check_strided(pes - 1, -1, pes);
  check_strided(0, 2, (pes + 1) / 2);
  check_strided((pes - 1) / 2 * 2, -2, (pes + 1) / 2);
  check_strided(pes - 1, 1, 1);
  check_strided(pes / 2, 0, 1);
  check_strided(pes / 2, -5, 1);
  const int wrong[][3] = {{0, 0, 2}, {-1, 1, 1}, {pes, 1, 1}, {0, 1, pes + 1}, {0, -1, 2}, {0, 1, 0}, {pes - 1, 1, 2}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    shmem_team_t team = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, wrong[i][0], wrong[i][1], wrong[i][2], NULL, 0, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
  }
  shmem_team_t team = SHMEM_TEAM_WORLD;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID);
}

static void test_2d(void) {
  for (int xrange = 1; xrange <= pes + 1; ++xrange) {
    shmem_team_t row, column;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, xrange, NULL, 0, &row, NULL, 0, &column) == 0);
    CHECK(shmem_team_my_pe(row) == me % xrange && shmem_team_my_pe(column) == me / xrange);
    CHECK(shmem_team_translate_pe(row, 0, SHMEM_TEAM_WORLD) == me - me % xrange);
    CHECK(shmem_team_translate_pe(column, 0, SHMEM_TEAM_WORLD) == me % xrange);
    shmem_team_sync(row);
    shmem_team_sync(column);
    shmem_team_destroy(row);
    shmem_team_destroy(column);
  }
}

static void test_config(void) {
  shmem_team_config_t config, told;
  memset(&told, 0, sizeof told);
  config.num_contexts = 3;
  shmem_team_t team;
  CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, &config, SHMEM_TEAM_NUM_CONTEXTS, &team) == 0);
  CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &told) == 0 && told.num_contexts == 3);
  CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &told) != 0);
  shmem_team_destroy(team);
}

/* Section 9.4: a split that one PE gets wrong fails on all PEs. */
static void test_wrong_config_on_one_pe(void) {
  shmem_team_config_t config;
  for (int wrong = 0; wrong < pes; ++wrong) {
    config.num_contexts = me == wrong ? -1 : 1;
    shmem_team_t team = SHMEM_TEAM_WORLD, row = SHMEM_TEAM_WORLD, column = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, &config, SHMEM_TEAM_NUM_CONTEXTS, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, wrong, 1, 1, NULL, me == wrong ? SHMEM_TEAM_NUM_CONTEXTS : 0,
                                   &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, &row, &config, SHMEM_TEAM_NUM_CONTEXTS, &column) != 0);
    CHECK(row == SHMEM_TEAM_INVALID && column == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team) == 0);
    shmem_team_sync(team);
    shmem_team_destroy(team);
  }
}

static void use_context(shmem_ctx_t ctx) {
  const int right = (me + 1) % pes, left = (me + pes - 1) % pes;
  shmem_ctx_session_config_t session;
  session.total_ops = 4;
  shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &session, SHMEM_CTX_SESSION_TOTAL_OPS);
  shmem_ctx_long_p(ctx, inbox + 1, me + 10, right);
  shmem_ctx_fence(ctx);
  shmem_ctx_long_atomic_add(ctx, inbox + 2, 1, right);
  long value = me + 20;
  shmem_ctx_long_put_nbi(ctx, inbox + 3, &value, 1, right);
  shmem_ctx_pe_quiet(ctx, &right, 1);
  shmem_ctx_session_stop(ctx);
  shmem_ctx_quiet(ctx);
  shmem_sync_all();
  CHECK(inbox[1] == left + 10 && inbox[2] == 1 && inbox[3] == left + 20);
  CHECK(shmem_ctx_long_g(ctx, inbox + 1, right) == me + 10);
  shmem_sync_all();
  inbox[2] = 0;
  shmem_sync_all();
}

static void test_contexts(void) {
  const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                          SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE};
  for (size_t i = 0; i < sizeof options / sizeof *options; ++i) {
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    CHECK(shmem_ctx_create(options[i], &ctx) == 0 && ctx != SHMEM_CTX_INVALID && ctx != SHMEM_CTX_DEFAULT);
    shmem_team_t team = SHMEM_TEAM_INVALID;
    CHECK(shmem_ctx_get_team(ctx, &team) == 0 && team == SHMEM_TEAM_WORLD);
    use_context(ctx);
    shmem_ctx_destroy(ctx);
  }
  use_context(SHMEM_CTX_DEFAULT);
  /* Section 9.12: calls on an invalid context do nothing. */
  shmem_ctx_destroy(SHMEM_CTX_INVALID);
  shmem_ctx_fence(SHMEM_CTX_INVALID);
  shmem_ctx_quiet(SHMEM_CTX_INVALID);
  shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, &me, 1);
  shmem_team_t team = SHMEM_TEAM_WORLD;
  CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
  CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
  shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
  CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
}

/* Section 9.12: a put before a fence is delivered before a put after it; after quiet all puts are delivered. */
static void test_ordering(void) {
  const int right = (me + 1) % pes;
  static long data[512];
  static long flag;
  long source[512];
  for (long round = 1; round <= 200; ++round) {
    for (int i = 0; i < 512; ++i) {
      source[i] = round * 1000 + i;
    }
    shmem_long_put_nbi(data, source, 512, right);
    if (round % 4 == 0) {
      shmem_quiet();
    } else if (round % 4 == 1) {
      shmem_pe_quiet(&right, 1);
    } else {
      shmem_fence();
    }
    shmem_long_p(&flag, round, right);
    shmem_long_wait_until(&flag, SHMEM_CMP_GE, round);
    for (int i = 0; i < 512; ++i) {
      CHECK(data[i] == round * 1000 + i);
    }
    shmem_barrier_all();
  }
  shmem_pe_quiet(NULL, 0);
}

PE_PART(team) {
  shmem_init();
  me = shmem_my_pe();
  pes = shmem_n_pes();
  test_predefined();
  test_strided();
  test_2d();
  test_config();
  test_wrong_config_on_one_pe();
  test_contexts();
  test_ordering();
  shmem_finalize();
  return 0;
}
