// SPDX-License-Identifier: Apache-2.0
#include "shmem/team/shrink_messages.hpp"

#include <algorithm>

namespace shmem {

ShrinkMessages::ShrinkMessages(Network& network, const TeamMap& world, std::uint64_t tag, std::size_t words)
    : network_(network), world_(world), tag_(tag), mine_(words), peers_(static_cast<std::size_t>(world.size)) {}

ShrinkMessages::~ShrinkMessages() {
  stop_expecting();
  for (Peer& peer : peers_) {
    if (peer.outgoing) {
      network_.cancel(*peer.outgoing);
    }
  }
}

void ShrinkMessages::stop_expecting() {
  for (Peer& peer : peers_) {
    if (peer.incoming) {
      network_.cancel(*peer.incoming);
      peer.incoming.reset();
    }
  }
}

void ShrinkMessages::expect(int member) {
  Peer& peer = peers_[index(member)];
  peer.theirs.resize(mine_.size());
  const auto request =
      network_.start_receive(world_.pe(member), tag_, peer.theirs.data(), peer.theirs.size() * sizeof(std::uint64_t));
  peer.is_lost = peer.is_lost || !request;
  if (request) {
    peer.incoming = *request;
  }
}

void ShrinkMessages::send(int member) {
  Peer& peer = peers_[index(member)];
  const auto request = network_.start_send(world_.pe(member), tag_, mine_.data(), mine_.size() * sizeof(std::uint64_t));
  peer.is_lost = peer.is_lost || !request;
  if (request) {
    peer.outgoing = *request;
  }
}

bool ShrinkMessages::is_over(Peer& peer, std::optional<std::uint64_t>& request) {
  if (!request) {
    return false;
  }
  const auto done = network_.test(*request);
  if (done && !*done) {
    return false;
  }
  request.reset();
  peer.is_lost = peer.is_lost || !done;
  return done.has_value();
}

void ShrinkMessages::look() {
  for (Peer& peer : peers_) {
    is_over(peer, peer.outgoing);
    peer.has_come = is_over(peer, peer.incoming) || peer.has_come;
  }
}

std::optional<int> ShrinkMessages::first_that_has_come() const {
  const auto found = std::ranges::find_if(peers_, &Peer::has_come);
  return found == peers_.end() ? std::nullopt : std::optional<int>(static_cast<int>(found - peers_.begin()));
}

}  // namespace shmem
