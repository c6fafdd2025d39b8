// SPDX-License-Identifier: Apache-2.0
// The flags of kv_shuffle on memory that is not coherent.
#include <gtest/gtest.h>

#include "kv/operator/pair_steps.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/shmem/incoherent/sim_core.hpp"

namespace {

using incoherent::Machine;
using incoherent::SimCore;
using incoherent::Site;
using incoherent::Sites;
using shmem::SyncWord;
using shmem::kv::Pairing;
using shmem::kv::Report;

constexpr int kParts = 2;
constexpr int kCalls = 4;
constexpr int kPes = 2;  // PE 0 sends, PE 1 receives

/// The receiver's block has one line for each part. Between the calls the receiver stores to it.
class KvRun {
 public:
  std::optional<std::string> run(int seed, Sites& sites) {
    return machine_.run(static_cast<std::uint64_t>(seed), sites,
                        [this](int number) { machine_.pe_of(number) == 0 ? send(number) : receive(number); });
  }

 private:
  static constexpr std::size_t kWords = shmem::kv::PartnerWords::count(kPes, kParts);  // per PE

  void send(int number) {
    SimCore core(machine_, number);
    for (std::uint64_t call = 1; call <= kCalls && !machine_.failed(); ++call) {
      const Pairing pairing = pairing_of(0, call);
      if (core.index() == 0) {
        check(shmem::kv::hear_ready(core, pairing));
        if (shmem::kv::hear_digest(core, pairing) != call) {
          machine_.fail("call " + std::to_string(call) + " has the digest of another");
        }
      }
      core.sync();
      core.store(block(core.index()), call);
      shmem::kv::say_done(core, pairing, core.index());
    }
  }

  void receive(int number) {
    SimCore core(machine_, number);
    for (std::uint64_t call = 1; call <= kCalls && !machine_.failed(); ++call) {
      const Pairing pairing = pairing_of(1, call);
      for (int part = 0; part < kParts; ++part) {
        core.store(block(part), 1000 + call);
      }
      shmem::kv::say_digest(core, pairing, call);
      shmem::kv::say_ready(core, pairing, std::errc{});
      check(shmem::kv::hear_done(core, pairing));
      for (int part = 0; part < kParts; ++part) {
        if (const std::uint64_t seen = core.load(block(part)); seen != call) {
          machine_.fail("call " + std::to_string(call) + " brought " + std::to_string(seen));
        }
      }
    }
  }

  void check(const Report& report) {
    if (report.stage != Report::Stage::kDone) {
      machine_.fail("stage " + std::to_string(static_cast<int>(report.stage)));
    }
  }

  Pairing pairing_of(int me, std::uint64_t call) { return {me, 1 - me, kParts, words_of(me), words_of(1 - me), call}; }
  shmem::kv::PartnerWords words_of(int pe) {
    return shmem::kv::PartnerWords::at(&lines_[static_cast<std::size_t>(pe) * kWords], kPes);
  }
  SyncWord& block(int part) { return lines_[kPes * kWords + static_cast<std::size_t>(part)]; }

  std::vector<SyncWord> lines_ = std::vector<SyncWord>(kPes * kWords + kParts);
  std::vector<int> cores_of_{kParts, 1};
  Machine machine_{cores_of_, lines_, [](int line) { return "line " + std::to_string(line); }};
};

TEST(IncoherentKvTest, TheReceiverSeesTheBlocks) {
  KvRun run;
  for (int seed = 0; seed < test_support::repeats(500, 50000); ++seed) {
    Sites sites;
    const auto failure = run.run(seed, sites);
    ASSERT_EQ(failure, std::nullopt) << "seed " << seed;
  }
}

TEST(IncoherentKvTest, EveryOperationIsNeeded) {
  KvRun run;
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

}  // namespace
