// SPDX-License-Identifier: Apache-2.0
#include "shmem/net/ucx_network.hpp"

namespace shmem {

UcxNetwork::UcxNetwork(const Bootstrap& world, std::unique_ptr<UcxWorker> worker, std::unique_ptr<UcxMemory> memory,
                       std::vector<Greeting> greetings, const NetworkSettings& settings)
    : outbox_(*worker, settings.threads),
      server_(*worker, outbox_, peers_, settings),
      requests_(*worker, outbox_, peers_, patience_, world.rank(), settings.threads),
      direct_(*worker, peers_, patience_),
      one_sided_(worker->one_stream() && !settings.direct ? static_cast<UcxOneSided&>(requests_) : direct_),
      worker_(std::move(worker)),
      memory_(std::move(memory)),
      peers_(*worker_, std::move(greetings), settings, world.rank()),
      patience_(world, *worker_, settings),
      messages_(*worker_, peers_, patience_, world.rank()) {}

UcxNetwork::~UcxNetwork() = default;

std::string UcxNetwork::describe() const {
  return "ucx " + ucx_version(worker_->calls()) + " (" + worker_->transports() + ")";
}

Result<void> UcxNetwork::begin_put(const FarPlace& to, const void* from, std::size_t bytes, UcxOneSided::Waits waits) {
  if (auto inside = peers_.check(to, bytes); !inside) return inside;
  return one_sided_.put(to, from, bytes, waits);
}

Result<void> UcxNetwork::begin_get(void* to, const FarPlace& from, std::size_t bytes, UcxOneSided::Waits waits) {
  if (auto inside = peers_.check(from, bytes); !inside) return inside;
  return one_sided_.get(to, from, bytes, waits);
}

Result<void> UcxNetwork::check_word(const FarPlace& word, std::size_t size) const {
  if (size != 4 && size != 8) {
    return fail(std::errc::invalid_argument,
                "shmem: an atomic operation by the network is on 4 or 8 bytes, not " + std::to_string(size));
  }
  if (auto inside = peers_.check(word, size); !inside) return inside;
  if (peers_.address(word) % size == 0) return {};
  return fail(
      std::errc::invalid_argument,
      "shmem: the word of an atomic operation does not begin at a multiple of its " + std::to_string(size) + " bytes");
}

Result<std::uint64_t> UcxNetwork::fetch_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                               std::uint64_t operand, std::uint64_t compared) {
  if (operation > AtomicOperation::kSet) {
    return fail(std::errc::invalid_argument, "shmem: there is no such atomic operation");
  }
  if (auto good = check_word(word, size); !good) return tl::make_unexpected(good.error());
  return one_sided_.fetch_atomic(word, size, operation, operand, compared);
}

Result<void> UcxNetwork::post_atomic(const FarPlace& word, std::size_t size, AtomicOperation operation,
                                     std::uint64_t operand) {
  if (operation > AtomicOperation::kSet || operation == AtomicOperation::kCompareSwap ||
      operation == AtomicOperation::kFetch) {
    return fail(std::errc::invalid_argument, "shmem: this atomic operation is of no use without its answer");
  }
  if (auto good = check_word(word, size); !good) return good;
  return one_sided_.post_atomic(word, size, operation, operand);
}

}  // namespace shmem
