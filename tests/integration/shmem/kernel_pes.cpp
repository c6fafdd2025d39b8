// SPDX-License-Identifier: Apache-2.0
// PEs that run kernels on their cores: kernel_pes WHAT. Prints what went wrong; exits with 0 if nothing did.
#include <shmem.h>
#include <shmemx.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

std::atomic<int> failures{0};

void check(bool good, const char* what, int line) {
  if (!good) {
    ++failures;
    std::fprintf(stderr, "PE %d, line %d: %s (%s)\n", shmem_my_pe(), line, what, shmemx_error_text());
  }
}
#define CHECK(condition) check((condition), #condition, __LINE__)

template <typename T>
T* allocate(std::size_t count = 1) {
  return static_cast<T*>(shmem_calloc(count, sizeof(T)));
}

// ---- Barriers: all cores of all PEs ----

/// Counts everybody into a barrier at PE 0; after the k-th one, all have come k times.
class Turnstile {
 public:
  explicit Turnstile(std::uint64_t* counter) : counter_(counter) {}
  void enter() { shmem_signal_add(counter_, 1, 0); }
  [[nodiscard]] bool all_came(std::uint64_t k, std::uint64_t many) const {
    std::uint64_t seen = 0;
    shmem_getmem(&seen, counter_, sizeof seen, 0);
    return seen >= k * many;
  }

 private:
  std::uint64_t* counter_;
};

struct BarrierWork {
  std::uint64_t* counter = nullptr;  // symmetric
  int way = 0;
};

constexpr int kWays = 6;

void meet(shmemx_core_t* core, int way) {
  switch (way) {
    case 0:
      return shmem_barrier_all();
    case 1:
      return shmem_sync_all();
    case 2:
      return CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0);
    case 3:
      return shmem_barrier(SHMEM_TEAM_WORLD);
    case 4:
      return shmemx_team_barrier(SHMEM_TEAM_SHARED);
    default:
      return CHECK(shmemx_core_barrier(core, SHMEM_TEAM_WORLD) == 0);
  }
}

void barrier_kernel(shmemx_core_t* core, void* argument) {
  const auto& work = *static_cast<BarrierWork*>(argument);
  Turnstile turnstile(work.counter);
  const auto everybody =
      static_cast<std::uint64_t>(shmemx_core_count(core)) * static_cast<std::uint64_t>(shmem_n_pes());
  for (std::uint64_t k = 1; k <= 20; ++k) {
    turnstile.enter();
    meet(core, work.way);
    CHECK(turnstile.all_came(k, everybody));
  }
}

void barriers() {
  BarrierWork work;
  for (const int cores : {1, 2, 4, 8}) {
    for (work.way = 0; work.way < kWays; ++work.way) {
      work.counter = allocate<std::uint64_t>();
      CHECK(shmemx_launch(cores, barrier_kernel, &work) == 0);
      shmem_free(work.counter);
    }
  }
}

// ---- Waits that cannot end well: SHMEM_BARRIER_TIMEOUT is 1 ----

void useless_barriers(shmemx_core_t* /*core*/, void* /*argument*/) {
  for (int i = 0; i < 1000; ++i) {
    shmem_barrier_all();  // the first one fails, and with it all others, at once
  }
}

/// PE 1 does not come.
void lost_pe() {
  if (shmem_my_pe() != 1) {
    CHECK(shmemx_launch(3, useless_barriers, nullptr) == -ETIMEDOUT);
    CHECK(std::strstr(shmemx_error_text(), "it waited for PE 1 ") != nullptr);
    shmem_global_exit(failures == 0 ? 21 : 1);
  }
  static std::uint64_t never = 0;
  shmem_signal_wait_until(&never, SHMEM_CMP_NE, 0);
}

/// Core 1 of every PE does not come.
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

// ---- Calls where they may not be made ----

void wrong_place(const std::string& mistake) {
  const auto in_kernel = [](void (*call)()) {
    const auto kernel = [](shmemx_core_t* /*core*/, void* argument) { (*static_cast<void (**)()>(argument))(); };
    shmemx_launch(2, kernel, static_cast<void*>(&call));
  };
  static shmemx_core_t* kept = nullptr;
  if (mistake == "no-core") {
    shmemx_core_sync(nullptr);
  } else if (mistake == "old-core") {
    shmemx_launch(
        1, [](shmemx_core_t* core, void*) { kept = core; }, nullptr);
    shmemx_core_barrier(kept, SHMEM_TEAM_WORLD);
  } else if (mistake == "kernel-malloc") {
    in_kernel([] { shmem_malloc(8); });
  } else if (mistake == "kernel-split") {
    in_kernel([] { shmem_team_destroy(SHMEM_TEAM_INVALID); });
  } else if (mistake == "kernel-finalize") {
    in_kernel(shmem_finalize);
  } else if (mistake == "kernel-team") {
    in_kernel([] { shmem_team_sync(17); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  shmem_init();
  if (what == "barriers") {
    barriers();
  } else if (what == "lost-pe") {
    lost_pe();
  } else if (what == "lost-core") {
    lost_core();
  } else {
    wrong_place(what);
  }
  const auto nested = [](shmemx_core_t*, void*) {
    CHECK(shmemx_launch(
              1, [](shmemx_core_t*, void*) {}, nullptr) == -EBUSY);
  };
  CHECK(shmemx_launch(1, nested, nullptr) == 0);
  shmem_finalize();
  return failures == 0 ? 0 : 1;
}
