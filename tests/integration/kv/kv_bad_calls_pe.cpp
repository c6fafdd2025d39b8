// SPDX-License-Identifier: Apache-2.0
// One of four PEs that make each invalid call, one after the other. With an argument: calls that fail after a timeout.
//
//   kv_pes bad_calls [late | late-pairs | late-sender-pairs | once-more | once-more-pairs | mixed]
#include "tests/integration/kv/kv_bad_calls.hpp"

#include <unistd.h>

#include <algorithm>

#include "tests/integration/kv/kv_pes.hpp"

namespace kv_test {
namespace {

using kv_model::Moves;

Moves in_model(const std::vector<shmemx_kv_move_t>& moves) {
  Moves all;
  for (const auto& move : moves) {
    all.push_back({{move.src_pe, move.src_block}, {move.dst_pe, move.dst_block}});
  }
  return all;
}

}  // namespace

void Bench::expect_untouched_and_works(const char* name) {
  expect_untouched(name);
  const Call good = call();
  const int error = make(good);
  expect(name, error == 0, "the next shuffle fails: " + std::string(error != 0 ? shmemx_error_text() : ""));
  caches_.apply(in_model(good.moves), good.mode);
  expect_untouched((std::string(name) + ", and then a good one").c_str());
}

void Bench::refused(const char* name, int bad, const std::string& text, const std::function<void(Call&)>& spoil) {
  Call spoilt = call();
  if (bad == kAll || bad == me_) {
    spoil(spoilt);
  }
  const int error = make(spoilt);
  const std::string said = error != 0 ? shmemx_error_text() : "";
  const std::string wanted = bad == kAll || bad == me_ ? text : "PE " + std::to_string(bad);
  std::printf("PE %d: %s: %d %s\n", me_, name, error, said.c_str());
  expect(name, error < 0 && said.find(wanted) != std::string::npos, "the text has no \"" + wanted + "\": " + said);
  expect_untouched_and_works(name);
}

void Bench::pairs_refused(const char* name, int bad, const std::string& text, const std::function<void(Call&)>& spoil) {
  Call spoilt = pairs_call();
  if (bad == kAll || bad == me_) {
    spoil(spoilt);
  }
  const int error = make(spoilt);
  const std::string said = error != 0 ? shmemx_error_text() : "";
  std::printf("PE %d: %s: %d %s\n", me_, name, error, said.c_str());
  const bool other_pair = bad != kAll && me_ != bad && me_ != (bad ^ 1);
  if (other_pair) {
    expect(name, error == 0, "the other pair's fails: " + said);
  } else {
    const std::string wanted = bad == kAll || bad == me_ ? text : "PE " + std::to_string(bad);
    expect(name, error < 0 && said.find(wanted) != std::string::npos, "the text has no \"" + wanted + "\": " + said);
  }
  if (bad == 0 || bad == 1) {
    caches_.apply(in_model({{3, 1, 2, 0}, {3, 2, 2, 7}}), SHMEMX_KV_COPY);
  }
  if (bad == 2 || bad == 3) {
    caches_.apply(in_model({{0, 0, 1, 4}, {0, 3, 1, 5}}), SHMEMX_KV_COPY);
  }
  expect_untouched_and_works(name);
}

void bad_plans(Bench& bench) {
  for (const int bad : {kAll, 0, 3}) {
    bench.refused("source block", bad, "8", [](Call& call) { call.moves[1].src_block = 8; });
    bench.refused("destination block", bad, "800", [](Call& call) { call.moves[3].dst_block = 800; });
    bench.refused("source PE", bad, "4", [](Call& call) { call.moves[2].src_pe = kPes; });
    bench.refused("destination PE", bad, "4711", [](Call& call) { call.moves[2].dst_pe = 4711; });
    bench.refused("no plan", bad, "plan", [](Call& call) { call.without_plan = true; });
    bench.refused("no cache", bad, "cache", [](Call& call) { call.without_cache = true; });
  }
  for (const int bad : {0, 1, 3}) {
    bench.refused("one move more", bad, "plan", [](Call& call) { call.moves.push_back({0, 2, 1, 3}); });
    bench.refused("one move fewer", bad, "plan", [](Call& call) { call.moves.pop_back(); });
    bench.refused("no moves", bad, "plan", [](Call& call) { call.moves.clear(); });
    bench.refused("other mode", bad, "plan", [](Call& call) { call.mode = SHMEMX_KV_MOVE; });
    bench.refused("other source PE", bad, "plan", [](Call& call) { call.moves[0].src_pe = 3; });
    bench.refused("other source block", bad, "plan", [](Call& call) { call.moves[0].src_block = 2; });
    bench.refused("other destination PE", bad, "plan", [](Call& call) { call.moves[0].dst_pe = 3; });
    bench.refused("other destination block", bad, "plan", [](Call& call) { call.moves[0].dst_block = 5; });
    bench.refused("exchanged sources", bad, "plan",
                  [](Call& call) { std::swap(call.moves[0].src_block, call.moves[1].src_block); });
  }
  // The same plan, given differently: the moves reversed.
  Call good = bench.call();
  std::ranges::reverse(good.moves);
  good.moves.push_back(good.moves[static_cast<std::size_t>(bench.me())]);
  bench.expect_error("another order", bench.make(good), 0, "");
  bench.caches().apply(in_model(good.moves), good.mode);
  bench.expect_untouched("another order");
}

void bad_caches(Bench& bench) {
  using Spoil = std::function<void(shmemx_kv_cache_t&)>;
  const auto both = [&](const char* name, const std::string& text, const Spoil& spoil) {
    for (const int bad : {kAll, 2}) {
      bench.refused(name, bad, text, [&](Call& call) { spoil(call.cache); });
    }
  };
  std::vector<std::byte> elsewhere(2 * kShape.bytes());
  both("K elsewhere", "symmetric", [&](shmemx_kv_cache_t& cache) { cache.k = elsewhere.data(); });
  both("V elsewhere", "symmetric", [&](shmemx_kv_cache_t& cache) { cache.v = elsewhere.data(); });
  both("beyond the allocation", "symmetric", [](shmemx_kv_cache_t& cache) {
    cache.format = SHMEMX_KV_LATENT;
    cache.v = nullptr;
    cache.blocks = 1 << 20;
  });
  both("beyond the heap", "symmetric", [](shmemx_kv_cache_t& cache) { cache.blocks = std::int64_t{1} << 40; });
  both("no K", "NULL", [](shmemx_kv_cache_t& cache) { cache.k = nullptr; });
  both("no V", "NULL", [](shmemx_kv_cache_t& cache) { cache.v = nullptr; });
  both("V is K", "overlap", [](shmemx_kv_cache_t& cache) { cache.v = cache.k; });
  both("V begins in K", "overlap",
       [](shmemx_kv_cache_t& cache) { cache.v = static_cast<std::byte*>(cache.k) + kShape.k_bytes() - 2; });
  for (const int format : {SHMEMX_KV_BY_LAYER, SHMEMX_KV_INTERLEAVED, SHMEMX_KV_BY_BLOCK, SHMEMX_KV_LATENT}) {
    both("V where there is none", "NULL", [=](shmemx_kv_cache_t& cache) {
      cache.format = format;
      cache.layers = 1;
    });
  }
  for (const int format : {-1, 5, 1000}) {
    both("format", "format", [=](shmemx_kv_cache_t& cache) { cache.format = format; });
  }
  for (const int size : {0, 3, 16, -1}) {
    both("element size", "element", [=](shmemx_kv_cache_t& cache) { cache.element_size = size; });
  }
  constexpr std::int64_t kLargest = INT64_MAX;
  for (const std::int64_t wrong : {std::int64_t{0}, std::int64_t{-1}, kLargest, INT64_MIN, std::int64_t{1} << 60}) {
    const std::string text = std::to_string(wrong);
    both("layers", text, [=](shmemx_kv_cache_t& cache) { cache.layers = wrong; });
    both("blocks", text, [=](shmemx_kv_cache_t& cache) { cache.blocks = wrong; });
    both("heads", text, [=](shmemx_kv_cache_t& cache) { cache.kv_heads = wrong; });
    both("page", text, [=](shmemx_kv_cache_t& cache) { cache.page_size = wrong; });
    both("head", text, [=](shmemx_kv_cache_t& cache) { cache.head_dim = wrong; });
  }
  both("a product that overflows", "4294967296",
       [](shmemx_kv_cache_t& cache) { cache.layers = cache.kv_heads = std::int64_t{1} << 32; });
  // Valid, but different from the other PEs' cache.
  const auto differs = [&](const char* name, const Spoil& spoil) {
    for (const int bad : {0, 1, 3}) {
      bench.refused(name, bad, "cache", [&](Call& call) { spoil(call.cache); });
    }
  };
  differs("other layers", [](shmemx_kv_cache_t& cache) { cache.layers = 1; });
  differs("other heads", [](shmemx_kv_cache_t& cache) { cache.kv_heads = 1; });
  differs("other pages", [](shmemx_kv_cache_t& cache) { cache.page_size = 2; });
  differs("other heads' size", [](shmemx_kv_cache_t& cache) { cache.head_dim = 6; });
  differs("other elements", [](shmemx_kv_cache_t& cache) { cache.element_size = 1; });
  differs("other K", [](shmemx_kv_cache_t& cache) { cache.k = static_cast<std::byte*>(cache.k) - 2; });
  differs("other V", [](shmemx_kv_cache_t& cache) { cache.v = static_cast<std::byte*>(cache.v) + 2; });
  differs("K and V exchanged", [](shmemx_kv_cache_t& cache) { std::swap(cache.k, cache.v); });
  differs("other format", [](shmemx_kv_cache_t& cache) {
    cache.format = SHMEMX_KV_LATENT;
    cache.v = nullptr;
  });
  differs("other number of blocks", [](shmemx_kv_cache_t& cache) { cache.blocks = 7; });
}

void bad_pairs(Bench& bench) {
  const auto table = [&](const char* name, const std::string& text, const std::vector<std::int64_t>& rows) {
    bench.pairs_refused(name, kAll, text, [&](Call& call) { call.table = rows; });
  };
  table("two senders", "send", {1, 0, 0, 0, 3, 1, 2, 0});
  table("not mutual", "name each other", {1, 0, 2, 1, 3, 1, 2, 0});
  table("a pair of no PE", "4", {4, 0, 0, 1, 3, 1, 2, 0});
  table("a pair of PE -1", "-1", {-1, 0, 0, 1, 3, 1, 2, 0});
  table("to itself", "itself", {0, 0, 1, 1, 3, 1, 2, 0});
  table("other number of PEs", "3", {1, 0, 0, 1, 2, 1});
  for (const int bad : {0, 3}) {
    bench.pairs_refused("source block of a sender", bad, "8", [](Call& call) { call.from[1] = 8; });
    bench.pairs_refused("two blocks to one", bad, "5", [](Call& call) { call.to = {5, 5}; });
    bench.pairs_refused("destination block of a sender", bad, "4711", [](Call& call) { call.to[0] = 4711; });
  }
  for (const int bad : {0, 1, 2}) {
    std::vector<std::byte> elsewhere(kShape.bytes());
    bench.pairs_refused("K elsewhere", bad, "symmetric", [&](Call& call) { call.cache.k = elsewhere.data(); });
    bench.pairs_refused("no cache", bad, "cache", [](Call& call) { call.without_cache = true; });
    bench.pairs_refused("layers of one", bad, "layers", [](Call& call) { call.cache.layers = 0; });
  }
  for (const int bad : {1, 2}) {
    bench.pairs_refused("other layers than the partner's", bad, "cache", [](Call& call) { call.cache.layers = 1; });
    bench.pairs_refused("other K than the partner's", bad, "cache",
                        [](Call& call) { call.cache.k = static_cast<std::byte*>(call.cache.k) - 2; });
  }
}

/// Errors that a PE finds alone.
void bad_arguments(Bench& bench) {
  using Rows = std::vector<shmemx_kv_move_t>;
  shmemx_kv_plan_t* plan = nullptr;
  const auto create = [&](const char* name, const Rows& moves, int mode, const std::string& text) {
    bench.expect_error(name, shmemx_kv_plan_create(moves.data(), moves.size(), mode, &plan), -EINVAL, text);
    bench.expect(name, plan == nullptr, "a plan");
  };
  create("two sources", {{0, 1, 2, 3}, {0, 2, 2, 3}}, SHMEMX_KV_COPY, "block 3 of PE 2");
  create("two sources", {{0, 1, 2, 3}, {1, 1, 2, 3}}, SHMEMX_KV_MOVE, "block 3 of PE 2");
  create("itself and another", {{2, 3, 2, 3}, {0, 1, 2, 3}}, SHMEMX_KV_COPY, "block 3 of PE 2");
  create("two destinations", {{0, 1, 2, 3}, {0, 1, 2, 4}}, SHMEMX_KV_MOVE, "block 1 of PE 0");
  create("negative", {{-1, 1, 2, 3}}, SHMEMX_KV_COPY, "-1");
  create("negative", {{1, -1, 2, 3}}, SHMEMX_KV_COPY, "-1");
  create("negative", {{1, 1, -2, 3}}, SHMEMX_KV_COPY, "-2");
  create("negative", {{1, 1, 2, INT64_MIN}}, SHMEMX_KV_COPY, "-9223372036854775808");
  create("mode", {{0, 1, 2, 3}}, 2, "mode");
  create("mode", {{0, 1, 2, 3}}, -1, "mode");
  bench.expect_error("no moves", shmemx_kv_plan_create(nullptr, 1, SHMEMX_KV_COPY, &plan), -EINVAL, "NULL");
  const Rows one{{0, 1, 2, 3}};
  bench.expect_error("no plan", shmemx_kv_plan_create(one.data(), 1, SHMEMX_KV_COPY, nullptr), -EINVAL, "NULL");
  shmemx_kv_plan_destroy(nullptr);

  const std::vector<std::int64_t> rows{1, 0, 0, 1}, blocks{3};
  const auto pairs = [&](const char* name, int error, const std::string& text) {
    bench.expect_error(name, error, -EINVAL, text);
    bench.expect(name, plan == nullptr, "a plan");
  };
  const std::int64_t *table = rows.data(), *list = blocks.data();
  pairs("no PEs", shmemx_kv_plan_create_pairs(0, 0, table, list, list, 0, &plan), "0");
  pairs("-1 PEs", shmemx_kv_plan_create_pairs(-1, 0, table, list, list, 0, &plan), "-1");
  pairs("PE 2 of 2", shmemx_kv_plan_create_pairs(2, 2, table, list, list, 0, &plan), "2");
  pairs("PE -1", shmemx_kv_plan_create_pairs(2, -1, table, list, list, 0, &plan), "-1");
  pairs("no table", shmemx_kv_plan_create_pairs(2, 0, nullptr, list, list, 0, &plan), "NULL");
  pairs("no sources", shmemx_kv_plan_create_pairs(2, 0, table, nullptr, list, 1, &plan), "NULL");
  pairs("no destinations", shmemx_kv_plan_create_pairs(2, 0, table, list, nullptr, 1, &plan), "NULL");
  pairs("-5 blocks", shmemx_kv_plan_create_pairs(2, 0, table, list, list, -5, &plan), "-5");
  pairs("no blocks", shmemx_kv_plan_create_pairs(2, 0, table, nullptr, nullptr, 1, &plan), "NULL");
  pairs("no plan", shmemx_kv_plan_create_pairs(2, 0, table, list, list, 0, nullptr), "NULL");

  const auto good = make_plan(one, SHMEMX_KV_COPY);
  const shmemx_kv_move_t* moves = nullptr;
  std::size_t count = 0;
  bench.expect_error("moves of no plan", shmemx_kv_plan_moves(nullptr, &moves, &count), -EINVAL, "NULL");
  bench.expect_error("moves to nowhere", shmemx_kv_plan_moves(good.get(), nullptr, &count), -EINVAL, "NULL");
  bench.expect_error("count to nowhere", shmemx_kv_plan_moves(good.get(), &moves, nullptr), -EINVAL, "NULL");
  const Call call = bench.call();
  int done = 0;
  bench.expect_error("no operator", shmemx_kv_shuffle(nullptr, good.get(), &call.cache), -EINVAL, "NULL");
  bench.expect_error("no operator", shmemx_kv_shuffle_start(nullptr, good.get(), &call.cache), -EINVAL, "NULL");
  bench.expect_error("no operator", shmemx_kv_shuffle_test(nullptr, &done), -EINVAL, "NULL");
  bench.expect_error("no operator", shmemx_kv_shuffle_wait(nullptr), -EINVAL, "NULL");
}

void bad_operators(Bench& bench) {
  shmemx_kv_op_t* op = nullptr;
  const auto refused = [&](const char* name, int bad, const std::string& text, const shmemx_kv_options_t& spoilt) {
    const bool mine = bad == kAll || bad == bench.me();
    const int error = shmemx_kv_op_create(SHMEM_TEAM_WORLD, mine ? &spoilt : &kOptions, &op);
    const std::string said = error != 0 ? shmemx_error_text() : "";
    std::printf("PE %d: %s: %d %s\n", bench.me(), name, error, said.c_str());
    bench.expect(name, error < 0 && op == nullptr, "an operator");
    const std::string wanted = mine ? text : "PE " + std::to_string(bad);
    bench.expect(name, said.find(wanted) != std::string::npos, "the text has no \"" + wanted + "\": " + said);
    if (error == 0) {
      shmemx_kv_op_destroy(op);
    }
    op = nullptr;
    bench.expect_untouched_and_works(name);
  };
  for (const int bad : {kAll, 0, 2}) {
    refused("-1 cores", bad, "-1", {-1, 0, 0});
    refused("more cores than can be", bad, "2147483647", {INT32_MAX, 0, 0});
    refused("path 3", bad, "path", {2, 3, 0});
    refused("path -1", bad, "path", {2, -1, 0});
  }
  for (const int bad : {0, 1, 3}) {
    refused("other cores", bad, "options", {4, 0, 1024});
    refused("other path", bad, "options", {3, SHMEMX_KV_PATH_SCRATCH, 1024});
    refused("other staging", bad, "options", {3, 0, 2048});
  }
  bench.expect_error("no operator", shmemx_kv_op_create(SHMEM_TEAM_WORLD, nullptr, nullptr), -EINVAL, "NULL");
  // An operator of a team without PE 3, which only destroys it.
  shmem_team_t team = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, kPes - 1, nullptr, 0, &team);
  bench.expect_error("team of three", shmemx_kv_op_create(team, nullptr, &op), 0, "");
  if (bench.me() == kPes - 1) {
    const auto plan = make_plan({}, SHMEMX_KV_COPY);
    const Call call = bench.call();
    bench.expect_error("not a member", shmemx_kv_shuffle(op, plan.get(), &call.cache), -EINVAL,
                       "not in the operator's");
    bench.expect_error("not a member", shmemx_kv_shuffle_start(op, plan.get(), &call.cache), -EINVAL, "not in the");
  }
  bench.expect_error("team of three", shmemx_kv_op_destroy(op), 0, "");
  if (team != SHMEM_TEAM_INVALID) {
    shmem_team_destroy(team);
  }
  bench.expect_error("nothing to destroy", shmemx_kv_op_destroy(nullptr), 0, "");
  bench.expect_untouched_and_works("operators");
}

void bad_phases(Bench& bench) {
  int done = 7;
  const Call call = bench.call();
  const auto plan = make_plan(call.moves, call.mode);
  bench.expect_error("test of nothing", shmemx_kv_shuffle_test(bench.op(), &done), -EINVAL, "");
  bench.expect_error("wait for nothing", shmemx_kv_shuffle_wait(bench.op()), -EINVAL, "");
  bench.expect_untouched_and_works("nothing was started");
  bench.expect_error("start", shmemx_kv_shuffle_start(bench.op(), plan.get(), &call.cache), 0, "");
  bench.expect_error("start again", shmemx_kv_shuffle_start(bench.op(), plan.get(), &call.cache), -EBUSY, "");
  bench.expect_error("shuffle too", shmemx_kv_shuffle(bench.op(), plan.get(), &call.cache), -EBUSY, "");
  bench.expect_error("test to nowhere", shmemx_kv_shuffle_test(bench.op(), nullptr), -EINVAL, "NULL");
  bench.expect_error("wait", shmemx_kv_shuffle_wait(bench.op()), 0, "");
  bench.expect_error("wait again", shmemx_kv_shuffle_wait(bench.op()), -EINVAL, "");
  bench.caches().apply(in_model(call.moves), call.mode);
  bench.expect_untouched_and_works("phases");
  // The error is returned by the start or by the wait.
  shmemx_kv_cache_t cache = call.cache;
  cache.element_size = 3;
  int error = shmemx_kv_shuffle_start(bench.op(), plan.get(), bench.me() == 1 ? &cache : &call.cache);
  if (error == 0) {
    error = shmemx_kv_shuffle_wait(bench.op());
  }
  bench.expect_error("element size of one, in phases", error < 0 ? -1 : 0, -1, bench.me() == 1 ? "element" : "PE 1");
  bench.expect_untouched_and_works("phases that fail");
  // An operator may be destroyed while it shuffles.
  shmemx_kv_op_t* op = nullptr;
  bench.expect_error("create", shmemx_kv_op_create(SHMEM_TEAM_WORLD, &kOptions, &op), 0, "");
  bench.expect_error("start", shmemx_kv_shuffle_start(op, plan.get(), &call.cache), 0, "");
  bench.caches().apply(in_model(call.moves), call.mode);
  bench.expect_error("destroy", shmemx_kv_op_destroy(op), 0, "");
  bench.expect_untouched_and_works("destroyed while shuffling");
}

/// Lets PEs wait for each other. Not a barrier, since an earlier one may have failed.
class Step {
 public:
  void come() { shmem_long_atomic_inc(&there_, 0); }
  /// Returns when this number of PEs have come, or after minutes.
  void await(int pes) {
    for (int i = 0; i < 12'000 && shmem_long_atomic_fetch(&there_, 0) < pes; ++i) {
      ::usleep(10'000);
    }
  }

 private:
  long there_ = 0;
};
Step given_up, tried, over;  // symmetric

/// Errors after SHMEM_BARRIER_TIMEOUT. Prints them for the test; the operator may be unusable afterwards.
void when_timed_out(Bench& bench, const std::string& how) {
  const bool pairs = how.ends_with("-pairs");
  const Call call = pairs ? bench.pairs_call() : bench.call();
  const auto say = [&](int error) {
    std::printf("PE %d: %d %s\n", bench.me(), error, error != 0 ? shmemx_error_text() : "");
    std::fflush(stdout);
  };
  if (how.starts_with("late")) {
    const bool is_late = bench.me() == (how == "late-sender-pairs" ? 0 : 1);
    if (is_late) {
      given_up.await(kPes - 1);
    }
    say(bench.make(call));
    // A late PE does not synchronize with one that has given up.
    if (!pairs && !is_late) {
      say(bench.make(call));
    }
    (is_late ? tried : given_up).come();
    tried.await(1);
    if (!pairs || bench.me() < 2) {
      bench.expect_untouched("late");
    }
  } else if (how.starts_with("once-more")) {
    say(bench.make(call));
    if (bench.me() != 1) {
      say(bench.make(call));
    }
  } else {  // PE 1 has a plan of pairs, the others a plan of all
    say(bench.make(bench.me() == 1 ? bench.pairs_call() : call));
  }
  std::printf("PE %d: over\n", bench.me());
  std::fflush(stdout);
  over.come();
  over.await(kPes);  // one that ended earlier would end the others
}

}  // namespace kv_test

int kv_bad_calls::run(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  shmem_init();
  if (shmem_n_pes() != kv_test::kPes) {
    return 2;
  }
  int wrong = 0;
  {
    kv_test::Bench bench;
    if (argc > 1) {
      kv_test::when_timed_out(bench, argv[1]);
      std::fflush(stdout);
      std::_Exit(0);
    }
    kv_test::bad_arguments(bench);
    kv_test::bad_plans(bench);
    kv_test::bad_caches(bench);
    kv_test::bad_pairs(bench);
    kv_test::bad_operators(bench);
    kv_test::bad_phases(bench);
    wrong = bench.wrong();
  }
  std::printf("PE %d: %d wrong\n", shmem_my_pe(), wrong);
  shmem_finalize();
  return wrong == 0 ? 0 : 1;
}
