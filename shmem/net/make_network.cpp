// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "shmem/bootstrap/allgather.hpp"
#include "shmem/net/greeting.hpp"
#include "shmem/net/ucx_network.hpp"

namespace shmem {

namespace {

struct Reason {
  std::errc code;
  std::array<char, 600> text;  // ends with a zero
};

std::optional<Reason> reason_of(const Result<void>& result) {
  if (result) return std::nullopt;
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
  if (settings.segments.size() > kSegments || settings.is_far.size() != pes || settings.names.size() != pes) {
    return fail(std::errc::invalid_argument, "its network was asked for with lists of a wrong length");
  }
  if (world.size() > UcxMessages::kMostPes) {
    return fail(std::errc::invalid_argument, "the network is for at most 65536 PEs");
  }
  return {};
}

Result<void> prepare(const Bootstrap& world, const NetworkSettings& settings, Own& own) {
  if (auto good = check_settings(world, settings); !good) return good;
  const auto calls = load_ucx(settings.library);
  if (!calls) return tl::make_unexpected(calls.error());
  const auto far_pes = static_cast<std::size_t>(std::count(settings.is_far.begin(), settings.is_far.end(), true));
  auto worker = UcxWorker::create(*calls, far_pes, settings.threads);
  if (!worker) return tl::make_unexpected(worker.error());
  own.worker = std::move(*worker);
  own.memory = std::make_unique<UcxMemory>();
  return own.memory->add(*own.worker, settings.segments);
}

Greeting greeting_of(const Own& own, const NetworkSettings& settings) {
  Greeting greeting;
  unsigned release = 0;
  own.worker->calls().get_version(&greeting.major, &greeting.minor, &release);
  greeting.address = own.worker->address();
  for (std::size_t segment = 0; segment < settings.segments.size(); ++segment) {
    const auto memory = settings.segments[segment];
    if (memory.empty()) continue;
    greeting.segments[segment] = {reinterpret_cast<std::uintptr_t>(memory.data()), memory.size(),
                                  own.memory->key(segment)};
  }
  return greeting;
}

}  // namespace

Result<std::unique_ptr<Network>> make_network(Bootstrap& world, NetworkSettings settings) {
  Own own;
  const auto failed = first_of(world, reason_of(prepare(world, settings, own)));
  if (!failed) return tl::make_unexpected(failed.error());
  if (*failed) {
    const auto pe = static_cast<std::size_t>((*failed)->pe);
    const std::string name = pe < settings.names.size() ? settings.names[pe] : "PE " + std::to_string(pe);
    return fail((*failed)->what.code,
                "shmem: " + name + " has no network to the other nodes: " + (*failed)->what.text.data());
  }
  auto greetings = exchange_greetings(world, greeting_of(own, settings), settings.names);
  if (!greetings) return tl::make_unexpected(greetings.error());
  return std::make_unique<UcxNetwork>(world, std::move(own.worker), std::move(own.memory), std::move(*greetings),
                                      settings);
}

}  // namespace shmem
