// SPDX-License-Identifier: Apache-2.0
// A process forked from a PE: every call of shmemx_kv.h on an operator that it has inherited fails, and the operator of
// the PE goes on.
//
//   kv_pes fork
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/integration/kv/kv_objects.hpp"
#include "tests/integration/kv/kv_pes.hpp"
#include "tests/integration/shmem/pe_checks.hpp"
#include "tests/support/text.hpp"

namespace kv_fork {
namespace {

constexpr kv_model::Shape kShape{SHMEMX_KV_APART, 2, 2, 8, 1, 16, 32};

/// What the PE has when it forks.
struct Handles {
  shmemx_kv_op_t* op;
  const shmemx_kv_plan_t* plan;
  const shmemx_kv_cache_t* cache;
  shmemx_stream_t* stream;
};

std::set<std::string> declared_calls() {
  std::ifstream header(KV_HEADER);
  std::stringstream text;
  text << header.rdbuf();
  std::set<std::string> names;
  for (const auto& call : test_support::all_matches(text.str(), "SHMEM_API [a-z0-9_* ]*?(shmemx_kv_[a-z_]+)\\(")) {
    names.insert(call[1]);
  }
  return names;
}

/// The outcome of each call; 1: it needs no PE, and works.
std::map<std::string, int> outcomes(const Handles& has) {
  std::map<std::string, int> got;
  shmemx_kv_op_t* op = nullptr;
  shmemx_kv_stats_t stats{};
  int done = 0;
  got["shmemx_kv_op_create"] = shmemx_kv_op_create(SHMEM_TEAM_WORLD, nullptr, &op);
  got["shmemx_kv_shuffle"] = shmemx_kv_shuffle(has.op, has.plan, has.cache);
  got["shmemx_kv_shuffle_start"] = shmemx_kv_shuffle_start(has.op, has.plan, has.cache);
  got["shmemx_kv_shuffle_test"] = shmemx_kv_shuffle_test(has.op, &done);
  got["shmemx_kv_shuffle_wait"] = shmemx_kv_shuffle_wait(has.op);
  shmemx_take_error();
  shmemx_kv_shuffle_on_stream(has.op, has.plan, has.cache, has.stream);
  got["shmemx_kv_shuffle_on_stream"] = shmemx_take_error();
  got["shmemx_kv_op_stats"] = shmemx_kv_op_stats(has.op, &stats);
  got["shmemx_kv_op_metrics"] = shmemx_kv_op_metrics(has.op, "0");
  got["shmemx_kv_op_destroy"] = shmemx_kv_op_destroy(has.op);
  // Plans are memory of the process.
  const shmemx_kv_move_t move{0, 1, 0, 2};
  shmemx_kv_plan_t* plan = nullptr;
  const shmemx_kv_move_t* moves = nullptr;
  std::size_t count = 0;
  const bool planned = shmemx_kv_plan_create(&move, 1, SHMEMX_KV_COPY, &plan) == 0 &&
                       shmemx_kv_plan_moves(plan, &moves, &count) == 0 && count == 1 &&
                       shmemx_kv_plan_digest(plan) != 0;
  shmemx_kv_plan_destroy(plan);
  for (const char* call : {"create", "create_pairs", "moves", "digest", "balance", "placement", "destroy"}) {
    got[std::string("shmemx_kv_plan_") + call] = planned ? 1 : 0;
  }
  return got;
}

int wrong_calls(const Handles& has) {
  const auto got = outcomes(has);
  int wrong = 0;
  for (const std::string& name : declared_calls()) {
    const auto found = got.find(name);
    if (found == got.end() || (found->second != -EPERM && found->second != 1)) {
      ++wrong;
      std::fprintf(stderr, "%s: %s\n", name.c_str(),
                   found == got.end() ? "not made" : std::to_string(found->second).c_str());
    }
  }
  return declared_calls().size() < 10 ? 100 : wrong;
}

}  // namespace

int run(int /*argc*/, char** /*argv*/) {
  shmem_init();
  shmemx_set_errors_return(1);
  void* const memory = shmem_malloc(2 * kShape.k_bytes());
  shmemx_kv_op_t* op = nullptr;
  CHECK(shmemx_kv_op_create(SHMEM_TEAM_WORLD, nullptr, &op) == 0);
  const auto cache = kv_test::describe(kShape, memory, static_cast<std::byte*>(memory) + kShape.k_bytes());
  const auto plan = kv_test::make_plan({{0, 1, 0, 2}}, SHMEMX_KV_COPY);
  shmemx_stream_t* stream = nullptr;
  CHECK(shmemx_stream_create(&stream) == 0);
  CHECK(shmemx_kv_shuffle(op, plan.get(), &cache) == 0);
  CHECK(shmemx_kv_shuffle_start(op, plan.get(), &cache) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    ::_exit(wrong_calls({op, plan.get(), &cache, stream}));
  }
  int status = -1;
  CHECK(::waitpid(child, &status, 0) == child && status == 0);
  CHECK(shmemx_kv_shuffle_wait(op) == 0);
  CHECK(shmemx_kv_shuffle(op, plan.get(), &cache) == 0);
  shmemx_kv_stats_t stats{};
  CHECK(shmemx_kv_op_stats(op, &stats) == 0 && stats.shuffles == 3);
  CHECK(shmemx_kv_op_destroy(op) == 0);
  shmemx_stream_destroy(stream);
  shmem_free(memory);
  const int failures = pe_checks::failures;
  shmem_finalize();
  return failures == 0 ? 0 : 1;
}

}  // namespace kv_fork
