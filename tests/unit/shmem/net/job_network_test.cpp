// SPDX-License-Identifier: Apache-2.0
// The network of a job: a PE that sleeps until a word changes is woken when another node changes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "shmem/bootstrap/nodes.hpp"
#include "shmem/runtime/job_network.hpp"
#include "tests/unit/shmem/network_processes.hpp"

namespace shmem {
namespace {

using ::testing::Each;
using testing::heap_of;
using testing::in_processes;
using ::testing::IsEmpty;
using testing::problem_of;
using JobNetworkTest = testing::NetworkTest;

/// A job of two nodes with one PE each.
class PeOfNodes {
 public:
  explicit PeOfNodes(std::unique_ptr<Bootstrap> world) : job_(make_job(std::move(world))), network_(job_) {}

  Job& job() { return job_; }
  JobNetwork& network() { return network_; }

 private:
  static Job make_job(std::unique_ptr<Bootstrap> world) {
    Nodes nodes = find_nodes(*world, node_identity("node" + std::to_string(world->rank()))).value().nodes;
    auto bootstrap = std::make_unique<NodeBootstrap>(std::move(world), nodes);
    auto memory = NodeMemory::create(*bootstrap, std::size_t{4} << 20).value();
    Job job{.options = {},
            .bootstrap = std::move(bootstrap),
            .memory = std::move(memory),
            .me = 0,
            .size = 1,
            .policy = wait_policy(1)};
    job.nodes = std::move(nodes);
    return job;
  }

  Job job_;
  JobNetwork network_;
};

/// Changes a word of PE 0 from PE 1, and waits until the change is there.
std::string change_word(PeOfNodes& pe) {
  Network& network = *pe.job().network;
  return problem_of(network.post_atomic(heap_of(0, 0), 8, AtomicOperation::kAdd, 1)) + problem_of(network.quiet());
}

/// PE 0 is asleep in wait_parked(), as far as others can see, and does not call the network.
std::string await_wake_up(PeOfNodes& pe) {
  auto& parking = pe.job().metadata(0).parking;
  const auto* word = reinterpret_cast<const std::atomic<std::uint64_t>*>(pe.job().memory.heap(0));
  const auto event = parking.event.load();
  parking.sleepers.fetch_add(1);
  static_cast<void>(pe.job().bootstrap->barrier());
  const auto end = Clock::now() + std::chrono::seconds{20};
  while ((parking.event.load() == event || word->load() != 2) && Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  if (word->load() != 2) {
    return "the word has not changed";
  }
  return parking.event.load() != event ? "" : "the word has changed, but the sleeper was not woken";
}

TEST_F(JobNetworkTest, WakesAPeThatSleepsUntilAWordChanges) {
  const auto memory = std::make_shared<const JobMemory>(JobMemory::create(2).value());
  const auto texts = in_processes(2, [&memory](int rank) -> std::string {
    PeOfNodes pe(LocalBootstrap::join(memory, rank, std::chrono::seconds{20}).value());
    std::string text = problem_of(pe.network().open(false));
    if (!text.empty()) {
      return text;
    }
    // The first request makes the connection, whose messages wake PE 0, too.
    text += rank == 1 ? change_word(pe) : "";
    text += problem_of(pe.job().bootstrap->barrier());
    if (rank == 0) {
      text += await_wake_up(pe);
    } else {
      text += problem_of(pe.job().bootstrap->barrier()) + change_word(pe);
    }
    return text + problem_of(pe.network().disconnect(true));
  });
  EXPECT_THAT(texts, Each(IsEmpty()));
}

}  // namespace
}  // namespace shmem
