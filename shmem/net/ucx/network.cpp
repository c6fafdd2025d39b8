// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "shmem/bootstrap/allgather.hpp"
#include "shmem/net/address_exchange.hpp"

namespace shmem {

UcxNetwork::UcxNetwork(const Bootstrap& world, std::unique_ptr<UcxWorker> worker, std::unique_ptr<UcxMemory> memory,
                       JobAddresses addresses, const NetworkSettings& settings)
    : send_queue_(*worker),
      server_(*worker, send_queue_, peers_, settings, addresses.job),
      requests_(*worker, send_queue_, peers_, wait_policy_, world.rank(), addresses.job),
      direct_(*worker, peers_, wait_policy_),
      one_sided_(worker->one_sided() ? static_cast<UcxOneSided&>(direct_) : requests_),
      worker_(std::move(worker)),
      memory_(std::move(memory)),
      peers_(*worker_, std::move(addresses.pes), settings, world.rank()),
      wait_policy_(world, *worker_, settings),
      messages_(*worker_, peers_, wait_policy_, world.rank(), addresses.job, settings.interrupts) {
  worker_->call_after_progress(settings.worked);
}

UcxNetwork::~UcxNetwork() = default;

std::string UcxNetwork::describe() const {
  return fmt::format("ucx {} ({})", ucx_version(worker_->calls()), worker_->transports());
}

Result<std::vector<std::byte>> UcxNetwork::add_segment(Segment segment, std::span<std::byte> memory) {
  auto key = memory_->add(segment, memory);
  if (key) {
    server_.add(segment, memory);
  }
  return key;
}

void UcxNetwork::remove_segment(Segment segment) {
  peers_.detach(segment);
  server_.remove(segment);
  memory_->remove(segment);
}

Result<void> UcxNetwork::begin_put(const RemotePlace& to, const void* from, std::size_t bytes,
                                   UcxOneSided::Waits waits) {
  if (auto inside = peers_.check(to, bytes); !inside) {
    return inside;
  }
  return one_sided_.put(to, from, bytes, waits);
}

Result<void> UcxNetwork::begin_get(void* to, const RemotePlace& from, std::size_t bytes, UcxOneSided::Waits waits) {
  if (auto inside = peers_.check(from, bytes); !inside) {
    return inside;
  }
  return one_sided_.get(to, from, bytes, waits);
}

Result<void> UcxNetwork::check_word(const RemotePlace& word, std::size_t size) const {
  if (size != 4 && size != 8) {
    return fail(std::errc::invalid_argument,
                fmt::format("shmem: the network has atomic operations on 4 or 8 bytes, not on {}", size));
  }
  if (auto inside = peers_.check(word, size); !inside) {
    return inside;
  }
  if (peers_.address(word) % size == 0) {
    return {};
  }
  return fail(std::errc::invalid_argument,
              fmt::format("shmem: the word of an atomic operation does not begin at a multiple of its {} bytes", size));
}

Result<std::uint64_t> UcxNetwork::fetch_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                               std::uint64_t operand, std::uint64_t compared) {
  if (operation > AtomicOperation::kSet) {
    return fail(std::errc::invalid_argument, "shmem: there is no such atomic operation");
  }
  if (auto good = check_word(word, size); !good) {
    return good.error();
  }
  return one_sided_.fetch_atomic(word, size, operation, operand, compared);
}

Result<void> UcxNetwork::post_atomic(const RemotePlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand) {
  if (operation > AtomicOperation::kSet || operation == AtomicOperation::kCompareSwap ||
      operation == AtomicOperation::kFetch) {
    return fail(std::errc::invalid_argument, "shmem: this atomic operation needs its answer");
  }
  if (auto good = check_word(word, size); !good) {
    return good;
  }
  return one_sided_.post_atomic(word, size, operation, operand);
}

namespace {

struct Reason {
  std::errc code;
  std::array<char, 600> text;  // ends with a zero
};

std::optional<Reason> reason_of(const Result<void>& result) {
  if (result) {
    return std::nullopt;
  }
  Reason reason{result.error().code, {}};
  result.error().text.copy(reason.text.data(), reason.text.size() - 1);
  return reason;
}

/// What one PE can do without the others.
struct Own {
  std::unique_ptr<UcxWorker> worker;
  std::unique_ptr<UcxMemory> memory;
};

Result<void> check_settings(const Bootstrap& world, const NetworkSettings& settings) {
  const auto pes = static_cast<std::size_t>(world.size());
  if (settings.segments.size() > kSegments || settings.is_remote.size() != pes || settings.names.size() != pes) {
    return fail(std::errc::invalid_argument, "its network was given lists of a wrong length");
  }
  if (world.size() > UcxMessages::kMostPes) {
    return fail(std::errc::invalid_argument, "the network is for at most 65536 PEs");
  }
  return {};
}

Result<void> prepare(const Bootstrap& world, const NetworkSettings& settings, Own& own) {
  if (auto good = check_settings(world, settings); !good) {
    return good;
  }
  if (auto threads = check_ucx_threads(); !threads) {
    return threads;
  }
  const auto calls = load_ucx(settings.library);
  if (!calls) {
    return calls.error();
  }
  const auto remote_pes =
      static_cast<std::size_t>(std::count(settings.is_remote.begin(), settings.is_remote.end(), true));
  auto worker = UcxWorker::create(*calls, remote_pes, settings.direct, settings.rdma_only);
  if (!worker) {
    return worker.error();
  }
  own.worker = std::move(*worker);
  own.memory = std::make_unique<UcxMemory>();
  return own.memory->add(*own.worker, settings.segments);
}

PeAddress address_of(const Own& own, const NetworkSettings& settings) {
  PeAddress address;
  unsigned release = 0;
  own.worker->calls().get_version(&address.major, &address.minor, &release);
  address.address = own.worker->address();
  for (std::size_t segment = 0; segment < settings.segments.size(); ++segment) {
    const auto memory = settings.segments[segment];
    if (memory.empty()) {
      continue;
    }
    address.segments[segment] = {reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(),
                                 own.memory->key(segment)};
  }
  return address;
}

}  // namespace

Result<std::unique_ptr<Network>> make_network(Bootstrap& world, NetworkSettings settings) {
  Own own;
  const auto failed = first_of(world, reason_of(prepare(world, settings, own)));
  if (!failed) {
    return failed.error();
  }
  if (*failed) {
    const auto pe = static_cast<std::size_t>((*failed)->pe);
    const std::string name = pe < settings.names.size() ? settings.names[pe] : fmt::format("PE {}", pe);
    return fail((*failed)->what.code,
                fmt::format("shmem: {} has no network to the other nodes: {}", name, (*failed)->what.text.data()));
  }
  auto addresses = exchange_addresses(world, address_of(own, settings), settings.names);
  if (!addresses) {
    return addresses.error();
  }
  return std::make_unique<UcxNetwork>(world, std::move(own.worker), std::move(own.memory), std::move(*addresses),
                                      settings);
}

void UcxNetwork::forget_lost(int pe) {
  const auto held = peers_.lock();
  if (peers_.has_lost(pe)) {
    UcxPeers::forget(peers_.at(pe));
  }
}

void UcxNetwork::leave_out(int pe) {
  UcxPeer& peer = peers_.at(pe);
  auto held = peers_.lock();
  if (UcxPeers::has_begun(peer)) {
    held.unlock();
    one_sided_.stop(peer);
    held.lock();
  }
  UcxPeers::forget(peer);
}

}  // namespace shmem
