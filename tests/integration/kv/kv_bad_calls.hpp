// SPDX-License-Identifier: Apache-2.0
// A PE that makes invalid calls together with others, and checks that all PEs refuse them and that nothing is moved.
#pragma once

#include <functional>

#include "tests/integration/kv/kv_objects.hpp"

namespace kv_test {

constexpr int kPes = 4;
constexpr kv_model::Shape kShape{SHMEMX_KV_APART, 2, 2, 8, 2, 4, 8};  // 128 bytes a block
constexpr int kAll = -1;
/// The same on each PE: passed to shmemx_kv_op_create.
constexpr shmemx_kv_options_t kOptions{3, SHMEMX_KV_PATH_AUTO, 1024};

/// The valid arguments of a call, one of which is then made invalid.
struct Call {
  std::vector<shmemx_kv_move_t> moves{{0, 0, 1, 6}, {1, 1, 2, 2}, {2, 3, 3, 4}, {3, 5, 0, 6}};
  int mode = SHMEMX_KV_COPY;
  shmemx_kv_cache_t cache{};
  bool without_plan = false, without_cache = false;
  // If not empty, a plan of pairs: 0 sends two blocks to 1, and 3 to 2.
  std::vector<std::int64_t> table{};
  int table_pes = kPes;
  std::vector<std::int64_t> from{}, to{};

  [[nodiscard]] int make(shmemx_kv_plan_t** plan) const {
    if (table.empty()) {
      return shmemx_kv_plan_create(moves.data(), moves.size(), mode, plan);
    }
    return shmemx_kv_plan_create_pairs(table_pes, shmem_my_pe(), table.data(), from.data(), to.data(),
                                       static_cast<std::int64_t>(from.size()), plan);
  }
};

class Bench {
 public:
  Bench() {
    if (shmemx_kv_op_create(SHMEM_TEAM_WORLD, &kOptions, &op_) != 0) {
      give_up(shmemx_error_text());
    }
    arena_.add(random_, caches_);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() { shmemx_kv_op_destroy(op_); }

  [[nodiscard]] int me() const { return me_; }
  [[nodiscard]] shmemx_kv_op_t* op() const { return op_; }
  [[nodiscard]] Call call() const {
    Call made;
    made.cache = arena_.cache(0);
    return made;
  }
  [[nodiscard]] Call pairs_call() const {
    Call made = call();
    made.table = {1, 0, 0, 1, 3, 1, 2, 0};
    if (me_ == 0) {
      made.from = {0, 3}, made.to = {4, 5};
    }
    if (me_ == 3) {
      made.from = {1, 2}, made.to = {0, 7};
    }
    return made;
  }

  /// The result of the call: the first error of making the plan or of shuffling.
  [[nodiscard]] int make(const Call& call) const {
    shmemx_kv_plan_t* plan = nullptr;
    if (!call.without_plan) {
      if (const int error = call.make(&plan); error != 0) {
        return error;
      }
    }
    const Plan owned(plan);
    return shmemx_kv_shuffle(op_, plan, call.without_cache ? nullptr : &call.cache);
  }

  /// `bad` is the PE whose call is invalid, or kAll. Expects all PEs to fail: the bad ones with `text`, the others with
  /// the name of the bad PE. Nothing has moved then, and the operator still works.
  void refused(const char* name, int bad, const std::string& text, const std::function<void(Call&)>& spoil);
  /// The same with a plan of pairs: the partner of the bad PE gets an error, the other pair shuffles.
  void pairs_refused(const char* name, int bad, const std::string& text, const std::function<void(Call&)>& spoil);

  /// Checks this PE only.
  void expect(const char* name, bool right, const std::string& got) {
    if (!right) {
      std::printf("PE %d: WRONG: %s: %s\n", me_, name, got.c_str()), ++wrong_;
    }
  }
  void expect_error(const char* name, int got, int wanted, const std::string& text) {
    const std::string said = got != 0 ? shmemx_error_text() : "";
    expect(name, got == wanted && said.find(text) != std::string::npos,
           std::to_string(got) + " and not " + std::to_string(wanted) + ", \"" + said + "\" has no \"" + text + "\"");
  }
  /// A collective call.
  void expect_untouched_and_works(const char* name);
  void expect_untouched(const char* name) { expect(name, arena_.compare(me_).empty(), arena_.compare(me_)); }

  kv_model::Caches& caches() { return caches_; }
  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  int me_ = shmem_my_pe();
  shmemx_kv_op_t* op_ = nullptr;
  kv_model::Random random_{7};
  kv_model::Caches caches_{random_, kPes, kShape};
  Arena arena_{8192};
  int wrong_ = 0;
};

void bad_plans(Bench& bench);
void bad_caches(Bench& bench);
void bad_pairs(Bench& bench);
void bad_operators(Bench& bench);
void bad_phases(Bench& bench);

}  // namespace kv_test
