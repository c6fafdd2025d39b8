// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/remote.hpp"

#include "shmem/api/peer.hpp"

namespace shmem::api {
namespace {

Network& network_of(const Peer& peer) {
  return *peer.runtime.job().network;
}

RemotePlace place_of(const Peer& peer, const void* mine, std::size_t bytes) {
  const auto place = peer.runtime.job().locate_remote(mine, bytes, peer.pe);
  if (!place) {
    refuse_address(peer.runtime, peer.call, mine, bytes, peer.pe);
  }
  if (peer.runtime.checker() != nullptr) [[unlikely]] {
    check_symmetric(peer.runtime, peer.call, mine, bytes);
  }
  return *place;
}

template <typename T>
T checked(const Peer& peer, Result<T> result) {
  if (!result) {
    end_job(peer.runtime, peer.call, result.error());
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

}  // namespace

void remote_put(const Peer& peer, void* dest, const void* source, std::size_t bytes, Done done) {
  if (bytes == 0) {
    return;
  }
  const RemotePlace to = place_of(peer, dest, bytes);
  Network& network = network_of(peer);
  checked(peer, done == Done::kNow ? network.put(to, source, bytes) : network.start_put(to, source, bytes));
}

void remote_get(const Peer& peer, void* dest, const void* source, std::size_t bytes, Done done) {
  if (bytes == 0) {
    return;
  }
  const RemotePlace from = place_of(peer, source, bytes);
  Network& network = network_of(peer);
  checked(peer, done == Done::kNow ? network.get(dest, from, bytes) : network.start_get(dest, from, bytes));
}

std::uint64_t remote_fetch(const Peer& peer, const void* word, std::size_t size, AtomicOperation operation,
                           std::uint64_t operand, std::uint64_t compared) {
  return checked(peer, network_of(peer).fetch_atomic(place_of(peer, word, size), size, operation, operand, compared));
}

void remote_post(const Peer& peer, const void* word, std::size_t size, AtomicOperation operation,
                 std::uint64_t operand) {
  checked(peer, network_of(peer).post_atomic(place_of(peer, word, size), size, operation, operand));
}

void remote_fence(const Peer& peer) {
  checked(peer, network_of(peer).fence(PeChoice(peer.pe)));
}

void remote_fence(PeChoice pes) {
  const Runtime& runtime = *Runtime::current();
  if (auto ok = runtime.job().network->fence(pes); !ok) {
    end_job(runtime, "fence", ok.error());
  }
}

void remote_quiet(PeChoice pes) {
  const Runtime& runtime = *Runtime::current();
  Network& network = *runtime.job().network;
  if (auto ok = network.quiet(pes); !ok) {
    // What was begun on a dead PE is reported once: later calls do not need that PE.
    for (int pe = 0; runtime.survives() && pe < runtime.n_pes(); ++pe) {
      if (pes.contains(pe)) {
        network.forget_lost(pe);
      }
    }
    end_job(runtime, "quiet", ok.error());
  }
}

void progress_now_and_then(const Runtime& runtime) {
  constexpr unsigned kOften = 16;  // looking at the network takes as long as about ten reads
  if (runtime.count_look() % kOften == 0) {
    runtime.job().policy.advance();
  }
}

void remote_progress() {
  Runtime::current()->job().policy.advance();
}

}  // namespace shmem::api
