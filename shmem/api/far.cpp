// SPDX-License-Identifier: Apache-2.0
#include "shmem/api/far.hpp"

#include "shmem/api/peer.hpp"
#include "shmem/memory/ordering.hpp"

namespace shmem::api {
namespace {

Network& network_of(const Peer& peer) {
  return *peer.context.job().network;
}

FarPlace place_of(const Peer& peer, const void* mine, std::size_t bytes) {
  const auto place = peer.context.job().locate_far(mine, bytes, peer.pe);
  if (!place) {
    refuse_address(peer.context, peer.call, mine, bytes, peer.pe);
  }
  if (peer.context.checker() != nullptr) [[unlikely]] {
    check_symmetric(peer.context, peer.call, mine, bytes);
  }
  return *place;
}

template <typename T>
T checked(const Peer& peer, Result<T> result) {
  if (!result) {
    end_job(peer.context, peer.call, result.error().text);
  }
  if constexpr (!std::is_void_v<T>) {
    return *std::move(result);
  }
}

}  // namespace

void far_put(const Peer& peer, void* dest, const void* source, std::size_t bytes, Done done) {
  if (bytes == 0) {
    return;
  }
  const FarPlace to = place_of(peer, dest, bytes);
  Network& network = network_of(peer);
  checked(peer, done == Done::kNow ? network.put(to, source, bytes) : network.start_put(to, source, bytes));
}

void far_get(const Peer& peer, void* dest, const void* source, std::size_t bytes, Done done) {
  if (bytes == 0) {
    return;
  }
  const FarPlace from = place_of(peer, source, bytes);
  Network& network = network_of(peer);
  checked(peer, done == Done::kNow ? network.get(dest, from, bytes) : network.start_get(dest, from, bytes));
}

std::uint64_t far_fetch(const Peer& peer, const void* word, std::size_t size, AtomicOperation operation,
                        std::uint64_t operand, std::uint64_t compared) {
  return checked(peer, network_of(peer).fetch_atomic(place_of(peer, word, size), size, operation, operand, compared));
}

void far_post(const Peer& peer, const void* word, std::size_t size, AtomicOperation operation, std::uint64_t operand) {
  checked(peer, network_of(peer).post_atomic(place_of(peer, word, size), size, operation, operand));
}

void far_fence() {
  const Context& context = *Context::current();
  if (auto ok = context.job().network->fence(); !ok) {
    end_job(context, "fence", ok.error().text);
  }
}

void far_quiet() {
  const Context& context = *Context::current();
  if (auto ok = context.job().network->quiet(); !ok) {
    end_job(context, "quiet", ok.error().text);
  }
}

void look_around_at_times(const Context& context) {
  constexpr unsigned kOften = 16;  // a look at the network takes as long as some ten reads
  if (context.count_look() % kOften == 0) {
    context.job().policy.advance();
  }
}

namespace {

bool on_several_nodes() {
  // Where the heap needs no closer look, all PEs are on this node: asked first, because most jobs are so.
  return Context::reach().heap_size == 0 && Context::current() != nullptr &&
         Context::current()->job().on_several_nodes();
}

}  // namespace

void look_around() {
  if (on_several_nodes()) [[unlikely]] {
    Context::current()->job().policy.advance();
  }
}

void fence() {
  shmem::fence();
  if (on_several_nodes()) [[unlikely]] {
    far_fence();
  }
}

void quiet() {
  shmem::quiet();
  if (on_several_nodes()) [[unlikely]] {
    far_quiet();
  }
}

}  // namespace shmem::api
