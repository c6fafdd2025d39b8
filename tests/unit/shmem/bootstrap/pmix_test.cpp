// SPDX-License-Identifier: Apache-2.0
// The bootstrap by PMIx, with a fake libpmix that the test controls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "shmem/bootstrap/allgather.hpp"
#include "shmem/bootstrap/pmix_bootstrap.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

namespace shmem {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Matches;

/// The launcher and all PEs except PE 0. Global, because calls of libpmix have no argument for a context.
struct Launcher {
  std::mutex mutex;
  std::map<std::string, std::string> kept;  // "rank key"
  pmix_notification_fn_t handler = nullptr;

  // Set by the test before the first call.
  std::uint32_t size = 3;
  pmix_status_t init = PMIX_SUCCESS;
  pmix_status_t put = PMIX_SUCCESS;
  pmix_status_t fence = PMIX_SUCCESS;
  std::atomic<const char*> hangs{""};  // the name of the call that does not return during the test
  int absent = -1;                     // a PE that never comes
  std::string other_part;              // what the other PEs contribute; "": the same as PE 0
  bool no_memory = false;              // in the call for a text

  std::atomic<bool> over{false};
  std::vector<pmix_rank_t> fenced;  // the processes of the last fence
  std::atomic<int> inits{0};
  std::atomic<int> aborted{-1};

  void hang_in(const char* call) const {
    while (std::strcmp(call, hangs) == 0 && !over) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
};
std::atomic<Launcher*> launcher{nullptr};

std::string slot(pmix_rank_t rank, const char* key) {
  return std::to_string(rank) + " " + key;
}

pmix_status_t fake_init(pmix_proc_t* self, pmix_info_t* /*info*/, std::size_t /*infos*/) {
  launcher.load()->hang_in("init");
  ++launcher.load()->inits;
  *self = {};
  std::strcpy(self->nspace, "job");
  return launcher.load()->init;
}
pmix_status_t fake_finalize(const pmix_info_t* /*info*/, std::size_t /*infos*/) {
  --launcher.load()->inits;
  return PMIX_SUCCESS;
}
pmix_status_t fake_put(pmix_scope_t /*scope*/, const char* key, pmix_value_t* value) {
  const std::scoped_lock lock(launcher.load()->mutex);
  const std::string bytes(value->data.bo.bytes, value->data.bo.size);
  for (std::uint32_t rank = 0; rank < launcher.load()->size; ++rank) {
    if (static_cast<int>(rank) == launcher.load()->absent) {
      continue;
    }
    launcher.load()->kept[slot(rank, key)] =
        rank == 0 || launcher.load()->other_part.empty() ? bytes : launcher.load()->other_part;
  }
  return launcher.load()->put;
}
pmix_status_t fake_commit() {
  return PMIX_SUCCESS;
}
pmix_status_t fake_fence(const pmix_proc_t* procs, std::size_t count, const pmix_info_t* /*info*/,
                         std::size_t /*infos*/) {
  {
    const std::scoped_lock lock(launcher.load()->mutex);
    launcher.load()->fenced.clear();
    std::ranges::transform(std::span(procs, count), std::back_inserter(launcher.load()->fenced), &pmix_proc_t::rank);
  }
  launcher.load()->hang_in("fence");
  return launcher.load()->fence;
}
pmix_status_t fake_get(const pmix_proc_t* whose, const char* key, const pmix_info_t* /*info*/, std::size_t /*infos*/,
                       pmix_value_t** out) {
  launcher.load()->hang_in("get");
  auto* const value = static_cast<pmix_value_t*>(std::calloc(1, sizeof(pmix_value_t)));  // NOLINT: as libpmix does
  if (std::string(key) == PMIX_JOB_SIZE) {
    value->type = PMIX_UINT32;
    value->data.uint32 = launcher.load()->size;
    *out = value;
    return PMIX_SUCCESS;
  }
  const std::scoped_lock lock(launcher.load()->mutex);
  const auto found = launcher.load()->kept.find(slot(whose->rank, key));
  if (found == launcher.load()->kept.end()) {
    std::free(value);  // NOLINT
    return PMIX_ERR_NOT_FOUND;
  }
  value->type = PMIX_BYTE_OBJECT;
  value->data.bo.size = found->second.size();
  value->data.bo.bytes = static_cast<char*>(std::malloc(found->second.size() + 1));  // NOLINT
  std::copy(found->second.begin(), found->second.end(), value->data.bo.bytes);
  *out = value;
  return PMIX_SUCCESS;
}
pmix_status_t fake_abort(int status, const char* /*text*/, pmix_proc_t* /*procs*/, std::size_t /*count*/) {
  launcher.load()->aborted = status;
  launcher.load()->hang_in("abort");
  return PMIX_SUCCESS;
}
pmix_status_t fake_register(pmix_status_t* /*codes*/, std::size_t /*count*/, pmix_info_t* /*info*/,
                            std::size_t /*infos*/, pmix_notification_fn_t handler, pmix_hdlr_reg_cbfunc_t done,
                            void* data) {
  launcher.load()->handler = handler;
  done(PMIX_SUCCESS, 7, data);
  return PMIX_SUCCESS;
}
pmix_status_t fake_deregister(std::size_t id, pmix_op_cbfunc_t done, void* data) {
  EXPECT_EQ(id, 7U);
  done(PMIX_SUCCESS, data);
  return PMIX_SUCCESS;
}
const char* fake_text(pmix_status_t /*status*/) {
  if (launcher.load()->no_memory) {
    throw std::bad_alloc();
  }
  return "SOME-ERROR";
}
constexpr PmixCalls kFake{fake_init, fake_finalize, fake_put,      fake_commit,     fake_fence,
                          fake_get,  fake_abort,    fake_register, fake_deregister, fake_text};

class Pmix : public ::testing::Test {
 protected:
  Pmix() : launcher_(all().emplace_back()) { launcher = &launcher_; }
  ~Pmix() override {
    launcher_.over = true;
    if (*launcher_.hangs.load() != '\0') {
      std::this_thread::sleep_for(milliseconds(100));
    }
  }
  /// The limit is for calls that another thread makes, so a busy machine needs a long one.
  static Result<std::unique_ptr<PmixBootstrap>> join(milliseconds step = std::chrono::seconds(30)) {
    return PmixBootstrap::join(kFake, {.step = step, .grace = milliseconds(50)});
  }
  template <typename T>
  static std::string error_of(const Result<T>& result) {
    return result ? "no error" : result.error().text;
  }
  static void tell(pmix_status_t status, pmix_rank_t rank) {
    pmix_proc_t source{};
    std::strcpy(source.nspace, "job");
    source.rank = rank;
    launcher.load()->handler(7, status, &source, nullptr, 0, nullptr, 0, nullptr, nullptr);
  }

  /// Never destroyed: calls that were abandoned may still use their launcher.
  static std::list<Launcher>& all() {
    static auto& list = *new std::list<Launcher>;  // NOLINT(cppcoreguidelines-owning-memory)
    return list;
  }
  Launcher& launcher_;
};

TEST_F(Pmix, GathersAndLeaves) {
  auto pe = join().value();
  EXPECT_EQ(pe->rank(), 0);
  EXPECT_EQ(pe->size(), 3);
  EXPECT_EQ(allgather(*pe, 42).value(), (std::vector<int>{42, 42, 42}));
  const std::vector<std::byte> large(1'000'000, std::byte{7});  // must be split into parts
  EXPECT_EQ(pe->allgather(large).value(), std::vector<std::byte>(3'000'000, std::byte{7}));
  EXPECT_TRUE(pe->barrier());
  EXPECT_FALSE(pe->aborted());
  pe->leave();
  pe.reset();
  EXPECT_EQ(launcher_.inits, 0);
}

TEST_F(Pmix, UsesOtherNamesInALaterJobOfTheProcess) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(join().value()->barrier());
  }
  EXPECT_EQ(launcher_.kept.size(), 6U);
}

/// libpmix's server may count one process fewer of its node once a process has called PMIx_Finalize.
TEST_F(Pmix, ALaterJobOfTheProcessNamesThePesThatTheServerIsToCount) {
  EXPECT_TRUE(join().value()->barrier());
  EXPECT_TRUE(join().value()->barrier());
  EXPECT_EQ(launcher_.fenced, (std::vector<pmix_rank_t>{0, 1, 2}));
}

TEST_F(Pmix, APeThatIsAloneWaitsForNobody) {
  launcher_.size = 1;
  launcher_.hangs = "fence";
  auto pe = join().value();
  EXPECT_TRUE(pe->barrier());
  EXPECT_EQ(allgather(*pe, 42).value(), std::vector<int>{42});
}

TEST_F(Pmix, ReportsWhyItCannotJoin) {
  launcher_.init = PMIX_ERR_UNREACH;
  EXPECT_THAT(error_of(join()), AllOf(HasSubstr("PMIx_Init: SOME-ERROR (-25)"), HasSubstr("has the launcher ended")));
}

TEST_F(Pmix, RefusesAnInvalidSize) {
  launcher_.size = 0;
  EXPECT_THAT(error_of(join()), HasSubstr("cannot join"));
  EXPECT_EQ(launcher_.inits, 0);
}

TEST_F(Pmix, DoesNotWaitForASilentServer) {
  for (const char* call : {"init", "get"}) {
    launcher_.hangs = call;
    EXPECT_THAT(error_of(join(milliseconds(200))), HasSubstr("did not answer for 0.200 s (PMIx_Init)"));
  }
}

TEST_F(Pmix, NamesThePesThatDoNotCome) {
  launcher_.hangs = "fence";
  launcher_.absent = 2;
  const auto barrier_with = [](int limit) -> std::string {
    const auto pe = join(std::chrono::seconds(limit));
    if (!pe) {
      return pe.error().text;
    }
    std::string first = error_of((*pe)->barrier());
    EXPECT_EQ(error_of(allgather(**pe, 1)), first);  // the failure is permanent
    return first;
  };
  const auto names_it = ContainsRegex("PE 0 waited [0-9]+ s for PE 2 to come \\(step 1");
  EXPECT_THAT(test_support::with_timeouts(barrier_with, Matches(names_it)), names_it);
}

TEST_F(Pmix, NamesThePesThatDoNotComeIfTheServerGivesUpFirst) {
  launcher_.fence = PMIX_ERR_TIMEOUT;
  launcher_.absent = 1;
  EXPECT_THAT(error_of(join().value()->barrier()), HasSubstr("for PE 1 to come"));
}

TEST_F(Pmix, NamesThePesThatHaveExited) {
  launcher_.fence = PMIX_ERR_PARTIAL_SUCCESS;
  launcher_.absent = 1;
  EXPECT_THAT(error_of(join().value()->barrier()), HasSubstr("waits for PE 1: exited"));
}

TEST_F(Pmix, ReportsWhichCallTheServerRefused) {
  launcher_.put = PMIX_ERR_NOMEM;
  EXPECT_THAT(error_of(join().value()->barrier()),
              HasSubstr("PE 0 cannot synchronise with the other PEs: PMIx_Fence: SOME-ERROR"));
}

TEST_F(Pmix, ReportsPesInDifferentSteps) {
  launcher_.other_part = "\x10" + std::string(7 + 16, '\0');
  EXPECT_THAT(error_of(allgather(*join().value(), 1)), HasSubstr("PE 0 sends 4 bytes, PE 1 sends 16"));
}

TEST_F(Pmix, EndsAWaitWhenAPeDies) {
  launcher_.hangs = "fence";
  auto pe = PmixBootstrap::join(kFake, {.step = std::chrono::minutes(2)}).value();
  tell(PMIX_ERR_PROC_ABORTED_BY_SIG, 2);
  EXPECT_THAT(error_of(pe->barrier()),
              HasSubstr("shmem: PE 0: the job was ended: the launcher reports of PE 2: SOME-ERROR"));
  EXPECT_TRUE(pe->aborted());
}

TEST_F(Pmix, IgnoresEventsOfItselfAndEventsAfterItsEnd) {
  auto pe = join().value();
  tell(PMIX_ERR_EXIT_NONZERO_TERM, 0);
  EXPECT_FALSE(pe->aborted());
  pe.reset();
  tell(PMIX_ERR_EXIT_NONZERO_TERM, 1);
}

TEST_F(Pmix, AbortsEvenIfTheServerDoesNotAnswer) {
  auto pe = join().value();
  EXPECT_EQ(pe->abort(6, "the test wants it"), 6);
  EXPECT_EQ(launcher_.aborted, 6);
  EXPECT_EQ(pe->aborted(), "the test wants it");
}

/// An exception would end the process: the frames of libpmix, which tells of the event, are C's.
TEST_F(Pmix, AnEventForWhichThereIsNoMemoryEndsTheJob) {
  auto pe = join().value();
  launcher_.no_memory = true;
  tell(PMIX_ERR_PROC_ABORTED, 1);
  EXPECT_EQ(pe->aborted(), "no memory");
}

TEST_F(Pmix, EndsTheProcessWhenTheLauncherIsGone) {
  if (test_support::kEmulated) {
    GTEST_SKIP() << "a death test starts this program again, which an emulator cannot";
  }
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        auto pe = join().value();
        tell(PMIX_ERR_LOST_CONNECTION, 0);
        ::sleep(60);
      },
      ::testing::ExitedWithCode(1), "PE 0 ends: the launcher is gone");
}

}  // namespace
}  // namespace shmem
