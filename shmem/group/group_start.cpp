// SPDX-License-Identifier: Apache-2.0
// How a group starts: its memory, its network, its team.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "shmem/group/rank_group.hpp"
#include "shmem/layout/peers.hpp"
#include "shmem/team/local_team.hpp"
#include "shmem/team/spanning_team.hpp"
#include "shmem/team/team_table.hpp"

namespace shmem {
namespace {

/// Each has a block in a half of a stage.
constexpr int kMostMembers = 1024;

/// A half of a stage. Two halves and the data of the program fit into the cache of one processor.
constexpr std::size_t kHalf = std::size_t{512} << 10;

JobEndWord& end_word(const Job& job) {
  return *reinterpret_cast<JobEndWord*>(job.memory.heap(0));
}

std::unique_ptr<Job> make_job(std::unique_ptr<Bootstrap> bootstrap, Options options, NodeMemory memory,
                              Whereabouts where) {
  const int me = bootstrap->rank();
  const int size = bootstrap->size();
  const WaitPolicy policy = policy_on(where.nodes, size, where.processors);
  return std::make_unique<Job>(Job{.options = std::move(options),
                                   .bootstrap = std::move(bootstrap),
                                   .memory = std::move(memory),
                                   .me = me,
                                   .size = size,
                                   .policy = policy,
                                   .processors = where.processors,
                                   .nodes = std::move(where.nodes),
                                   .first_without_survive = 0});
}

NetworkSettings settings_of(const Job& job, RemoteBoard& board) {
  NetworkSettings settings{
      .segments = {{}, {}, std::as_writable_bytes(std::span(board))}, .is_remote = {}, .names = {}};
  settings.policy = job.policy;
  settings.interrupts = Notices::interrupts;
  settings.rdma_only = job.options.network_require == NetworkUse::kRdma;
  for (int pe = 0; pe < job.world_size(); ++pe) {
    settings.is_remote.push_back(pe != job.world_me());  // also those of this node: for notices, and to hear of an end
    settings.names.push_back(fmt::format("PE {} (on {})", pe, job.nodes.host(pe)));
  }
  return settings;
}

int most_on_a_node(const Nodes& nodes) {
  std::vector<int> counts(static_cast<std::size_t>(nodes.count));
  for (const int node : nodes.node_of) {
    ++counts[static_cast<std::size_t>(node)];
  }
  return *std::max_element(counts.begin(), counts.end());
}

}  // namespace

RankGroup::Between::Between(std::unique_ptr<RemoteBoard> shown, std::unique_ptr<Network> connected, Mail& here, int me,
                            int members)
    : board(std::move(shown)),
      network(std::move(connected)),
      notices(std::make_unique<Notices>(*network, me, members)),
      mail(*network, *notices, here, me, members) {}

RankGroup::Layout RankGroup::layout_on(const Nodes& nodes, int members) {
  const auto whole_pages = [](std::size_t bytes) {
    constexpr std::size_t kPage = 4096;
    return (bytes + kPage - 1) / kPage * kPage;
  };
  const std::size_t mail = whole_pages(kBoardOffset + (nodes.several() ? StagedOnNodes::board_size(members) : 0));
  const int most = nodes.several() ? most_on_a_node(nodes) : members;  // heaps are equal on all nodes
  return {mail, {.offset = whole_pages(mail + Mail::size_for(most)), .half = kHalf, .board = kBoardOffset}};
}

Result<std::unique_ptr<RankGroup>> RankGroup::create(KeyValueStore store, int rank, int size, Options options) {
  if (size < 1 || size > kMostMembers || rank < 0 || rank >= size) {
    return fail(std::errc::invalid_argument,
                fmt::format("shmem: a group cannot have {} members, of which this is number {}; there are 1 to {}",
                            size, rank, kMostMembers));
  }
  auto members = std::make_unique<StoreBootstrap>(std::move(store), rank, size);
  StoreBootstrap& steps = *members;
  auto where = find_nodes(steps, node_identity(options.host_id, options.job_folder()));
  if (!where) {
    return in_ranks(where.error());
  }
  const Layout layout = layout_on(where->nodes, size);
  std::unique_ptr<Bootstrap> here = std::move(members);
  if (where->nodes.several()) {
    here = std::make_unique<NodeBootstrap>(std::move(here), where->nodes);
  }
  auto memory = NodeMemory::create(*here, layout.stages.offset + 2 * layout.stages.half, 0, options.placement,
                                   options.bootstrap_timeout);
  if (!memory) {
    return in_ranks(memory.error());
  }
  options.barrier_warning = std::chrono::milliseconds{0};  // a program's waits may be long, and have their own limits
  if (options.barrier_tuning.empty()) {
    options.barrier_tuning = kBuiltIn;  // programs make many groups: none measures barriers
  }
  join_store_barriers();
  auto job = make_job(std::move(here), std::move(options), *std::move(memory), *std::move(where));
  job->watch_sharing();
  introduce(*job);
  std::unique_ptr<RankGroup> group(new RankGroup(std::move(job), steps));  // NOLINT(cppcoreguidelines-owning-memory)
  if (auto ok = group->open(steps, layout); !ok) {
    return group->failure_of(ok.error());
  }
  return group;
}

RankGroup::RankGroup(std::unique_ptr<Job> job, StoreBootstrap& store)
    : job_(std::move(job)), barriers_(*job_), no_memory_(no_memory_for_call(job_->world_me())) {
  store.tell_end_in(end_word(*job_));
  job_->policy.alarm = store.alarm();
}

Result<void> RankGroup::open(StoreBootstrap& steps, const Layout& layout) {
  job_->options.barrier_timeout = job_->options.bootstrap_timeout;
  mail_.emplace(*job_, layout.mail, memories_,
                Mail::Hooks{[this](const Error& error) { lose(error); }, [this] { return why_given_up(); }});
  if (job_->on_several_nodes()) {
    auto board = std::make_unique<RemoteBoard>();
    auto network = make_network(steps, settings_of(*job_, *board));
    if (!network) {
      return network.error();
    }
    auto between = std::make_unique<Between>(std::move(board), *std::move(network), *mail_, job_->world_me(), size());
    {
      const std::scoped_lock lock(ending_);
      between_ = std::move(between);
    }
    job_->remote_board = between_->board.get();
    job_->network = between_->network.get();
    job_->policy.background = job_->network;
    job_->given_up = [this] { return between_->notices->has_come(); };
  }
  make_team();
  collectives_.emplace(*job_, *team_, layout.stages, memories_);
  collectives_->set_limit(job_->options.barrier_timeout);
  if (auto ok = choose_barriers(steps); !ok || !between_) {
    return ok;
  }
  // Connects each member with each: later on a closed connection means that a member has gone.
  const auto number = static_cast<std::size_t>(size());
  std::vector<std::byte> data(2 * number);
  std::vector<std::span<const std::byte>> given;
  std::vector<std::span<std::byte>> taken;
  for (std::size_t i = 0; i < number; ++i) {
    given.emplace_back(&data[i], 1);
    taken.emplace_back(&data[number + i], 1);
  }
  return team_->spanning()->everybody().alltoall(given, taken);
}

void RankGroup::make_team() {
  const TeamMap here{0, 1, job_->size};
  const TeamMap all{0, 1, size()};
  if (!between_) {
    team_ = std::make_unique<LocalTeam>(*job_, all, kWorldTeam, 0);
    return;
  }
  const auto node_of = [this](int pe) { return job_->nodes.node_of[static_cast<std::size_t>(pe)]; };
  team_ = std::make_unique<SpanningTeam>(*job_, TeamPlan{.here = here,
                                                         .world = all,
                                                         .slot = kWorldTeam,
                                                         .id = group_tags::kTeam,
                                                         .parts = TeamParts(job_->nodes, all, node_of)});
}

Result<void> RankGroup::choose_barriers(Bootstrap& steps) {
  if (auto ok = barriers_.load_tables(); !ok) {
    return ok;
  }
  barriers_.open_port();
  if (auto ok = steps.barrier(); !ok) {
    return ok;
  }
  if (auto ok = barriers_.settle_ports(); !ok) {
    return ok;
  }
  if (auto ok = barriers_.equip(*team_); !ok) {
    return ok;
  }
  // All members have got a group of the device, or none.
  if (std::string_view(team_->algorithm()) == "gba") {
    if (job_->options.debug) {
      compares_device_barriers_ = true;
    } else {
      collectives_->leave_barriers_to_team();
    }
    if (between_) {
      // A node that has lost the device must be able to read what the leaders of others show, while they compute.
      auto progress = start_progress_thread(*between_->network);
      if (!progress) {
        return progress.error();
      }
      between_->progress = *std::move(progress);
    }
  }
  return {};
}

}  // namespace shmem
