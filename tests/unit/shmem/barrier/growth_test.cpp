// SPDX-License-Identifier: Apache-2.0
// How the work of a member grows with the team: the lines that it stores to and reads in a barrier, and how many
// transfers of lines follow one another, counted through the interface of a core. docs/scaling.md has the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <ranges>
#include <set>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "shmem/barrier/algorithms.hpp"
#include "tests/unit/shmem/incoherent/fibers.hpp"

namespace {

using shmem::Algorithm;
using shmem::SyncWord;

constexpr int kGroup = shmem::kGroup;
constexpr int kRadix = shmem::kMostRadix;

/// What one member did in one barrier.
struct Work {
  std::set<const SyncWord*> stored;
  std::set<const SyncWord*> read;
  int time = 0;  // transfers of lines that had to follow one another until it left
};

/// The most of any member.
struct Most {
  int stored = 0;
  int read = 0;
  int time = 0;
};

std::ostream& operator<<(std::ostream& out, const Most& most) {
  return out << most.stored << " / " << most.read << " / " << most.time;
}

/// A team whose members run in turn on one thread, each until it waits.
class CountedTeam {
 public:
  explicit CountedTeam(int members)
      : sync_(static_cast<std::size_t>(members)),
        rounds_(sync_.size()),
        work_(sync_.size()),
        done_(sync_.size()),
        fibers_(members, [this](int member) { run(member); }) {}

  /// One barrier of all members, by `choice`. Barriers are numbered from 1.
  Most barrier(const shmem::BarrierChoice& choice) {
    choice_ = choice;
    ++count_;
    stamps_.clear();
    std::ranges::fill(work_, Work{});
    done_.assign(work_.size(), false);
    while (!std::ranges::all_of(done_, [](bool done) { return done; })) {
      for (int member = 0; member < size(); ++member) {
        if (!done_[static_cast<std::size_t>(member)]) {
          fibers_.switch_to(member);
        }
      }
    }
    Most most;
    for (const Work& work : work_) {
      most.stored = std::max(most.stored, static_cast<int>(work.stored.size()));
      most.read = std::max(most.read, static_cast<int>(work.read.size()));
      most.time = std::max(most.time, work.time);
    }
    return most;
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(sync_.size()); }

  class Waiting {
   public:
    explicit Waiting(CountedTeam& team) : team_(team) {}
    std::errc pause(SyncWord& /*word*/, std::uint64_t /*seen*/) {
      team_.fibers_.switch_to(incoherent::Fibers::kCaller);
      return {};
    }

   private:
    CountedTeam& team_;
  };

  /// The only core of a member. A member reads a line in the transfer after the one in which it was stored to.
  class Core {
   public:
    Core(CountedTeam& team, int member) : team_(team), work_(team.work_[static_cast<std::size_t>(member)]) {}
    [[nodiscard]] static int index() { return 0; }
    [[nodiscard]] static int count() { return 1; }
    std::uint64_t load(const SyncWord& word) {
      work_.read.insert(&word);
      follow(word);
      return word.value.load(std::memory_order_relaxed);
    }
    void store(SyncWord& word, std::uint64_t value) {
      work_.stored.insert(&word);
      word.value.store(value, std::memory_order_relaxed);
      team_.stamps_[&word] = {this, work_.time};
    }
    std::uint64_t fetch_add(SyncWord& word, std::uint64_t value) {
      work_.stored.insert(&word);
      follow(word);
      team_.stamps_[&word] = {this, work_.time};
      return word.value.fetch_add(value, std::memory_order_relaxed);
    }
    Waiting begin_wait() { return Waiting(team_); }
    static void fence() {}
    static void dcci(const void* /*address*/) {}
    static void dcci_all() {}
    static std::errc sync() { return {}; }

   private:
    void follow(const SyncWord& word) {
      const auto stamp = team_.stamps_.find(&word);
      if (stamp != team_.stamps_.end() && stamp->second.core != this) {
        work_.time = std::max(work_.time, stamp->second.time + 1);
      }
    }
    CountedTeam& team_;
    Work& work_;
  };
  static_assert(shmem::Core<Core>);

  class View {
   public:
    View(CountedTeam& team, int me) : team_(team), me_(me) {}
    [[nodiscard]] int size() const { return team_.size(); }
    [[nodiscard]] int me() const { return me_; }
    [[nodiscard]] shmem::TeamSync& member(int i) const { return team_.sync_[static_cast<std::size_t>(i)]; }
    [[nodiscard]] shmem::TeamSync& mine() const { return member(me_); }
    [[nodiscard]] SyncWord& round(int member, int i) const {
      return team_.rounds_[static_cast<std::size_t>(member)][static_cast<std::size_t>(i)];
    }

   private:
    CountedTeam& team_;
    int me_;
  };

  void run(int member) {
    for (;;) {
      Core core(*this, member);
      EXPECT_EQ(shmem::arrive_and_wait(choice_, core, View(*this, member), count_), std::errc{});
      done_[static_cast<std::size_t>(member)] = true;
      fibers_.switch_to(incoherent::Fibers::kCaller);
    }
  }

  struct Stamp {
    const Core* core;
    int time;
  };

  std::vector<shmem::TeamSync> sync_;
  std::vector<shmem::RoundWords> rounds_;
  std::vector<Work> work_;
  std::vector<bool> done_;
  std::unordered_map<const SyncWord*, Stamp> stamps_;
  shmem::BarrierChoice choice_{};
  std::uint64_t count_ = 0;
  incoherent::Fibers fibers_;
};

int log2_up(int n) {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n) - 1));
}

/// The partners of a member in a dissemination, and its phases.
std::pair<int, int> dissemination(int n, int radix) {
  int partners = 0;
  int phases = 0;
  for (int distance = 1; distance < n; distance *= radix, ++phases) {
    partners += std::min(radix - 1, (n - 1) / distance);
  }
  return {partners, phases};
}

/// What the descriptions of the algorithms promise, shmem/barrier/algorithms.hpp.
Most expected(Algorithm algorithm, int n) {
  const int rounds = log2_up(n);
  const bool power = std::has_single_bit(static_cast<unsigned>(n));
  switch (algorithm) {
    case Algorithm::kNpuV1:
    case Algorithm::kDissemination:
      return {.stored = rounds, .read = rounds, .time = rounds};
    case Algorithm::kNpuV2: {
      const auto [partners, phases] = dissemination(n, kRadix);
      return {.stored = partners, .read = partners, .time = phases};
    }
    case Algorithm::kNpuV3:
      return {.stored = 1, .read = n - 1, .time = 1};
    case Algorithm::kCentralCounter:
      return {.stored = 1, .read = 1, .time = n};  // the additions follow one another
    case Algorithm::kTournament:
      return {.stored = std::min(rounds, 2), .read = rounds, .time = 2 * (power ? rounds : rounds - 1)};
    case Algorithm::kRecursiveDoubling: {
      const int doubled = power ? rounds : rounds - 1;
      const int guest = power ? 0 : 1;
      return {.stored = doubled + guest, .read = doubled + guest, .time = doubled + 2 * guest};
    }
    case Algorithm::kBasic:
      return {.stored = n - 1, .read = n - 1, .time = 2};
    case Algorithm::kAdaptive:
      return expected(n <= 8 ? Algorithm::kNpuV3 : Algorithm::kRecursiveDoubling, n);
    case Algorithm::kHierarchical: {
      const int leaders = (n + kGroup - 1) / kGroup;
      const int up = leaders > 1 ? log2_up(leaders) : 0;
      const int within = std::min(n, kGroup);
      return {.stored = up + 1, .read = up + 1, .time = within + up};
    }
  }
  return {};
}

shmem::BarrierChoice choice_of(Algorithm algorithm) {
  return {.algorithm = algorithm, .tuning = {.radix = kRadix, .group = kGroup}};
}

class GrowthTest : public testing::TestWithParam<shmem::AlgorithmSpec> {};

TEST_P(GrowthTest, WorkOfAMemberIsThatOfTheAlgorithm) {
  for (const int n : {2, 3, 4, 7, 8, 9, 16, 31, 64, 100, 256, 708}) {
    CountedTeam team(n);
    for (int barrier = 1; barrier <= 3; ++barrier) {
      const Most counted = team.barrier(choice_of(GetParam().algorithm));
      const Most promised = expected(GetParam().algorithm, n);
      SCOPED_TRACE(testing::Message() << GetParam().name << " of " << n << ", barrier " << barrier);
      EXPECT_EQ(counted.stored, promised.stored);
      EXPECT_EQ(counted.read, promised.read);
      // In some teams that are no power of two the members beyond it are not on the longest way.
      EXPECT_LE(counted.time, promised.time);
      EXPECT_GE(counted.time, promised.time - (std::has_single_bit(static_cast<unsigned>(n)) ? 0 : 1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, GrowthTest, testing::ValuesIn(shmem::kAlgorithms),
                         [](const auto& test) { return std::string(test.param.name); });

/// A row of the table in docs/scaling.md: | `name` | 2 | 8 | 64 | 708 |.
std::string row_of(const std::string& name, const shmem::BarrierChoice& choice) {
  std::ostringstream row;
  row << "| " << name << " |";
  for (const int n : {2, 8, 64, 708}) {
    CountedTeam team(n);
    row << ' ' << team.barrier(choice) << " |";
  }
  return row.str();
}

TEST(GrowthTable, IsWhatIsCounted) {
  std::ifstream file(SCALING_DOCUMENT);
  std::stringstream text;
  text << file.rdbuf();
  std::vector<std::string> rows;
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    rows.push_back(row_of("`" + std::string(spec.name) + "`", choice_of(spec.algorithm)));
  }
  for (const std::string& row : rows) {
    EXPECT_TRUE(text.str().find(row) != std::string::npos) << "not in " SCALING_DOCUMENT ": " << row;
  }
}

}  // namespace
