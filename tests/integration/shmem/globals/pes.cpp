// SPDX-License-Identifier: Apache-2.0
// A PE whose symmetric objects are global and static variables. Its argument names the test. Prints failures; exits
// with 0 if there are none.
#include "tests/integration/shmem/globals/library.hpp"
#include "tests/integration/shmem/pe_checks.hpp"

std::uint64_t initialized_number = 7;
std::uint64_t zero_number;
std::array<std::uint64_t, 5000> numbers{1, 2, 3};
static std::uint64_t file_static = 9;
long psync[SHMEM_BARRIER_SYNC_SIZE];
const std::uint64_t constant = 5;
std::string text = "a text that stands on the heap of the process, not here";

namespace {

std::uint64_t& function_static() {
  static std::uint64_t number = 10;
  return number;
}

/// Writes the variable of the PE to the right, and checks that no other copy changed.
void reach(std::uint64_t* variable, std::uint64_t before, const char* name) {
  const int me = shmem_my_pe();
  const int pes = shmem_n_pes();
  const int right = (me + 1) % pes;
  CHECK_NAMED(*variable == before, name);
  CHECK_NAMED(shmem_addr_accessible(variable, right) == 1, name);
  CHECK_NAMED(shmem_ptr(variable, me) == variable, name);
  shmem_barrier_all();
  const std::uint64_t value = 1000 + static_cast<std::uint64_t>(me);
  shmem_putmem(variable, &value, sizeof value, right);
  shmem_barrier_all();
  CHECK_NAMED(*variable == 1000 + static_cast<std::uint64_t>((me + pes - 1) % pes), name);
  std::uint64_t back = 0;
  shmem_getmem(&back, variable, sizeof back, right);
  CHECK_NAMED(back == value, name);
  const auto* theirs = static_cast<const volatile std::uint64_t*>(shmem_ptr(variable, right));
  const bool same_node = shmem_team_translate_pe(SHMEM_TEAM_WORLD, right, SHMEM_TEAM_SHARED) >= 0;
  CHECK_NAMED(same_node ? theirs != nullptr && *theirs == value : theirs == nullptr, name);
  shmem_barrier_all();
  *variable = before;
  shmem_barrier_all();
}

void reach_all() {
  reach(&initialized_number, 7, "initialized_number");
  reach(&zero_number, 0, "zero_number");
  reach(&numbers[1], 2, "numbers[1]");
  reach(&numbers[4999], 0, "numbers[4999]");
  reach(&file_static, 9, "file_static");
  reach(&function_static(), 10, "function_static");
  reach(&library_number, 41, "library_number");
  reach(library_private_number(), 42, "library_private_number");
  CHECK(library_reads_number() == 41);
  CHECK(text == "a text that stands on the heap of the process, not here");
}

void access() {
  // Values that a PE stored before the library starts are kept.
  numbers[17] = 100 + static_cast<std::uint64_t>(::getpid());
  shmem_init();
  CHECK(numbers[17] == 100 + static_cast<std::uint64_t>(::getpid()));
  reach_all();
  const int right = (shmem_my_pe() + 1) % shmem_n_pes();
  int local = 0;
  CHECK(shmem_addr_accessible(&local, right) == 0 && shmem_addr_accessible(&constant, right) == 0);
  CHECK(shmem_addr_accessible(text.data(), right) == 0 && shmem_ptr(&local, right) == nullptr);
  // Large transfers, also between a global and the heap.
  auto* heap = static_cast<std::uint64_t*>(shmem_malloc(sizeof numbers));
  numbers.fill(static_cast<std::uint64_t>(shmem_my_pe()));
  shmem_barrier_all();
  shmem_getmem(heap, numbers.data(), sizeof numbers, right);
  CHECK(heap[0] == static_cast<std::uint64_t>(right) && heap[4999] == static_cast<std::uint64_t>(right));
  shmem_barrier_all();
  shmem_putmem(numbers.data(), heap, sizeof numbers, right);
  shmem_barrier_all();
  CHECK(numbers[4999] == static_cast<std::uint64_t>(shmem_my_pe()));
  for (int i = 0; i < 100; ++i) {
    shmem_barrier(0, 0, shmem_n_pes(), psync);
  }
  shmem_free(heap);
}

/// All PEs, PE 0 included, add to the same word of PE 0.
void add() {
  constexpr std::uint64_t kTimes = 20000;
  shmem_init();
  const auto pes = static_cast<std::uint64_t>(shmem_n_pes());
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    shmem_signal_add(&zero_number, 1, 0);
  }
  if (shmem_my_pe() == 0) {
    CHECK(shmem_signal_wait_until(&zero_number, SHMEM_CMP_GE, kTimes * pes) == kTimes * pes);
    CHECK(zero_number == kTimes * pes);
  }
  shmem_barrier_all();
  CHECK(zero_number == (shmem_my_pe() == 0 ? kTimes * pes : 0));
}

void again() {
  for (const char* size : {"4m", "64m", "2m"}) {
    ::setenv("SHMEM_SYMMETRIC_SIZE", size, 1);
    shmem_init();
    reach_all();
    ++numbers[100];
    const std::uint64_t mark = numbers[100];
    const int right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_signal_add(&numbers[101], 1, right);
    shmem_finalize();
    CHECK(numbers[100] == mark && numbers[101] == mark);  // also values that other PEs stored
    shmem_finalize();
  }
  CHECK(numbers[100] == 3);
}

/// PEs 0 and 2, which run one program, may use globals in a collective; all PEs together may not.
void collective_beside_another() {
  shmem_init();
  shmem_team_t even = SHMEM_TEAM_INVALID;
  shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, 2, nullptr, 0, &even);
  if (even != SHMEM_TEAM_INVALID) {
    initialized_number = static_cast<std::uint64_t>(shmem_my_pe()) + 1;
    CHECK(shmem_uint64_sum_reduce(even, &zero_number, &initialized_number, 1) == 0);
    CHECK(zero_number == 1 + 3);
  }
  shmem_barrier_all();
  std::printf("PE %d had %d failures before\n", shmem_my_pe(), pe_failures());
  std::fflush(stdout);
  shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, &zero_number, &initialized_number, 1);
}

/// Run together with another program: PEs of different programs do not share globals.
void beside_another(bool mistake) {
  shmem_init();
  auto* heap = static_cast<std::uint64_t*>(shmem_calloc(1, sizeof(std::uint64_t)));
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    // The tests start PE 1 alone as the other program.
    const bool same = (pe == 1) == (shmem_my_pe() == 1);
    CHECK(shmem_addr_accessible(&zero_number, pe) == (same ? 1 : 0));
    CHECK((shmem_ptr(&zero_number, pe) != nullptr) == same);
    CHECK(shmem_addr_accessible(heap, pe) == 1);
    if (same) {
      shmem_signal_add(&zero_number, 1, pe);
    }
  }
  shmem_barrier_all();
  CHECK(zero_number == (shmem_my_pe() == 1 ? 1 : static_cast<std::uint64_t>(shmem_n_pes()) - 1));
  if (mistake) {
    shmem_signal_set(&zero_number, 1, shmem_my_pe() == 1 ? 0 : 1);
  }
}

void not_symmetric() {
  shmem_init();
  CHECK(shmem_addr_accessible(&zero_number, 0) == 0 && shmem_ptr(&zero_number, 0) == nullptr);
  shmem_barrier_all();
  shmem_signal_set(&zero_number, 1, 0);
}

void beyond() {
  shmem_init();
  shmem_putmem(numbers.data(), numbers.data(), std::size_t{1} << 30, 0);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(pe_checks::act(argc > 1 ? argv[1] : "", {{"access", [] { access(); }},
                                                 {"add", add},
                                                 {"again", again},
                                                 {"beside-another", [] { beside_another(false); }},
                                                 {"beside-another-mistake", [] { beside_another(true); }},
                                                 {"collective-beside-another", collective_beside_another},
                                                 {"not-symmetric", not_symmetric},
                                                 {"beyond", beyond}}));
  shmem_finalize();
  return pe_result();
}
