// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/openmpi/played_job.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <utility>

namespace openmpi_test {
namespace {

constexpr unsigned kDeepest = 3;      // how many members may be in the middle of a step
constexpr unsigned kLongest = 1'000;  // so many rounds in which only time passed: the job hangs

}  // namespace

PlayedJob::PlayedJob(const JobShape& shape, Pick pick)
    : pick_(std::move(pick)),
      last_(shape.before + shape.barriers),
      slow_(shape.slow),
      interleaved_one_in_(shape.interleaved_one_in) {
  build(shape);
  fake_gba::power_on(1);
  fake_gba::play({.silent_looks = shape.spin_time,
                  .before_arrival =
                      [this](std::uint32_t port, std::uint64_t k) {
                        check_arrival(port, k);
                        interleave();
                      },
                  .after_look = [this](std::uint32_t) { interleave(); }});
  if (gba_barrier_port_open(nullptr, &port_) != 0) {
    wrong("a port cannot be opened");
  }
  for (std::size_t member = 0, local = 0; member < members_.size(); ++member) {
    local = member == leaders_[members_[member].node] ? 0 : local + 1;
    make_barrier(members_[member], static_cast<std::uint32_t>(local));
  }
  gba_group_handle handle{};
  if (gba_barrier_offer(members_[member_of_port_[0]].barrier.lossless, shape.before, &handle) != 0) {
    wrong("there is no group");
  }
  for (auto& member : members_) {
    if (gba_barrier_join(member.barrier.lossless, &handle) != 0) {
      wrong("a member cannot join");
    }
    gba_ompi_barrier_begin(&member.barrier, shape.before);
  }
}

PlayedJob::~PlayedJob() {
  for (auto& member : members_) {
    gba_ompi_barrier_end(&member.barrier);
  }
  gba_barrier_port_close(port_);
}

void PlayedJob::build(const JobShape& shape) {
  for (const Node& node : shape.nodes) {
    auto& memory = nodes_.emplace_back();
    memory.words = std::vector<gba_ompi_words_t>(node.size());
    memory.board = {&memory.node, memory.words.data(), static_cast<std::uint32_t>(node.size()), -1};
    leaders_.push_back(members_.size());
    for (std::uint32_t local = 0; local < node.size(); ++local) {
      auto& member = members_.emplace_back();
      member.job = this;
      member.node = nodes_.size() - 1;
      member.entered = member.left = shape.before;
      member.holder = node[local];
      for (std::uint32_t other = 0; other < node.size(); ++other) {
        if (node[local] == local && other != local && node[other] == local) {
          member.sharers.push_back(other);
        }
      }
      if (node[local] == local) {
        member_of_port_.push_back(members_.size() - 1);
        ++ports_;
      }
    }
  }
  channels_.assign(nodes_.size(), std::vector<Channel>(nodes_.size()));
}

void PlayedJob::make_barrier(Member& member, std::uint32_t local) {
  const auto is_its = [&](std::size_t number) { return &members_[number] == &member; };
  const auto port = std::find_if(member_of_port_.begin(), member_of_port_.end(), is_its);
  const bool holds = port != member_of_port_.end();
  const gba_ompi_place_t place{.local = local,
                               .holder = member.holder,
                               .sharers = member.sharers.data(),
                               .sharer_count = static_cast<std::uint32_t>(member.sharers.size()),
                               .port = holds ? port_ : nullptr,
                               .ports = ports_,
                               .port_number = holds ? static_cast<std::uint32_t>(port - member_of_port_.begin()) : 0};
  const gba_ompi_remote_t remote{&member, static_cast<std::uint32_t>(nodes_.size() - 1), tell};
  if (gba_ompi_barrier_make(&member.barrier, &nodes_[member.node].board, &place, &remote) != 0) {
    wrong("a barrier cannot be made");
  }
}

void PlayedJob::wrong(const std::string& what) {
  if (wrong_.empty()) {
    wrong_ = "step " + std::to_string(steps_) + ": " + what;
  }
}

/// A doorbell means that all members behind the port have arrived and are ON.
void PlayedJob::check_arrival(std::uint32_t port, std::uint64_t k) {
  const Member& member = members_[member_of_port_[port]];
  const auto& words = nodes_[member.node].words;
  auto behind = member.sharers;
  behind.push_back(member.barrier.local);
  for (const std::uint32_t local : behind) {
    if (words[local].word[k & 1] != k << 2) {
      wrong("member " + std::to_string(member_of_port_[port]) + " rings " + std::to_string(k) + " for local member " +
            std::to_string(local) + ", which has not published that it has arrived and is ON");
    }
  }
}

void PlayedJob::tell(void* context, std::uint64_t k, std::uint64_t votes) {
  auto& member = *static_cast<Member*>(context);
  PlayedJob& job = *member.job;
  if (member.barrier.local != 0) {
    job.wrong("a member that is not the leader sends to other nodes");
  }
  for (std::size_t to = 0; to < job.nodes_.size(); ++to) {
    if (to != member.node) {
      job.channels_[member.node][to].push_back({k, votes});
    }
  }
}

void PlayedJob::interleave() {
  if (interleaved_one_in_ != 0 && depth_ < kDeepest && pick_(interleaved_one_in_) == 0) {
    for (unsigned steps = 1 + pick_(4); steps > 0 && step_somebody(); --steps) {
    }
  }
}

void PlayedJob::wake_all() {
  for (auto& member : members_) {
    member.idle = member.idle && finished(member);
  }
}

void PlayedJob::wake_node(std::size_t node) {
  for (auto& member : members_) {
    member.idle = member.idle && member.node != node;
  }
}

void PlayedJob::rest(Member& member) {
  member.idle = true;
  member.waits = true;
}

bool PlayedJob::dawdles(const Member& member) const {
  return slow_ >= 0 && &member == &members_[static_cast<std::size_t>(slow_)] && member.entered == member.left &&
         !finished(member) && pick_(16) != 0;
}

bool PlayedJob::step_somebody() {
  std::vector<Step> possible;
  possible.reserve(members_.size() + nodes_.size() * nodes_.size());
  for (auto& member : members_) {
    if (!member.busy && !member.idle && !dawdles(member) && (!finished(member) || member.barrier.local == 0)) {
      possible.push_back({&member, 0, 0});
    }
  }
  for (std::size_t from = 0; from < nodes_.size(); ++from) {
    for (std::size_t to = 0; to < nodes_.size(); ++to) {
      if (!channels_[from][to].empty() && !leader(to).busy) {
        possible.push_back({nullptr, from, to});
      }
    }
  }
  if (possible.empty()) {
    return false;
  }
  ++steps_;
  ++depth_;
  const Step chosen = possible[pick_(static_cast<unsigned>(possible.size()))];
  chosen.member != nullptr ? step(*chosen.member) : deliver(chosen.from, chosen.to);
  --depth_;
  return true;
}

void PlayedJob::step(Member& member) {
  member.busy = true;
  if (finished(member)) {
    gba_ompi_barrier_progress(&member.barrier);
    rest(member);
  } else if (member.entered == member.left) {
    enter(member);
  } else {
    look(member);
  }
  member.busy = false;
}

void PlayedJob::enter(Member& member) {
  ++member.entered;
  if (member.over_from == 0) {
    gba_ompi_barrier_start(&member.barrier);
  }
  if (gba_ompi_barrier_status(&member.barrier).pulled != 0) {
    wake_node(member.node);
  }
  wake_all();
}

void PlayedJob::look(Member& member) {
  if (member.over_from != 0) {
    // The previous module's barrier, of the members that know that the device is not used any more.
    const bool all = std::all_of(members_.begin(), members_.end(), [&](const Member& other) {
      return other.over_from != 0 && other.entered >= member.entered;
    });
    all ? leave(member) : rest(member);
    return;
  }
  const auto pulled = [&] { return gba_ompi_barrier_status(&member.barrier).pulled != 0; };
  const auto before = std::tuple(fake_gba::arrivals(), pulled());
  const int status = member.waits ? gba_ompi_barrier_sleep(&member.barrier, 0) : gba_ompi_barrier_test(&member.barrier);
  if (status == 0) {
    leave(member);
  } else if (status != -EAGAIN) {
    wrong("a barrier gives " + std::to_string(status));
  } else if (before != std::tuple(fake_gba::arrivals(), pulled())) {
    wake_node(member.node);
    if (!pulled()) {
      wake_all();
    }
  } else {
    rest(member);
  }
}

void PlayedJob::leave(Member& member) {
  member.left = member.entered;
  member.waits = false;
  for (std::size_t other = 0; other < members_.size(); ++other) {
    if (members_[other].entered < member.left) {
      wrong("barrier " + std::to_string(member.left) + " was left before member " + std::to_string(other) +
            " had entered it");
    }
  }
  if (member.over_from == 0 && member.barrier.over) {
    member.over_from = member.left + 1;
  }
  wake_node(member.node);
}

void PlayedJob::deliver(std::size_t from, std::size_t to) {
  const Message message = channels_[from][to].front();
  channels_[from][to].erase(channels_[from][to].begin());
  gba_ompi_barrier_receive(&leader(to).barrier, message.k, message.votes);
  wake_node(to);
}

void PlayedJob::check_agreement() {
  for (std::size_t member = 1; member < members_.size(); ++member) {
    if (members_[member].over_from != members_[0].over_from) {
      wrong("member 0 is over from barrier " + std::to_string(members_[0].over_from) + " on, member " +
            std::to_string(member) + " from " + std::to_string(members_[member].over_from));
    }
  }
}

std::string PlayedJob::play(const std::function<void(unsigned step)>& before_step) {
  const auto all_finished = [this] {
    return std::all_of(members_.begin(), members_.end(), [this](const Member& member) { return finished(member); });
  };
  for (unsigned rests = 0; wrong_.empty() && !all_finished();) {
    before_step(steps_);
    if (!step_somebody()) {
      for (std::size_t node = 0; node < nodes_.size(); ++node) {
        wake_node(node);  // time passes: all members look again
      }
      if (++rests > kLongest) {
        wrong("it hangs");
      }
    }
  }
  if (wrong_.empty()) {
    check_agreement();
  }
  if (const std::string violation = fake_gba::violation(); !violation.empty()) {
    wrong(violation);
  }
  return wrong_;
}

}  // namespace openmpi_test
