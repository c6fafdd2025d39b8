// SPDX-License-Identifier: Apache-2.0
// Barriers of lists of PEs, and of cores that use memory only, on memory that is not coherent.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "shmem/barrier/partial.hpp"
#include "shmem/cores/core.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/incoherent/sim_core.hpp"

namespace {

using incoherent::Machine;
using incoherent::SimCore;
using incoherent::Site;
using incoherent::Sites;
using shmem::SyncWord;

constexpr int kBarriers = 6;

/// The common base: a line of data for each core, which the core stores to before each barrier and all check after it.
class SmallRun {
 public:
  virtual ~SmallRun() = default;

  std::optional<std::string> run(int seed, Sites& sites) {
    entered_.assign(cores(), 0);
    begin();
    return machine_.run(static_cast<std::uint64_t>(seed), sites, [this](int number) { run_core(number); });
  }

 protected:
  SmallRun(std::vector<int> cores_of, std::size_t words)
      : words_(words),
        cores_of_(std::move(cores_of)),
        lines_(words + static_cast<std::size_t>(std::accumulate(cores_of_.begin(), cores_of_.end(), 0))),
        machine_(cores_of_, lines_, [](int line) { return "line " + std::to_string(line); }) {}

  virtual void begin() {}
  /// The cores of that barrier; none if core `number` does not take part.
  [[nodiscard]] virtual std::vector<int> partners(int number, int barrier) const = 0;
  virtual std::errc synchronize(SimCore& core, int number, int barrier) = 0;

  [[nodiscard]] std::size_t cores() const { return lines_.size() - words_; }
  [[nodiscard]] SyncWord& word(std::size_t i) { return lines_[i]; }
  [[nodiscard]] const Machine& machine() const { return machine_; }

 private:
  void run_core(int number) {
    SimCore core(machine_, number);
    std::uint64_t& entered = entered_[static_cast<std::size_t>(number)];
    for (int barrier = 0; barrier < kBarriers && !machine_.failed(); ++barrier) {
      const std::vector<int> all = partners(number, barrier);
      if (all.empty()) {
        continue;
      }
      const auto step = static_cast<std::uint64_t>(barrier) + 1;
      core.store(data(number), step);
      entered = step;
      if (const std::errc error = synchronize(core, number, barrier); error != std::errc{}) {
        return machine_.fail("an error: " + std::make_error_code(error).message());
      }
      for (const int other : all) {
        const std::uint64_t seen = core.load(data(other));
        if (entered_[static_cast<std::size_t>(other)] < step || seen < step) {
          return machine_.fail("core " + std::to_string(number) + " left barrier " + std::to_string(barrier) +
                               " early, or sees old data: " + std::to_string(seen));
        }
      }
    }
  }
  SyncWord& data(int number) { return lines_[words_ + static_cast<std::size_t>(number)]; }

  std::size_t words_;
  std::vector<int> cores_of_;
  std::vector<SyncWord> lines_;
  std::vector<std::uint64_t> entered_;  // by core; real memory, not simulated
  Machine machine_;
};

/// One PE whose cores synchronize by memory.
class CoresRun : public SmallRun {
 public:
  explicit CoresRun(int cores) : SmallRun({cores}, static_cast<std::size_t>(cores) * kRounds + 1) {}

 private:
  static constexpr std::size_t kRounds = 3;

  [[nodiscard]] std::vector<int> partners(int /*number*/, int /*barrier*/) const override {
    std::vector<int> all(cores());
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  std::errc synchronize(SimCore& core, int /*number*/, int /*barrier*/) override {
    return shmem::disseminate_cores(core, &word(0), kRounds, word(cores() * kRounds));
  }
};

/// Four PEs of two cores and lists that overlap.
class ListsRun : public SmallRun {
 public:
  ListsRun() : SmallRun({2, 2, 2, 2}, kPes * kPes) {}

 private:
  static constexpr std::size_t kPes = 4;
  inline static const std::vector<std::vector<std::uint32_t>> kLists{{0, 1, 2}, {3, 1}, {2, 1, 3, 0}, {0, 2}};

  struct Words {
    ListsRun& run;
    int mine;
    [[nodiscard]] int me() const { return mine; }
    [[nodiscard]] SyncWord& received(int pe, int by) const {
      return run.word(static_cast<std::size_t>(pe) * kPes + static_cast<std::size_t>(by));
    }
    [[nodiscard]] std::uint64_t& awaited(int from) const {
      return run.awaited_[static_cast<std::size_t>(mine) * kPes + static_cast<std::size_t>(from)];
    }
  };

  void begin() override { awaited_.assign(kPes * kPes, 0); }
  [[nodiscard]] static const std::vector<std::uint32_t>& list_of(int barrier) {
    return kLists[static_cast<std::size_t>(barrier) % kLists.size()];
  }
  [[nodiscard]] std::vector<int> partners(int number, int barrier) const override {
    std::vector<int> all;
    for (int other = 0; other < static_cast<int>(cores()); ++other) {
      if (std::ranges::count(list_of(barrier), static_cast<std::uint32_t>(machine().pe_of(other))) != 0) {
        all.push_back(other);
      }
    }
    return std::ranges::count(all, number) != 0 ? all : std::vector<int>{};
  }
  std::errc synchronize(SimCore& core, int number, int barrier) override {
    const int me = machine().pe_of(number);
    const auto& members = list_of(barrier);
    const auto list = shmem::PeList::create(me, {0, 1, kPes}, members.data(), static_cast<unsigned>(members.size()));
    int waits_for = -1;
    return shmem::partial_sync(core, Words{*this, me}, *list, waits_for);
  }

  std::vector<std::uint64_t> awaited_;
};

void expect_to_hold(SmallRun& run) {
  for (int seed = 0; seed < test_support::repeats(300, 30000); ++seed) {
    Sites sites;
    ASSERT_EQ(run.run(seed, sites), std::nullopt) << "seed " << seed;
  }
}

/// Expects that without any one operation some schedule fails.
void expect_nothing_superfluous(SmallRun& run) {
  Sites all;
  ASSERT_EQ(run.run(0, all), std::nullopt);
  for (const Site& site : all.seen()) {
    bool missed = false;
    for (int seed = 0; !missed && seed < test_support::repeats(300, 3000); ++seed) {
      Sites sites(site);
      missed = run.run(seed, sites).has_value();
    }
    EXPECT_TRUE(missed) << site.text();
  }
}

TEST(IncoherentCoresTest, CoresSynchronizeByMemory) {
  for (const int cores : {1, 2, 3, 5, 8}) {
    CoresRun run(cores);
    expect_to_hold(run);
  }
}

TEST(IncoherentCoresTest, EveryOperationIsNeeded) {
  CoresRun run(5);
  expect_nothing_superfluous(run);
}

TEST(IncoherentListsTest, PesOfListsSynchronize) {
  ListsRun run;
  expect_to_hold(run);
}

TEST(IncoherentListsTest, EveryOperationIsNeeded) {
  ListsRun run;
  expect_nothing_superfluous(run);
}

}  // namespace
