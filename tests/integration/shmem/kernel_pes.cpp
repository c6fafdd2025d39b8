// SPDX-License-Identifier: Apache-2.0
// PEs that run kernels on their cores: kernel TEST. Prints failures; exits with 0 if there are none.
#include <shmem_device.h>
#include <shmemx_interface.h>

#include <cmath>

#include "tests/integration/shmem/pe_checks.hpp"

namespace {

using pe_checks::allocate;

// ---- Barriers: all cores of all PEs ----

/// Counts arrivals at barriers, at the first PE of their team: after the k-th barrier each core has arrived k times.
class Turnstile {
 public:
  Turnstile(std::uint64_t* counter, shmem_team_t team)
      : counter_(counter), first_(shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD)) {}
  void enter() const { shmem_signal_add(counter_, 1, first_); }
  [[nodiscard]] bool all_arrived(std::uint64_t k, std::uint64_t many) const {
    std::uint64_t seen = 0;
    shmem_getmem(&seen, counter_, sizeof seen, first_);
    return seen >= k * many;
  }

 private:
  std::uint64_t* counter_;
  int first_;
};

struct BarrierWork {
  std::uint64_t* counter = nullptr;  // symmetric
  int way = 0;
};

constexpr int kWays = 6;
constexpr int kOfTheNode = 4;  // this way is a barrier of SHMEM_TEAM_SHARED

void one_barrier(shmemx_core_t* core, int way) {
  switch (way) {
    case 0:
      return shmem_barrier_all();
    case 1:
      return shmem_sync_all();
    case 2:
      return CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0);
    case 3:
      return shmem_barrier(SHMEM_TEAM_WORLD);
    case kOfTheNode:
      return shmemx_team_barrier(SHMEM_TEAM_SHARED);
    default:
      return CHECK(shmemx_core_barrier(core, SHMEM_TEAM_WORLD) == 0);
  }
}

void barrier_kernel(shmemx_core_t* core, void* argument) {
  const auto& work = *static_cast<BarrierWork*>(argument);
  const shmem_team_t team = work.way == kOfTheNode ? SHMEM_TEAM_SHARED : SHMEM_TEAM_WORLD;
  const Turnstile turnstile(work.counter, team);
  const auto all_cores =
      static_cast<std::uint64_t>(shmemx_core_count(core)) * static_cast<std::uint64_t>(shmem_team_n_pes(team));
  for (std::uint64_t k = 1; k <= 20; ++k) {
    turnstile.enter();
    one_barrier(core, work.way);
    CHECK(turnstile.all_arrived(k, all_cores));
  }
}

/// Runs the first `ways` kinds of barriers.
void barriers(std::initializer_list<int> all_cores, int ways) {
  BarrierWork work;
  for (const int cores : all_cores) {
    for (work.way = 0; work.way < ways; ++work.way) {
      work.counter = allocate<std::uint64_t>();
      CHECK(shmemx_launch(cores, barrier_kernel, &work) == 0);
      shmem_free(work.counter);
    }
  }
}

// ---- Waits that time out ----

/// Sleeps until the job is ended; a call of the library would time out.
void stay_away() {
  std::this_thread::sleep_for(std::chrono::seconds(600));
}

void useless_barriers(shmemx_core_t* /*core*/, void* /*argument*/) {
  for (int i = 0; i < 1000; ++i) {
    shmem_barrier_all();  // the first one fails, and with it all others, at once
  }
}

/// PE 1 does not enter the barrier.
void lost_pe() {
  if (shmem_my_pe() != 1) {
    CHECK(shmemx_launch(3, useless_barriers, nullptr) == -ETIMEDOUT);
    CHECK(std::strstr(shmemx_error_text(), "it waited for PE 1 ") != nullptr);
    shmem_global_exit(pe_failures() == 0 ? 21 : 1);
  }
  stay_away();
}

/// Core 1 of every PE does not enter the barrier.
void lost_core() {
  const auto kernel = [](shmemx_core_t* core, void* /*argument*/) {
    if (shmemx_core_index(core) != 1) {
      shmem_barrier_all();
      CHECK(shmemx_core_sync(core) == -ETIMEDOUT || shmemx_core_sync(core) == -ECANCELED);
    }
  };
  CHECK(shmemx_launch(3, kernel, nullptr) == -ETIMEDOUT);
  CHECK(std::strstr(shmemx_error_text(), "cores of this PE") != nullptr);
}

struct Wait {
  int way = 0;
  std::uint64_t* word = nullptr;  // symmetric
  shmem_team_t team = SHMEM_TEAM_WORLD;
};

constexpr int kWaits = 7;

/// Waits for values that are never stored. Called by every core.
void wait_for_nothing(shmemx_core_t* core, void* argument) {
  const auto& wait = *static_cast<Wait*>(argument);
  auto* const small = reinterpret_cast<std::int32_t*>(wait.word);
  const std::uint32_t list[] = {0, 1};
  std::size_t indices[2];
  for (int again = 0; again < 100; ++again) {
    switch (wait.way) {
      case 0:
        CHECK(shmem_signal_wait_until(wait.word, SHMEM_CMP_NE, 0) == 0);
        break;
      case 1:
        CHECK(shmem_signal_wait_until(small, SHMEM_CMP_LT, 0) == 0);
        break;
      case 2:
        CHECK(shmemx_wait_until_any(small, 2, nullptr, SHMEM_CMP_GT, 0) == SIZE_MAX);
        break;
      case 3:
        CHECK(shmemx_core_wait_until_some(core, small, std::size_t{2}, indices, nullptr, SHMEM_CMP_GT, 0) == 0);
        break;
      case 4:
        CHECK(shmemx_sync_wait_until(shmemx_team_sync_pool(wait.team, 0), SHMEM_CMP_GE, 1) != 0);
        break;
      case 5:  // PE 1 does not call it
        CHECK(shmemx_partial_barrier(wait.team, list, 2) != 0);
        break;
      default:  // core 0 does not call it
        CHECK(shmemx_core_index(core) == 0 || shmemx_core_sync_in_memory(core) != 0);
    }
  }
}

/// PE 0 waits; the other PEs only sleep.
void lost_waits() {
  Wait wait;
  wait.word = allocate<std::uint64_t>(2);
  const std::string after = "timed out after " +
                            std::to_string(std::lround(1000 * std::atof(std::getenv("SHMEM_BARRIER_TIMEOUT")))) +
                            " ms (SHMEM_BARRIER_TIMEOUT)";
  for (wait.way = 0; shmem_my_pe() == 0 && wait.way < kWaits; ++wait.way) {
    CHECK(shmemx_launch(2, wait_for_nothing, &wait) == -ETIMEDOUT);
    CHECK(std::strstr(shmemx_error_text(), after.c_str()) != nullptr);
  }
  if (shmem_my_pe() == 0) {
    CHECK(shmemx_launch(
              2, [](shmemx_core_t* core, void*) { CHECK(shmemx_core_sync_in_memory(core) == 0); }, nullptr) == 0);
    shmem_global_exit(pe_failures() == 0 ? 21 : 1);
  }
  stay_away();
}

/// PE 1 ends the job while the cores of PE 0 wait.
void ended_wait(const std::string& way) {
  Wait wait;
  wait.word = allocate<std::uint64_t>(2);
  wait.way = way.back() - '0';
  if (shmem_my_pe() == 0) {
    shmem_signal_set(wait.word, 1, 1);
    shmemx_launch(2, wait_for_nothing, &wait);
    return shmem_barrier_all();
  }
  shmem_signal_wait_until(wait.word, SHMEM_CMP_EQ, 1);
  shmem_global_exit(22);
}

// ---- All actions; the last ones are calls in places where they are not allowed ----

std::int32_t* allocated() {
  static std::int32_t global[2];
  return global;
}

void act_on(const std::string& what) {
  const auto in_kernel = [](void (*call)()) {
    const auto kernel = [](shmemx_core_t* /*core*/, void* argument) { (*static_cast<void (**)()>(argument))(); };
    shmemx_launch(2, kernel, static_cast<void*>(&call));
  };
  static shmemx_core_t* kept = nullptr;
  pe_checks::act(
      what, {{"barriers",
              [] {
                barriers({1, 2, 4, 8}, kWays);
              }},
             {"algorithm", [] { barriers({3}, 1); }},
             {"lost-pe", lost_pe},
             {"lost-core", lost_core},
             {"lost-waits", lost_waits},
             {"no-core", [&] { shmemx_core_sync(nullptr); }},
             {"vec", [&] { shmemx_barrier_all_vec(); }},
             {"list-vec", [&] { shmemx_partial_barrier_vec(SHMEM_TEAM_WORLD, nullptr, 0); }},
             {"pool", [&] { shmemx_core_sync_pool(nullptr); }},
             {"old-core",
              [&] {
                shmemx_launch(
                    1, [](shmemx_core_t* core, void*) { kept = core; }, nullptr);
                shmemx_core_barrier(kept, SHMEM_TEAM_WORLD);
              }},
             {"kernel-malloc", [&] { in_kernel([] { shmem_malloc(8); }); }},
             {"kernel-split", [&] { in_kernel([] { shmem_team_destroy(SHMEM_TEAM_INVALID); }); }},
             {"kernel-finalize", [&] { in_kernel(shmem_finalize); }},
             {"kernel-team", [&] { in_kernel([] { shmem_team_sync(shmemx_team_by_number(17)); }); }},
             {"kernel-barrier-team", [&] { in_kernel([] { shmemx_barrier_vec(shmemx_team_by_number(99)); }); }},
             {"kernel-compare", [&] { in_kernel([] { shmemx_wait_until(allocated(), 6, 1); }); }},
             {"kernel-address",
              [&] {
                in_kernel([] {
                  int local = 0;
                  shmemx_test(&local, SHMEM_CMP_EQ, 1);
                });
              }},
             {"kernel-alignment",
              [&] {
                in_kernel([] {
                  shmemx_test(reinterpret_cast<std::int32_t*>(reinterpret_cast<char*>(allocated()) + 1), 0, 1);
                });
              }},
             {"kernel-operation", [&] { in_kernel([] { shmemx_signal_op(allocated(), 1, 2, 0); }); }},
             {"kernel-pe", [&] { in_kernel([] { shmemx_signal_op(allocated(), 1, SHMEM_SIGNAL_ADD, 2); }); }},
             {"kernel-word",
              [&] { in_kernel([] { shmemx_sync_set(reinterpret_cast<shmemx_sync_word_t*>(allocated()), 1); }); }},
             {"kernel-indices",
              [&] { in_kernel([] { shmemx_wait_until_some(allocated(), 1, nullptr, nullptr, SHMEM_CMP_EQ, 0); }); }},
             {"stream-team", [&] { shmemx_barrier_on_stream(shmemx_team_by_number(17), nullptr); }},
             {"stream-old-team", [&] {
                shmem_team_t team = SHMEM_TEAM_INVALID;
                shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, &team);
                shmem_team_destroy(team);
                shmemx_barrier_on_stream(team, nullptr);
              }}});
}

}  // namespace

PE_PART(kernel) {
  const std::string what = argc > 1 ? argv[1] : "";
  shmem_init();
  if (what.starts_with("ended-wait-")) {
    ended_wait(what);
  } else {
    act_on(what);
  }
  const auto nested = [](shmemx_core_t*, void*) {
    CHECK(shmemx_launch(
              1, [](shmemx_core_t*, void*) {}, nullptr) == -EBUSY);
  };
  CHECK(shmemx_launch(1, nested, nullptr) == 0);
  shmem_finalize();
  return pe_failures() == 0 ? 0 : 1;
}
