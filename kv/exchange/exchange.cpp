// SPDX-License-Identifier: Apache-2.0
// Joining an exchange, connecting it with other nodes, and what a member says about itself and others.
#include "kv/exchange/exchange.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace shmem::exchange {
namespace {

Result<std::uint64_t> new_id() {
  std::uint64_t id = 0;
  while (id == 0) {
    if (::getrandom(&id, sizeof id, 0) != static_cast<ssize_t>(sizeof id)) {
      return fail_errno(errno, "cannot get random bits for a member of an exchange: getrandom");
    }
  }
  return id;
}

/// Members with different values of SHMEM_HOST_ID do not see each other on seats.
std::string node_suffix(const std::string& host_id) {
  const auto id = Key::make(host_id.data(), std::min(host_id.size(), kMostKeyBytes));
  return id ? fmt::format("@{:016x}", id->hash()) : std::string();
}

/// UCX ends a process that has no descriptors left while it starts. It takes about 25, and more with more networks.
constexpr std::size_t kDescriptorsOfUcx = 64;

Result<void> check_descriptors() {
  std::array<base::UniqueFd, kDescriptorsOfUcx> probes;
  for (base::UniqueFd& probe : probes) {
    probe.reset(::eventfd(0, EFD_CLOEXEC));
    if (!probe) {
      return fail_errno(errno,
                        fmt::format("{} descriptors are needed, and not as many are left; raise the limit of open "
                                    "files (ulimit -n)",
                                    kDescriptorsOfUcx));
    }
  }
  return {};
}

Result<void> add_regions(RemoteReaders& readers, std::map<std::uint32_t, Readers::Region>&& regions) {
  for (auto& [number, region] : regions) {
    if (auto added = readers.add_region(number, std::move(region.file), region.range); !added) {
      return added;
    }
  }
  return {};
}

}  // namespace

bool is_plain_name(std::string_view name) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return name.size() <= kMostNameBytes && name.find_first_not_of(kAllowed) == std::string_view::npos;
}

Error Exchange::problem(std::errc code, std::string text) {
  return fail(code, "shmem: " + std::move(text));
}

Result<std::unique_ptr<Exchange>> Exchange::open(const std::string& name, const ExchangeSettings& settings) {
  if (name.empty() || !is_plain_name(name)) {
    return problem(
        std::errc::invalid_argument,
        fmt::format("an exchange cannot have this name of {} bytes: it has 1 to {} letters, digits, '.', '_' or '-'",
                    name.size(), kMostNameBytes));
  }
  auto directory = DirectoryWriter::create(settings.blocks, settings.holds ? Identity::kKeyAndLayout : Identity::kKey);
  auto id = new_id();
  if (!directory || !id) {
    return directory ? id.error() : directory.error();
  }
  std::unique_ptr<Exchange> exchange(new Exchange(name, *id, settings, *std::move(directory)));
  const Self self{.id = *id,
                  .directory = exchange->directory_.file(),
                  .slots = settings.blocks,
                  .quota = settings.leases,
                  .lease_ms = settings.lease_ms,
                  .wants_use = settings.holds};
  auto members =
      Members::open(exchange->place_of_node(), self, std::chrono::milliseconds(settings.join_ms), exchange->counters_);
  if (!members) {
    return problem(members.error().code, members.error().text);
  }
  exchange->members_ = *std::move(members);
  const auto execute = [&here = *exchange](const Transfer& transfer) {
    return here.pull(transfer.blocks(), transfer.destinations(), transfer.statuses());
  };
  exchange->transfers_ = std::make_unique<Transfers>(settings.transfers, execute);
  exchange->remote_transfers_ = std::make_unique<Transfers>(settings.transfers, execute);
  if (settings.metrics) {
    if (auto started = exchange->start_metrics(*settings.metrics); !started) {
      return problem(started.error().code, started.error().text);
    }
  }
  return exchange;
}

Exchange::Exchange(std::string name, std::uint64_t id, const ExchangeSettings& settings, DirectoryWriter directory)
    : name_(std::move(name)),
      id_(id),
      settings_(settings),
      times_(settings.metrics ? std::make_unique<CallTimes>() : nullptr),
      directory_(std::move(directory)),
      counters_(directory_.counters()) {}

MeetingPlace Exchange::place_of_node() const {
  return {name_ + node_suffix(settings_.host_id), settings_.folder};
}

void Exchange::add_metrics(WriteMetrics write) {
  const std::lock_guard lock(more_metrics_mutex_);
  more_metrics_ = std::move(write);
}

Result<void> Exchange::start_metrics(const std::string& address) {
  auto server = MetricsServer::start(address, [this] {
    shmemx_exchange_stats_t now;
    stats(now);
    const std::lock_guard lock(more_metrics_mutex_);
    return metrics_text(name_, now, *times_, more_metrics_);
  });
  if (!server) {
    return server.error();
  }
  metrics_ = *std::move(server);
  metrics_port_.store(metrics_->port(), std::memory_order_relaxed);
  return {};
}

// ---- Members on other nodes ----

Result<void> Exchange::connect(const NetworkSettings& settings) {
  const std::lock_guard connecting(connect_mutex_);
  if (remote_ != nullptr) {
    return problem(std::errc::already_connected,
                   fmt::format("this member of exchange {} is connected to other nodes, and listens at {}", name_,
                               remote_->place()));
  }
  const RemoteSettings remote{.exchange = name_,
                              .secret = settings.secret,
                              .host_id = settings_.host_id,
                              .folder = settings_.folder,
                              .rdma_only = settings.rdma_only,
                              .member = id_,
                              .limits = {.quota = settings_.leases, .lease_ms = settings_.lease_ms},
                              .answer_limit = std::chrono::milliseconds(settings.answer_ms)};
  const auto enough = check_descriptors();
  auto opened = enough
                    ? RemoteMembers::open(DirectoryReader(directory_.memory(), directory_.slots()), remote, counters_)
                    : enough.error();
  if (!opened) {
    return problem(opened.error().code,
                   fmt::format("cannot connect exchange {} to other nodes: {}", name_, opened.error().text));
  }
  {
    // Before readers come. No region comes or goes meanwhile; later ones are register_memory()'s.
    const std::lock_guard lock(mutex_);
    auto ready = add_regions((*opened)->readers(), members_->readers().regions());
    ready = ready ? (*opened)->listen(settings.place) : ready;
    if (!ready) {
      return problem(ready.error().code,
                     fmt::format("cannot connect exchange {} to other nodes: {}", name_, ready.error().text));
    }
    (*opened)->look_for(settings.seeds);  // the last that needs memory
    remote_ = *std::move(opened);
    remote_now_.store(remote_.get(), std::memory_order_release);
  }
  auto joined = remote_->await_seeds(std::chrono::milliseconds(settings_.join_ms));
  return joined ? Result<void>() : problem(joined.error().code, joined.error().text);
}

std::string Exchange::place() const {
  return remote() != nullptr ? remote()->place() : std::string();
}

// ---- Members and counters ----

int Exchange::members(std::span<shmemx_exchange_member_t> members) const {
  std::size_t count = 0;
  const Peers peers = members_->peers();
  for (const auto& peer : *peers) {
    if (!peer->is_alive()) {
      continue;
    }
    if (count < members.size()) {
      members[count] = {.id = peer->id(),
                        .seat = peer->seat(),
                        .pid = static_cast<std::uint32_t>(peer->pid()),
                        .blocks = peer->directory().blocks(),
                        .bytes = peer->directory().bytes(),
                        .most_blocks = peer->directory().slots(),
                        .refusals = peer->refusals()};
    }
    ++count;
  }
  if (remote() != nullptr) {
    count += remote()->describe(members.subspan(std::min(count, members.size())));
  }
  return static_cast<int>(count);
}

namespace {

void copy_counters(const Counters& counters, shmemx_exchange_stats_t& stats) {
  const auto get = [](const Counters::Count& count) { return count.load(std::memory_order_relaxed); };
  stats.published = get(counters.published);
  stats.withdrawn = get(counters.withdrawn);
  stats.leases_expired = get(counters.leases_expired);
  stats.refused = get(counters.refused);
  stats.found = get(counters.found);
  stats.missed = get(counters.missed);
  stats.pulled_blocks = get(counters.pulled_blocks);
  stats.pulled_bytes = get(counters.pulled_bytes);
  stats.failed_stale = get(counters.failed_stale);
  stats.failed_dead = get(counters.failed_dead);
  stats.failed_corrupt = get(counters.failed_corrupt);
  stats.failed_other = get(counters.failed_other);
  stats.failed_timeout = get(counters.failed_timeout);
  stats.over_quota = get(counters.over_quota);
  stats.unreachable = get(counters.unreachable);
}

}  // namespace

void Exchange::stats(shmemx_exchange_stats_t& stats) const {
  stats = {};
  stats.members = static_cast<std::uint64_t>(members({}));
  stats.readers = members_->readers().count() + (remote() != nullptr ? remote()->readers().count() : 0);
  stats.seat = members_->seat();
  stats.id = id_;
  {
    const std::lock_guard lock(mutex_);
    stats.blocks = directory_.blocks();
    stats.bytes = directory_.bytes();
  }
  stats.metrics_port = metrics_port_.load(std::memory_order_relaxed);
  copy_counters(counters_, stats);
}

Result<void> Exchange::member_stats(std::uint32_t seat, shmemx_exchange_stats_t& stats) const {
  stats = {};
  const Peers peers = members_->peers();
  const LocalPeer* const peer = find_peer(peers, seat);
  if (seat >= kFirstRemoteSeat) {
    return problem(
        std::errc::not_supported,
        fmt::format("the member on seat {} is on another node, where only its metrics tell its counters", seat));
  }
  if (peer == nullptr) {
    return problem(std::errc::no_such_file_or_directory, fmt::format("there is no member on seat {}", seat));
  }
  stats.seat = seat;
  stats.id = peer->id();
  stats.blocks = peer->directory().blocks();
  stats.bytes = peer->directory().bytes();
  copy_counters(peer->directory().counters(), stats);
  return {};
}

}  // namespace shmem::exchange
