// SPDX-License-Identifier: Apache-2.0
// SHMEM_DEBUG: each mistake is reported in one line with call, PE and value, and correct programs are not disturbed.
#include <cstring>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;

struct Mistake {
  const char* name;
  const char* report;  // in the line that begins with "shmem: PE n: "
  int pes = 2;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.name;
}

Outcome make(const Mistake& mistake, const char* debug = "SHMEM_DEBUG=1") {
  return run_pes(mistake.pes, "off", {"mistakes", mistake.name}, {debug, "SHMEM_BARRIER_TIMEOUT=60"});
}

/// The text with special characters escaped for a regular expression.
std::string quoted(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += std::string(std::strchr("().+[]", c) != nullptr ? "\\" : "") + c;
  }
  return result;
}

class Checking : public testing::TestWithParam<Mistake> {};

TEST_P(Checking, Reports) {
  const Mistake& mistake = GetParam();
  const Outcome job = make(mistake);
  EXPECT_EQ(job.exit.code, 1) << job.output;
  EXPECT_THAT(job.output, ContainsRegex("shmem: PE [0-9]: [^\n]*" + quoted(mistake.report)));
}

const Mistake kMemory[] = {
    {"put_freed", "shmem_putmem: 8 bytes at heap+0x0 are not allocated: they were freed, or"},
    {"put_behind_end",
     "shmem_putmem: 24 bytes at heap+0x0 reach behind the end of the block of 20 bytes at heap+0x0, which has 20"},
    {"get_never_allocated", "shmem_long_get: 8 bytes at heap+0x800040 are not allocated"},
    {"atomic_freed", "shmem_long_atomic_inc: 8 bytes at heap+0x40 are not allocated"},
    {"put_stack", "shmem_long_p: 8 bytes at the given address are not inside the symmetric heap"},
    {"put_to_pointer", "is what shmem_ptr gives for PE "},
    {"put_null", "shmem_long_put: the buffer of this PE is NULL, for 16 bytes"},
    {"strided_null", "shmem_long_iget: the buffer of this PE is NULL, for 24 bytes"},
    {"fetch_null", "shmem_long_atomic_fetch_nbi: the buffer of this PE is NULL, for 8 bytes"},
    {"put_from_freed", "shmem_putmem: 8 bytes at heap+0x0 are not allocated"},
    {"put_overlap", "shmem_long_put: source and dest overlap: 32 bytes at heap+0x40 and at heap+0x48 of this same PE"},
    {"get_overlap", "shmem_long_get: source and dest overlap: 32 bytes at globals+0x"},
    {"put_no_pe", "shmem_long_p: there is no PE 7 in this job of 2"},
    {"put_huge", "shmem_long_put: 4611686018427387903 elements cannot be addressed"},
    {"put_negative", "shmem_putmem: 18446744073709551615 bytes at the given address are not inside"},
    {"strides", "shmem_long_iput: strides 0 and 1 must be 1 or more"},
    {"unaligned",
     "shmem_int_atomic_inc: the given address is not aligned to the size of what is there, 4 bytes (at 0x"},
    {"signal_op", "shmem_putmem_signal: 42 is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD"},
    {"comparison", "shmem_long_wait_until: 42 is not a comparison"},
    {"wait_stack", "shmem_long_wait_until: 8 bytes at the given address are not inside"},
    {"wait_freed", "shmem_long_wait_until: 8 bytes at heap+0x40 are not allocated"},
    {"destroyed_context", "shmem_ctx_long_p: the context was never made, or has been destroyed"},
};
const Mistake kCalls[] = {
    {"other_call",
     "the PEs of team 0 do not make the same call: PE 0 calls shmem_barrier_all(), PE 1 calls "
     "shmem_long_sum_reduce(dest heap+0x40, source heap+0x48, nreduce 1); all make"},
    {"other_operation",
     "the PEs of team 0 do not make the same call: PE 0 calls shmem_long_sum_reduce(dest heap+0x40, source heap+0x48, "
     "nreduce 1), PE 1 calls shmem_long_max_reduce("},
    {"other_root",
     "the PEs of team 0 do not make the same call: PE 0 calls shmem_broadcastmem(dest heap+0x40, source heap+0x48, "
     "nelems 8, PE_root 0), PE 1 calls shmem_broadcastmem(dest heap+0x40, source heap+0x48, nelems 8, PE_root 1)"},
    {"other_size",
     "the PEs of team 0 do not make the same call: PE 0 calls shmem_long_fcollect(dest heap+0x80, source heap+0x40, "
     "nelems 1), PE 1 calls shmem_long_fcollect(dest heap+0x80, source heap+0x40, nelems 2)"},
    {"other_dest",
     "PE 0 calls shmem_long_sum_reduce(dest heap+0x40, source heap+0x60, nreduce 1), PE 1 calls "
     "shmem_long_sum_reduce(dest globals+0x"},
    {"other_team", "the PEs wait for each other: "},
    {"circle", "the PEs wait for each other: ", 3},
    {"reduce_overlap",
     "shmem_long_sum_reduce: dest (32 bytes at heap+0x40) and source (32 bytes at heap+0x48) overlap; they must be "
     "apart, or the same"},
    {"collect_in_place", "shmem_long_fcollect: dest (16 bytes at heap+0x40) and source (8 bytes at heap+0x40) overlap"},
    {"collective_freed", "shmem_broadcastmem: 8 bytes at heap+0x0 are not allocated"},
    {"malloc_sizes",
     "the PEs of team 0 do not make the same call: PE 0 calls shmem_malloc(100), PE 1 calls shmem_malloc(101)"},
    {"malloc_or_barrier",
     "the PEs of team 0 do not make the same call: PE 0 calls shmem_malloc(100), PE 1 calls shmem_barrier_all()"},
    {"free_others", "PE 0 calls shmem_free(offset 0), PE 1 calls shmem_free(offset 64)"},
    {"split_others",
     "PE 0 calls shmem_team_split_strided(start 0, stride 1, size 1), PE 1 calls shmem_team_split_strided(start 1, "
     "stride 1, size 1)"},
    {"early_end", "PE 0 calls shmem_finalize(), PE 1 calls shmem_barrier_all()"},
    {"arrive", "PE 0 calls shmem_barrier_all(), PE 1 calls shmemx_barrier_arrive()"},
    {"other_set", "the PEs wait for each other: ", 3},
    {"other_sync_words",
     "the PEs of the active set of 2 PEs (0, stride 1) do not make the same call: PE 0 calls shmem_barrier(pSync"},
    {"dirty_sync_words", "shmem_int_sum_to_all: pSync[2] (pSync is globals+0x"},
    {"destroyed_team", "shmem_team_destroy: 2 is not a team of this PE"},
};
const Mistake kOthers[] = {
    {"foreign_lock", "shmem_clear_lock: this PE does not hold the lock"},
    {"lock_twice", "shmem_set_lock: this PE holds the lock already"},
    {"lock_garbage", "shmem_set_lock: the lock is globals+0x"},
    {"lock_held", "shmem_finalize: this PE still holds the lock at globals+0x"},
    {"single",
     "shmem_long_p: the thread that calls is not the one that started the library, and the level is "
     "SHMEM_THREAD_SINGLE"},
    {"two_at_once",
     "shmem_sync_all: another thread of this PE is in a collective call of team 0: one at a time may be"},
    {"serialized",
     "shmem_long_p: another thread of this PE is in a collective call, and the level is SHMEM_THREAD_SERIALIZED"},
};

std::string name_of(const testing::TestParamInfo<Mistake>& test) {
  return test.param.name;
}
INSTANTIATE_TEST_SUITE_P(Memory, Checking, ValuesIn(kMemory), name_of);
INSTANTIATE_TEST_SUITE_P(Calls, Checking, ValuesIn(kCalls), name_of);
INSTANTIATE_TEST_SUITE_P(Others, Checking, ValuesIn(kOthers), name_of);

void expect_names(const std::string& output, const std::vector<const char*>& texts) {
  for (const char* text : texts) {
    EXPECT_THAT(output, HasSubstr(text));
  }
}

TEST(CheckingCircles, NameAllPesAndTheirCalls) {
  expect_names(make({"other_team", ""}).output, {"PE 0 is in shmem_team_sync() of team 2 and waits for PE 1",
                                                 "PE 1 is in shmem_barrier_all() of team 0 and waits for PE 0"});
  expect_names(make({"circle", "", 3}).output, {"PE 0 is in shmem_team_sync() of team 2 and waits for PE 1",
                                                "PE 1 is in shmem_team_sync() of team 3 and waits for PE 2",
                                                "PE 2 is in shmem_team_sync() of team 4 and waits for PE 0"});
  expect_names(make({"other_set", "", 3}).output, {"of the active set of 3 PEs (0, stride 1) and waits for PE 1",
                                                   "of the active set of 2 PEs (0, stride 1) and waits for PE 0"});
}

TEST(CheckingTimeouts, NameTheMissingPes) {
  const auto run = [](int seconds) {
    return run_pes(2, "off", {"mistakes", "late"},
                   {"SHMEM_DEBUG=1", "SHMEM_BARRIER_TIMEOUT=" + std::to_string(seconds)});
  };
  const auto reports = AllOf(
      Field(&Outcome::exit, Field(&Exit::code, 1)),
      Field(&Outcome::output,
            ContainsRegex("shmem: PE 0: shmem_barrier_all: waited [0-9]+ ms \\(SHMEM_BARRIER_TIMEOUT\\) for the others "
                          "of team 0; PE 1 is in no collective call")));
  const auto job = with_timeouts(run, Matches(reports));
  EXPECT_THAT(job, reports) << job.output;
}

TEST(CheckingNotes, NameTheMissingPesOfALongWait) {
  Process job(oshrun(2, "off", {test_program("mistakes"), "late"}), {"SHMEM_DEBUG=1", "SHMEM_BARRIER_WARN=0.1"});
  job.wait_for_output("PE 0 is in shmem_barrier_all() of team 0, PE 1 is in no collective call", Seconds{60});
  EXPECT_THAT(job.output(), ContainsRegex("shmem: PE 0: has waited [0-9]+ s: PE 0 is in shmem_barrier_all\\(\\) of "
                                          "team 0, PE 1 is in no collective call"));
}

TEST(CheckingNotes, ListBlocksThatWereNotFreedAtTheEnd) {
  const Outcome job = make({"leak", ""});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, HasSubstr("shmem: PE 0: shmem_finalize: 3 blocks of the symmetric heap were not freed: 20 "
                                    "bytes at heap+0x0, 128 bytes at heap+0x40, 1000 bytes at heap+0xc0"));
}

TEST(CheckingNotes, AreEmptyWithoutMistakes) {
  const Outcome job = make({"nothing", ""});
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_THAT(job.output, Not(HasSubstr("shmem_")));
}

TEST(CheckingNotes, AreOffByDefault) {
  const Outcome job = make({"put_freed", ""}, "SHMEM_DEBUG=0");
  EXPECT_TRUE(job.exit.clean()) << job.output;
  EXPECT_EQ(job.output, "");
}

class CheckedProgram : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(CheckedProgram, IsNotDisturbed) {
  const auto [family, language] = GetParam();
  const int pes = repeats(2, 4);
  run_clean(pes, "off", {std::string("openshmem_") + language + "_pes", family}, {"SHMEM_DEBUG=1"});
}

INSTANTIATE_TEST_SUITE_P(Programs, CheckedProgram,
                         Combine(Values("rma", "atomic", "wait", "collective", "threads"), Values("c", "cxx")),
                         kNameByParameters);

}  // namespace
