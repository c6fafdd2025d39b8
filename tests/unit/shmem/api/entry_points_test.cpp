// SPDX-License-Identifier: Apache-2.0
// Entry points in a job of one PE in this process, which pretends to have others: on another node behind a network of
// the test, or with other global variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "shmem/api/gathering.hpp"
#include "shmem/bootstrap/single.hpp"
#include "tests/unit/shmem/noting_network.hpp"

namespace shmem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Api : public ::testing::Test {
 protected:
  void start() {
    Options options;
    options.symmetric_size = std::size_t{1} << 20;
    options.symmetric_globals = false;
    options.gba = GbaUse::kOff;
    const auto started = Runtime::start(SHMEM_THREAD_SINGLE, options, {});
    ASSERT_TRUE(started) << started.error().text;
    runtime_ = Runtime::current();
    ASSERT_EQ(runtime_->n_pes(), 1);
    words_ = static_cast<std::uint64_t*>(pshmem_calloc(16, sizeof(std::uint64_t)));
  }
  void TearDown() override {
    if (runtime_ != nullptr) {
      EXPECT_TRUE(Runtime::stop());
    }
  }

  Runtime* runtime_ = nullptr;
  std::uint64_t* words_ = nullptr;
};

/// PEs 1 and 2 are on another node.
class Remote : public Api {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(start());
    before_ = job().nodes;
    job().nodes = {
        .count = 2, .mine = 0, .node_of = {0, 1, 1}, .here = {0}, .number_here = {0, 0, 1}, .hosts = {"a", "b"}};
    job().network = &network_;
    ctx_ = make_ctx(0);
  }
  /// A context numbers its PEs itself, so that the job need not have more than one.
  shmem_ctx_t make_ctx(long options) {
    const auto ctx = runtime_->ctxs().add({.map = {0, 1, 3}, .options = options, .used = PeSet(3)});
    return reinterpret_cast<shmem_ctx_t>(ctx.value());  // NOLINT(performance-no-int-to-ptr)
  }
  void TearDown() override {
    job().nodes = before_;
    job().network = nullptr;
    Api::TearDown();
  }
  // The Runtime's own is not constant.
  [[nodiscard]] Job& job() const { return const_cast<Job&>(runtime_->job()); }

  NotingNetwork network_;
  Nodes before_;
  shmem_ctx_t ctx_{};
};

TEST_F(Remote, SignalsFollowThePutsToTheirPeAndWaitForNoOther) {
  pshmem_ctx_signal_set(ctx_, words_, 1, 2);
  EXPECT_THAT(network_.take(), ElementsAre("fence 2", "set 2"));
  pshmem_ctx_signal_add(ctx_, words_, 1, 1);
  EXPECT_THAT(network_.take(), ElementsAre("fence 1", "add 1"));
  const std::uint64_t data = 5;
  pshmem_ctx_putmem_signal(ctx_, words_ + 1, &data, sizeof data, words_, 1, SHMEM_SIGNAL_SET, 1);
  EXPECT_THAT(network_.take(), ElementsAre("put 1", "fence 1", "set 1"));
  pshmem_ctx_putmem_signal_nbi(ctx_, words_ + 1, &data, sizeof data, words_, 1, SHMEM_SIGNAL_ADD, 2);
  EXPECT_THAT(network_.take(), ElementsAre("start_put 2", "fence 2", "add 2"));
  pshmem_ctx_signal_set(ctx_, words_, 7, 0);
  EXPECT_THAT(network_.take(), IsEmpty());
  EXPECT_EQ(words_[0], 7U);
}

TEST_F(Remote, ContextsOrderAndCompleteTheirOwnOperationsOnly) {
  for (const long options : {long{SHMEM_CTX_PRIVATE}, long{SHMEM_CTX_SERIALIZED}, 0L}) {
    shmem_ctx_t first = make_ctx(options);
    shmem_ctx_t second = make_ctx(options);
    pshmem_ctx_signal_set(first, words_, 1, 1);
    pshmem_ctx_signal_set(second, words_, 1, 2);
    EXPECT_THAT(network_.take(), ElementsAre("fence 1", "set 1", "fence 2", "set 2"));
    pshmem_ctx_fence(second);
    pshmem_ctx_quiet(second);
    EXPECT_THAT(network_.take(), ElementsAre("fence 2", "quiet 2"));
    pshmem_ctx_signal_set(second, words_, 1, 0);  // on this node
    network_.take();
    pshmem_ctx_destroy(first);
    EXPECT_THAT(network_.take(), ElementsAre("quiet 1"));
    pshmem_ctx_destroy(second);
    // Another thread may have begun something on a context that threads share.
    EXPECT_THAT(network_.take(), ElementsAre(options != 0 ? "quiet 0" : "quiet 0 2"));
  }
}

TEST_F(Remote, QuietsOfPesWaitForNoOthers) {
  pshmem_ctx_signal_set(ctx_, words_, 1, 1);
  pshmem_ctx_signal_set(ctx_, words_, 1, 2);
  network_.take();
  const std::array<int, 2> pes{0, 2};
  pshmem_ctx_pe_quiet(ctx_, pes.data(), pes.size());
  EXPECT_THAT(network_.take(), ElementsAre("quiet 2"));
  pshmem_pe_quiet(pes.data(), 1);
  EXPECT_THAT(network_.take(), ElementsAre("quiet 0"));
  pshmem_ctx_quiet(ctx_);
  EXPECT_THAT(network_.take(), ElementsAre("quiet 1 2"));
}

/// Members of which only PE 0 exists, so that a look at another one ends the job.
class Buffers : public Api {
 protected:
  /// The buffer is a local variable or in the heap. `same`: all PEs are known to have the same global variables. Starts
  /// the library, too: a process that is forked later, for a death test, would be no PE.
  void check(bool same, bool local) {
    start();
    const std::uint64_t variable = 0;
    SingleBootstrap alone;
    // Another heap, so that the address is not in it, and is taken for a global variable.
    Job job{.options = {},
            .bootstrap = std::make_unique<SingleBootstrap>(),
            .memory = NodeMemory::create(alone, std::size_t{1} << 20).value(),
            .me = 0,
            .size = 1,
            .policy = wait_policy(1)};
    if (same) {
      job.globals = SymmetricGlobals::plan(alone, {}, "").value();
    }
    api::check_any_buffer({job, {0, 1, 3}, 0, {}, {}}, "shmem_test", local ? &variable : words_, sizeof variable);
  }
};

TEST_F(Buffers, AreCheckedOnceIfAllPesHaveTheSameGlobals) {
  check(true, false);
}

TEST_F(Buffers, AreCheckedForEachMemberIfTheirGlobalsDiffer) {
  EXPECT_EXIT(check(false, false), ::testing::ExitedWithCode(EXIT_FAILURE), "shmem_test: there is no PE 1");
}

TEST_F(Buffers, AreCheckedForThisPeInAnyCase) {
  EXPECT_EXIT(check(true, true), ::testing::ExitedWithCode(EXIT_FAILURE), "shmem_test: 8 bytes at the given address");
}

}  // namespace
}  // namespace shmem
