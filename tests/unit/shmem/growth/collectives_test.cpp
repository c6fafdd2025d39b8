// SPDX-License-Identifier: Apache-2.0
// How the work of a member grows with the team in collective calls. docs/scaling.md has the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "shmem/collective/move.hpp"
#include "shmem/collective/reduce.hpp"
#include "shmem/team/spanning_team.hpp"
#include "shmem/team/team_table.hpp"
#include "tests/unit/shmem/board_network.hpp"
#include "tests/unit/shmem/growth/counted_job.hpp"

namespace {

using growth::CountedJob;
using growth::Most;
using shmem::Members;
using shmem::Result;

class TeamBarrier final : public shmem::MemberBarrier {
 public:
  explicit TeamBarrier(shmem::Team& team) : team_(team) {}
  Result<void> sync() override { return team_.sync(); }
  Result<std::vector<std::uint64_t>> allgather(std::uint64_t /*mine*/) override { return std::vector<std::uint64_t>(); }

 private:
  shmem::Team& team_;
};

class AnyTotal final : public shmem::CheckTotal {
 public:
  Result<void> operator()(std::size_t /*total*/) const override { return {}; }
};

const shmem::Reduction kSum{sizeof(std::uint64_t), [](void* to, const void* from, std::size_t count) {
                              for (std::size_t i = 0; i < count; ++i) {
                                static_cast<std::uint64_t*>(to)[i] += static_cast<const std::uint64_t*>(from)[i];
                              }
                            }};

using Buffer = std::vector<std::byte>;

/// The lines that a member reads to take a gift of so many bytes.
int lines_of_gift(std::size_t bytes) {
  constexpr std::size_t kNextToWord = 32;  // on the line of the word
  if (bytes <= shmem::kEagerInline) {
    return bytes <= kNextToWord ? 1 : 2;
  }
  return bytes <= shmem::kEagerLimit ? 1 + static_cast<int>((bytes + 63) / 64) : 1;
}

int rounds(int n, int radix) {
  int all = 0;
  for (int reached = 1; reached < n; reached *= radix) {
    ++all;
  }
  return all;
}

/// To learn what the others have finished: a word of each, or counters of groups of groups, and the word of the last.
int to_reuse_a_place(int n) {
  return n <= shmem::kMostOneStep ? n - 1 : 1 + rounds(n, shmem::kFinishedGroup);
}

/// What a member reads that leads groups at all levels up to `top`, and takes the gifts of all units of that, if each
/// member has a piece of `bytes`, or if what a unit gives is as large as one piece.
int by_levels(int n, std::size_t bytes, bool pieces, int top) {
  if (n <= shmem::kMostOneStep) {
    return (n - 1) * lines_of_gift(bytes);
  }
  const shmem::NeighbourLevels levels(n, 0);
  int lines = 0;
  for (int level = 0; level <= std::min(top, levels.last()); ++level) {
    const bool last = level == std::min(top, levels.last());
    const int units = last ? levels.units(level) : levels.group(level).end;
    const std::size_t gift = bytes * static_cast<std::size_t>(pieces ? levels.largest(level) : 1);
    lines += (units - 1) * lines_of_gift(gift);
  }
  return lines;
}
constexpr int kAllLevels = 100;

/// A dissemination, and now and then the times of up to 16 neighbours, which are on two lines each.
int by_sync(int n) {
  return rounds(n, 2) + 2 * std::min(n - 1, shmem::BarrierStatistics::kMostRead);
}

/// A row of the table in docs/scaling.md.
struct Spec {
  const char* name;
  std::size_t bytes;  // of a member; for alltoall, from each to each
  Result<void> (*call)(const Members& members, void* to, const void* from, std::size_t bytes);
  /// The lines that a member reads in a team of n, but for to_reuse_a_place().
  int (*read)(int n);
};

Result<void> broadcast(const Members& members, void* to, const void* from, std::size_t bytes) {
  return shmem::broadcast(members, to, from, bytes, members.size() - 1, true);
}
Result<void> sum(const Members& members, void* to, const void* from, std::size_t bytes) {
  return shmem::reduce(members, kSum, to, from, bytes / kSum.element);
}
Result<void> scan(const Members& members, void* to, const void* from, std::size_t bytes) {
  return shmem::scan(members, kSum, to, from, bytes / kSum.element, true);
}
Result<void> collect(const Members& members, void* to, const void* from, std::size_t bytes) {
  return shmem::collect(members, to, from, bytes, AnyTotal());
}
Result<void> alltoall(const Members& members, void* to, const void* from, std::size_t bytes) {
  return shmem::alltoall(members, to, from, {.to_step = bytes, .from_step = bytes, .element = bytes, .count = 1});
}
Result<void> sync(const Members& members, void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) {
  return members.sync();
}

const auto kSpecs = std::to_array<Spec>({
    {"broadcast, 8 bytes", 8, broadcast, [](int /*n*/) { return 1; }},
    {"broadcast, 1 KiB", 1024, broadcast, [](int /*n*/) { return lines_of_gift(1024); }},
    {"sum, 8 bytes", 8, sum, [](int n) { return by_levels(n, 8, false, kAllLevels); }},
    {"sum, 2 KiB", 2048, sum,
     [](int n) {
       return n <= shmem::kMostOneStep ? 2 * by_sync(n) + 32 * (n - 1) : 2 * by_levels(n, 1024, false, kAllLevels);
     }},
    {"scan, 8 bytes", 8, scan, [](int n) { return by_levels(n, 8, false, kAllLevels); }},
    // The pieces of all, and little more.
    {"fcollect, 8 bytes", 8, shmem::fcollect, [](int n) { return by_levels(n, 8, true, n <= 256 ? 1 : 2); }},
    {"fcollect, 128 bytes", 128, shmem::fcollect, [](int n) { return (n - 1) * lines_of_gift(128); }},
    // A length of two bytes for each member, and a mark.
    {"collect, 8 bytes", 8, collect,
     [](int n) { return n <= shmem::kMostOneStep ? n - 1 : by_levels(n, 2 + 8, true, 1) + rounds(n, 2); }},
    // A piece of each.
    {"alltoall, 8 bytes", 8, alltoall,
     [](int n) { return 8 * (n - 1) > 1024 ? n - 1 + 2 * by_sync(n) : (n - 1) * (n <= 5 ? 1 : 2); }},
    {"sync", 0, sync, by_sync},
});

/// Enough calls for a barrier to be timed, or for each place to be used again, if calls have to wait for that.
int times(const Spec& spec) {
  if (spec.call == sync) {
    return shmem::BarrierStatistics::kEach;
  }
  if (spec.call == broadcast) {
    return 1 + static_cast<int>(spec.bytes > shmem::kBroadcastInline ? shmem::kBroadcastRooms : shmem::kBroadcastSlots);
  }
  return spec.read(708) < 708 ? 9 : 1;
}

Most count(CountedJob& job, const Spec& spec) {
  const auto pes = static_cast<std::size_t>(job.size());
  const auto choice = shmem::CollectiveTable::built_in().choose(job.size(), false);
  const std::size_t given = spec.bytes * (spec.call == alltoall ? pes : 1);
  std::vector<std::vector<std::byte>> results(pes, std::vector<std::byte>(pes * std::max<std::size_t>(spec.bytes, 1)));
  return job.count(times(spec), [&](int member) {
    shmem::LocalTeam& team = job.team(member);
    TeamBarrier barrier(team);
    Members members{job.job(member), team.map(), team.me(), &barrier, 0};
    members.eager = &team.eager();
    members.choice = &choice;
    std::byte* const mine = job.job(member).memory.heap(member);
    if (given != 0) {
      job.renew(member, mine, given);
    }
    ASSERT_TRUE(spec.call(members, results[static_cast<std::size_t>(member)].data(), mine, spec.bytes));
  });
}

void choose_dissemination(CountedJob& job) {
  job.count(1, [&](int member) {
    ASSERT_TRUE(job.team(member).agree_on_algorithm({.algorithm = shmem::Algorithm::kDissemination}));
  });
}

/// The members on the first of two nodes of a team, which has one more member on the other.
class OnFirstNode {
 public:
  explicit OnFirstNode(CountedJob& counted) : boards_(static_cast<std::size_t>(counted.size())) {
    const int pes = counted.size();
    shmem::Nodes nodes{.count = 2, .hosts = {"first", "second"}};
    for (int pe = 0; pe < pes; ++pe) {
      nodes.node_of.push_back(0);
      nodes.here.push_back(pe);
      nodes.number_here.push_back(pe);
    }
    nodes.node_of.push_back(1);
    nodes.number_here.push_back(0);
    for (int pe = 0; pe < pes; ++pe) {
      shmem::Job& job = counted.job(pe);
      job.nodes = nodes;
      networks_.push_back(std::make_unique<shmem_test::BoardNetwork>(wires_, pe, boards_));
      job.network = networks_.back().get();
      const shmem::TeamMap world{0, 1, pes + 1};
      const shmem::TeamParts parts(nodes, world, [pes](int member) { return member < pes ? 0 : 1; });
      teams_.push_back(std::make_unique<shmem::SpanningTeam>(
          job,
          shmem::TeamPlan{.here = {0, 1, pes}, .world = world, .slot = CountedJob::kOtherSlots + 1, .parts = parts}));
    }
  }
  [[nodiscard]] shmem::SpanningTeam& team(int member) { return *teams_[static_cast<std::size_t>(member)]; }

 private:
  shmem_test::Wires wires_;
  std::deque<shmem::RemoteBoard> boards_;
  std::vector<std::unique_ptr<shmem_test::BoardNetwork>> networks_;
  std::vector<std::unique_ptr<shmem::SpanningTeam>> teams_;
};

constexpr int kGathers = 9;

Most count_arrivals(CountedJob& job, OnFirstNode& node) {
  const auto pes = static_cast<std::uint64_t>(job.size());
  return job.count(kGathers, [&](int member) {
    shmem::SpanningTeam& team = node.team(member);
    const auto least = team.gather_least_here(3 * pes - static_cast<std::uint64_t>(member));
    ASSERT_TRUE(least);
    ASSERT_TRUE(!team.leads() || *least == 2 * pes + 1) << *least;
  });
}

Most count_numbers(CountedJob& job, OnFirstNode& node) {
  return job.count(kGathers, [&](int member) {
    shmem::SpanningTeam& team = node.team(member);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(job.size()));
    ASSERT_TRUE(team.gather_here(static_cast<std::uint64_t>(3 * member), all));
    for (std::size_t i = 0; i < all.size() && team.leads(); ++i) {
      ASSERT_EQ(all[i], 3 * i);
    }
  });
}

shmem::Result<void> use_dissemination(shmem::Team& team) {
  return team.agree_on_algorithm({.algorithm = shmem::Algorithm::kDissemination});
}

/// All members make a team of all.
Most count_splits(CountedJob& job) {
  std::vector<std::unique_ptr<shmem::TeamTable>> tables(static_cast<std::size_t>(job.size()));
  job.count(1, [&](int member) {
    auto& table = tables[static_cast<std::size_t>(member)];
    table = std::make_unique<shmem::TeamTable>(job.job(member), use_dissemination);
    ASSERT_TRUE(table->make_predefined());
  });
  const shmem::TeamMap all{0, 1, job.size()};
  return job.count(2, [&](int member) {
    shmem::TeamTable& teams = *tables[static_cast<std::size_t>(member)];
    const shmem::SplitRequest request{.call = {shmem::TeamCall::kStrided, all.start, all.stride, all.size}, .map = all};
    ASSERT_TRUE(teams.split(*teams.find(shmem::kWorldTeam), request));
  });
}

std::string row(const std::string& name, const std::string& cells) {
  return "| " + name + " |" + cells;
}

class CollectiveGrowth : public testing::Test {
 protected:
  void add(const std::string& name, const Most& counted) {
    std::ostringstream cell;
    cell << ' ' << counted << " |";
    cells_[name] += cell.str();
  }
  void check(const char* name, int n, const Most& counted, int read) {
    EXPECT_GE(counted.read, 1) << name << " of " << n;
    EXPECT_LE(counted.read, read + to_reuse_a_place(n)) << name << " of " << n;
    if (n == 2 || n == 8 || n == 64 || n == 708) {
      add(name, counted);
    }
  }
  std::map<std::string, std::string> cells_;
};

TEST_F(CollectiveGrowth, IsThatOfTheAlgorithm) {
  for (const int n : {2, 8, 33, 64, 708}) {
    CountedJob job(n);
    choose_dissemination(job);
    for (const Spec& spec : kSpecs) {
      check(spec.name, n, count(job, spec), spec.read(n));
    }
    // One member reserves the slot, on all.
    const Most split = count_splits(job);
    check("split", n, split, 2 * by_levels(n, 16, false, kAllLevels) + 4 * by_sync(n) + n);
    OnFirstNode node(job);
    check("arrivals on one of several nodes", n, count_arrivals(job, node), by_levels(n, 16, false, kAllLevels));
    check("lengths on one of several nodes", n, count_numbers(job, node), by_levels(n, 8, true, 1));
  }
  std::ifstream file(SCALING_DOCUMENT);
  std::stringstream text;
  text << file.rdbuf();
  for (const auto& [name, cells] : cells_) {
    EXPECT_NE(text.str().find(row(name, cells)), std::string::npos)
        << "not in " SCALING_DOCUMENT ": " << row(name, cells);
  }
}

}  // namespace
