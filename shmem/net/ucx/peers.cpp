// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/peers.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "shmem/cores/wait.hpp"

namespace shmem {

namespace {

/// How long a PE that leaves waits for its endpoints to close: the others may be gone, or make no progress.
constexpr std::chrono::milliseconds kCloseLimit{500};

void on_failure(void* argument, ucp_ep_h /*endpoint*/, ucs_status_t status) {
  UcxPeer& peer = *static_cast<UcxPeer*>(argument);
  peer.all->note_failure(peer, status);
}

}  // namespace

UcxPeers::UcxPeers(UcxWorker& worker, std::vector<PeAddress> addresses, const NetworkSettings& settings, int me)
    : worker_(worker),
      addresses_(std::move(addresses)),
      is_remote_(settings.is_remote),
      names_(settings.names),
      me_(me),
      peers_(addresses_.size()) {
  connected_.reserve(peers_.size());  // so that no endpoint is lost for want of memory
  for (std::size_t pe = 0; pe < peers_.size(); ++pe) {
    peers_[pe].pe = static_cast<int>(pe);
    peers_[pe].all = this;
  }
}

Result<UcxPeer*> UcxPeers::reach(int pe, const OpText& op) {
  if (pe < 0 || static_cast<std::size_t>(pe) >= peers_.size() || !is_remote_[static_cast<std::size_t>(pe)]) {
    return fail(std::errc::invalid_argument,
                fmt::format("shmem: the network of {} does not reach PE {}", my_name(), pe));
  }
  UcxPeer& peer = peers_[static_cast<std::size_t>(pe)];
  if (peer.lost.load(std::memory_order_acquire) == nullptr && peer.endpoint == nullptr) {
    if (const auto status = connect(peer); status != UCS_OK) {
      note_failure(peer, status);
    }
  }
  if (peer.lost.load(std::memory_order_acquire) != nullptr) {
    return lost_error(peer, op);
  }
  return &peer;
}

ucs_status_t UcxPeers::connect(UcxPeer& peer) {
  const PeAddress& address = addresses_[static_cast<std::size_t>(peer.pe)];
  ucp_ep_h endpoint = nullptr;
  if (const auto made = worker_.connect(address.address, on_failure, &peer, endpoint); made != UCS_OK) {
    return made;
  }
  peer.endpoint = endpoint;
  connected_.push_back(&peer);
  for (std::size_t segment = 0; segment < kSegments; ++segment) {
    const auto& key = address.segments[segment].key;
    if (key.empty()) {
      continue;
    }
    if (const auto done = worker_.calls().ep_rkey_unpack(endpoint, key.data(), &peer.keys[segment]); done != UCS_OK) {
      peer.keys[segment] = nullptr;
      return done;
    }
  }
  return UCS_OK;
}

const SegmentAddress* UcxPeers::segment_of(const RemotePlace& place) const {
  const auto pe = static_cast<std::size_t>(place.pe);
  const auto segment = static_cast<std::size_t>(place.segment);
  if (pe >= addresses_.size() || segment >= kMostSegments) {
    return nullptr;
  }
  if (segment < kSegments) {
    return &addresses_[pe].segments[segment];
  }
  const Places* places = registered_[segment - kSegments].load(std::memory_order_acquire);
  return places != nullptr ? &(*places)[pe] : nullptr;
}

void UcxPeers::attach(Segment segment, std::vector<SegmentAddress> places) {
  registered_[slot_of(segment)].store(std::make_unique<Places>(std::move(places)).release(), std::memory_order_release);
}

void UcxPeers::detach(Segment segment) {
  const std::size_t slot = slot_of(segment);
  const std::unique_ptr<const Places> places(registered_[slot].exchange(nullptr, std::memory_order_acq_rel));
  const auto held = lock();
  for (UcxPeer* peer : connected_) {
    if (slot < peer->registered_keys.size() && peer->registered_keys[slot] != nullptr) {
      worker_.calls().rkey_destroy(std::exchange(peer->registered_keys[slot], nullptr));
    }
  }
}

Result<ucp_rkey_h> UcxPeers::key(UcxPeer& peer, const RemotePlace& place, const OpText& op) {
  if (static_cast<std::size_t>(place.segment) < kSegments) {
    return peer.keys[static_cast<std::size_t>(place.segment)];
  }
  const std::size_t slot = slot_of(place.segment);
  if (slot >= peer.registered_keys.size()) {
    peer.registered_keys.resize(slot + 1, nullptr);
  }
  ucp_rkey_h& key = peer.registered_keys[slot];
  const auto& packed = segment_of(place)->key;
  if (key == nullptr && !packed.empty()) {
    const auto status = worker_.calls().ep_rkey_unpack(peer.endpoint, packed.data(), &key);
    if (status != UCS_OK) {
      key = nullptr;
      return error(peer, status, op);
    }
  }
  return key;
}

Result<void> UcxPeers::check(const RemotePlace& place, std::size_t bytes) const {
  const auto segment = static_cast<std::size_t>(place.segment);
  const SegmentAddress* found = segment_of(place);
  const std::uint64_t size = found != nullptr ? found->bytes : 0;
  if (bytes <= size && place.offset <= size - bytes) {
    return {};
  }
  return fail(std::errc::invalid_argument,
              fmt::format("shmem: {} bytes from byte {} on exceed the {} bytes of segment {} of PE {}", bytes,
                          place.offset, size, segment, place.pe));
}

void UcxPeers::note_failure(UcxPeer& peer, ucs_status_t status) {
  note_lost(peer, worker_.calls().status_string(status));
}

void UcxPeers::note_lost(UcxPeer& peer, const char* why) {
  const char* before = nullptr;
  // Release: a thread that sees the pointer reads the text. The first reason stays.
  if (!peer.lost.compare_exchange_strong(before, why, std::memory_order_acq_rel)) {
    return;
  }
  const UcxPeer* none = nullptr;
  first_lost_.compare_exchange_strong(none, &peer, std::memory_order_acq_rel);
  worker_.wake_sleepers();
}

void UcxPeers::give_up(UcxPeer& peer) {
  note_lost(peer, "it did not answer in time");
  const auto held = lock();
  if (peer.closed || peer.endpoint == nullptr) {
    return;
  }
  if (void* const request = close(peer, true); request != nullptr) {
    worker_.calls().request_free(request);  // UCX closes it in the background
  }
}

std::string UcxPeers::text_of(const UcxPeer& peer, const OpText& op) const {
  const std::string bytes = op.bytes > 0 ? fmt::format(" {} bytes", op.bytes) : "";
  return fmt::format("{}{}{}{} {}", op.verb, bytes, *op.preposition != '\0' ? " " : "", op.preposition, name(peer.pe));
}

std::string UcxPeers::attempt(const UcxPeer& peer, const OpText& op) const {
  return fmt::format("shmem: {} cannot {}", my_name(), text_of(peer, op));
}

Error UcxPeers::lost_error(const UcxPeer& peer, const OpText& op) const {
  const char* why = peer.lost.load(std::memory_order_acquire);
  return fail(std::errc::connection_reset,
              fmt::format("{}, which is lost: {} (UCX over {}); is its process alive, its node reachable, and no "
                          "firewall between?",
                          attempt(peer, op), why == nullptr ? "no reason given" : why, worker_.transports()));
}

Error UcxPeers::error(const UcxPeer& peer, ucs_status_t status, const OpText& op) const {
  if (peer.lost.load(std::memory_order_acquire) != nullptr) {
    return lost_error(peer, op);
  }
  return ucx_failure(worker_.calls(), status, attempt(peer, op));
}

std::optional<Error> UcxPeers::first_lost() const {
  const UcxPeer* peer = first_lost_.load(std::memory_order_acquire);
  if (peer == nullptr) {
    return std::nullopt;
  }
  return lost_error(*peer, {"reach", 0, ""});
}

void* UcxPeers::close(UcxPeer& peer, bool force) {
  peer.closed = true;
  return worker_.close(peer.endpoint, force);
}

UcxPeers::~UcxPeers() {
  for (auto& places : registered_) {
    const std::unique_ptr<const Places> ended(places.exchange(nullptr, std::memory_order_acquire));
  }
  const UcxCalls& calls = worker_.calls();
  const auto destroy = [&calls](ucp_rkey_h key) {
    if (key != nullptr) {
      calls.rkey_destroy(key);
    }
  };
  for (UcxPeer* peer : connected_) {
    std::for_each(peer->keys.begin(), peer->keys.end(), destroy);
    std::for_each(peer->registered_keys.begin(), peer->registered_keys.end(), destroy);
    if (!peer->closed) {
      peer->closing = close(*peer, peer->lost.load(std::memory_order_acquire) != nullptr);
    }
  }
  const auto deadline = Clock::now() + kCloseLimit;
  for (UcxPeer* peer : connected_) {
    worker_.finish(peer->closing, deadline);
  }
}

}  // namespace shmem
