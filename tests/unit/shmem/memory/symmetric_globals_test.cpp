// SPDX-License-Identifier: Apache-2.0
#include "shmem/memory/symmetric_globals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shmem/bootstrap/local.hpp"
#include "tests/unit/shmem/bootstrap_processes.hpp"
#include "tests/unit/shmem/private_data.hpp"

namespace shmem {
namespace {

using shmem_test::PrivateData;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kJobSize = 3;

/// The state of one PE.
struct Pe {
  int me;
  Bootstrap& bootstrap;
  PrivateData& data;
  SymmetricGlobals& globals;
  const NodeMemory& memory;

  [[nodiscard]] volatile std::uint64_t* at(std::size_t range, std::size_t i, int pe) const {
    const auto* mine = const_cast<const std::uint64_t*>(&data.word(range, i));
    return reinterpret_cast<volatile std::uint64_t*>(globals.locate(mine, pe).address);
  }
};

/// The way in which a PE differs from the others.
struct Choice {
  std::string why_not;
  std::uint64_t identity = 1;
  bool broken = false;  // sharing fails
};

/// Runs `body` in processes that have planned and shared their globals. Returns their texts.
template <typename ChoiceOf, typename Body>
std::vector<std::string> in_job(ChoiceOf choice_of, Body body) {
  const auto job = std::make_shared<const JobMemory>(JobMemory::create(kJobSize).value());
  return testing::in_processes(kJobSize, [&](int me) -> std::string {
    const Choice choice = choice_of(me);
    // Another program has more globals: the shared memory has room for the largest.
    PrivateData data(4 * choice.identity);
    auto bootstrap = LocalBootstrap::join(job, me).value();
    auto ranges = data.ranges();
    if (choice.broken) {
      ranges[1].begin += 8;
    }
    auto globals = SymmetricGlobals::plan(*bootstrap, {ranges, choice.identity}, choice.why_not);
    if (!globals) {
      return globals.error().text;
    }
    const auto memory = NodeMemory::create(*bootstrap, 1, globals->size());
    if (!memory) {
      return memory.error().text;
    }
    data.word(1, 0) = 70 + static_cast<std::uint64_t>(me);
    if (auto shared = globals->share(*bootstrap, *memory); !shared) {
      return shared.error().text;
    }
    const std::string text = body(Pe{me, *bootstrap, data, *globals, *memory});
    if (auto met = bootstrap->barrier(); !met) {
      return met.error().text;
    }
    globals->release();
    return data.word(1, 0) / 10 == 7 ? text : "value not kept";
  });
}

Choice like_the_others(int /*me*/) {
  return {};
}

TEST(SymmetricGlobals, TellWhetherAllPesHaveThem) {
  const auto answer = [](const Pe& pe) -> std::string { return pe.globals.same_on_all() ? "same" : "different"; };
  EXPECT_THAT(in_job(like_the_others, answer), Each("same"));
  const auto odd = [](int me) {
    Choice choice;
    choice.identity += me == 1 ? 1 : 0;
    return choice;
  };
  EXPECT_THAT(in_job(odd, answer), Each("different"));
}

TEST(SymmetricGlobals, AreFoundInEveryPe) {
  const auto body = [](const Pe& pe) -> std::string {
    if (!pe.globals.why_not().empty()) {
      return pe.globals.why_not();
    }
    for (int other = 0; other < kJobSize; ++other) {
      if (*pe.at(1, 0, other) != 70 + static_cast<std::uint64_t>(other)) {
        return "another value";
      }
    }
    if (pe.at(1, 0, pe.me) != &pe.data.word(1, 0)) {
      return "my own is somewhere else";
    }
    *pe.at(0, 10, (pe.me + 1) % kJobSize) = static_cast<std::uint64_t>(pe.me) + 1;
    if (auto met = pe.bootstrap.barrier(); !met) {
      return met.error().text;
    }
    const auto left = static_cast<std::uint64_t>((pe.me + kJobSize - 1) % kJobSize);
    return pe.data.word(0, 10) == left + 1 ? "" : "not what my neighbour stored";
  };
  EXPECT_THAT(in_job(like_the_others, body), Each(IsEmpty()));
}

TEST(SymmetricGlobals, EndWhereTheirRangeEnds) {
  const auto body = [](const Pe& pe) -> std::string {
    const GlobalRange& range = pe.data.ranges()[0];
    const auto last = pe.globals.locate(range.begin + range.size - 8, 0);
    if (last.address == nullptr || last.room != 8) {
      return "the last word";
    }
    int local = 0;
    for (const void* outside : {static_cast<const void*>(&local), static_cast<const void*>(nullptr)}) {
      if (pe.globals.locate(outside, 0).address != nullptr) {
        return "what is no global";
      }
    }
    return "";
  };
  EXPECT_THAT(in_job(like_the_others, body), Each(IsEmpty()));
}

TEST(SymmetricGlobals, AreNotThoseOfAnotherProgram) {
  const auto choice = [](int me) { return Choice{"", me == 1 ? 2U : 1U}; };
  const auto body = [](const Pe& pe) -> std::string {
    for (int other = 0; other < kJobSize; ++other) {
      const bool same = (pe.me == 1) == (other == 1);
      const auto* mine = const_cast<const std::uint64_t*>(&pe.data.word(0, 0));
      if ((pe.globals.locate(mine, other).address != nullptr) != same) {
        return "PE " + std::to_string(other);
      }
      if (pe.globals.differs(mine, other) == same) {
        return "differs from PE " + std::to_string(other);
      }
    }
    return "";
  };
  EXPECT_THAT(in_job(choice, body), Each(IsEmpty()));
}

std::string why_not(const Pe& pe) {
  pe.data.word(0, 3) = 3;
  const bool is_seen =
      pe.memory.globals_size() > 0 && pe.memory.globals(pe.me)[3 * sizeof(std::uint64_t)] != std::byte{0};
  return pe.at(0, 0, pe.me) == nullptr && !is_seen ? pe.globals.why_not() : "shared";
}

TEST(SymmetricGlobals, AreNotSharedIfOnePeDoesNotWantIt) {
  const auto choice = [](int me) { return Choice{me == 2 ? "not today" : ""}; };
  EXPECT_THAT(in_job(choice, why_not), Each("PE 2: not today"));
}

TEST(SymmetricGlobals, AreNotSharedIfOnePeCannot) {
  const auto choice = [](int me) { return Choice{"", 1, me == 1}; };
  EXPECT_THAT(in_job(choice, why_not), Each(HasSubstr("PE 1: cannot put shared memory in the place of 2 ranges")));
}

}  // namespace
}  // namespace shmem
