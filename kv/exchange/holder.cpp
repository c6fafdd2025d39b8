// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/holder.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <thread>
#include <utility>

#include "base/size_text.hpp"
#include "kv/exchange/metrics_page.hpp"
#include "shmem/memory/memory_limit.hpp"

namespace shmem::exchange {
namespace {

/// Connections: one of each member of an exchange, and a few that have not said who they are.
constexpr std::size_t kMostSessions = kMostMembers + 16;
/// Between looks at what readers, or engines that are late, keep from being used.
constexpr std::chrono::milliseconds kBetweenLooks{20};
/// Between looks at whether it is the turn of an engine that has had more than its part.
constexpr std::chrono::milliseconds kBetweenTurns{1};
/// Between looks at which blocks readers use, while engines put any.
constexpr std::chrono::milliseconds kBetweenNotes{100};
/// After a failure: no descriptors left, no memory.
constexpr std::chrono::milliseconds kPauseOfHolder{200};
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kLeastBytes = std::uint64_t{1} << 20;

Error no_holder_here(const Exchange& exchange, const Error& why) {
  return fail(why.code, fmt::format("shmem: cannot hold exchange {}: {}", exchange.name(), why.text));
}

Result<void> check_settings(const HolderSettings& settings) {
  if (settings.bytes < kLeastBytes) {
    return fail(std::errc::invalid_argument,
                fmt::format("{} of memory for blocks: the least is {}", base::size_text(settings.bytes),
                            base::size_text(kLeastBytes)));
  }
  for (const TenantLimit& tenant : settings.tenants) {
    const auto same = std::count_if(settings.tenants.begin(), settings.tenants.end(),
                                    [&](const TenantLimit& other) { return other.name == tenant.name; });
    if (!is_plain_name(tenant.name) || tenant.bytes == 0 || tenant.bytes > settings.bytes || same > 1) {
      return fail(
          std::errc::invalid_argument,
          fmt::format("tenant \"{}\" may have {} of {}: each tenant is named once, by up to 48 letters, digits, "
                      "'.', '_' or '-', with at least 1 byte and at most all",
                      tenant.name, base::size_text(tenant.bytes), base::size_text(settings.bytes)));
    }
  }
  const MemoryLimit limit = memory_limit();
  if (settings.bytes > limit.bytes) {
    return fail(std::errc::not_enough_memory,
                fmt::format("{} for blocks is more than the {}, {}; ask for less", base::size_text(settings.bytes),
                            limit.source, base::rounded_size_text(limit.bytes)));
  }
  if (auto fits = check_address_space(settings.bytes); !fits) {
    return fail(fits.error().code,
                fmt::format("{} for blocks: {}", base::size_text(settings.bytes), fits.error().text));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Holder>> Holder::open(Exchange& exchange, const HolderSettings& settings) {
  if (auto good = check_settings(settings); !good) {
    return no_holder_here(exchange, good.error());
  }
  auto socket = PlaceSocket::open(exchange.place_of_node(), kHolderEnd);
  if (!socket || !*socket) {
    return no_holder_here(exchange, socket ? fail(std::errc::address_in_use,
                                                  "another process holds it already; end that one, or use another name")
                                           : socket.error());
  }
  const std::uint64_t bytes = settings.bytes / kPageBytes * kPageBytes;
  shmemx_memory_t memory{.address = nullptr, .bytes = bytes, .fd = -1, .offset = 0};
  auto region = exchange.register_memory(memory);
  auto events = HolderEvents::create();
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!region || !events || !wake) {
    return no_holder_here(exchange, !region ? region.error() : !events ? events.error() : fail_errno(errno, "eventfd"));
  }
  auto blocks =
      std::make_unique<HeldBlocks>(exchange, *region, HolderMemory(static_cast<std::byte*>(memory.address), bytes),
                                   *std::move(events), settings.tenants);
  std::unique_ptr<Holder> holder(new Holder(exchange, std::move(**socket), std::move(wake), std::move(blocks)));
  holder->take_picture();
  auto thread = base::HelperThread::start([&here = *holder] { here.run(); });
  if (!thread) {
    return no_holder_here(exchange, thread.error());
  }
  holder->thread_ = *std::move(thread);
  exchange.add_metrics([&here = *holder](MetricsPage& page) { here.write_metrics(page); });
  return holder;
}

Holder::Holder(Exchange& exchange, PlaceSocket socket, base::UniqueFd wake, std::unique_ptr<HeldBlocks> blocks)
    : exchange_(exchange), socket_(std::move(socket)), wake_(std::move(wake)), blocks_(std::move(blocks)) {}

Holder::~Holder() {
  exchange_.add_metrics({});
  stop_.store(true, std::memory_order_relaxed);
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
  for (auto& session : sessions_) {
    end(std::move(session));
  }
  socket_.shut();
}

/// The engine sees the end at once, and what it has sent is closed where no call waits.
void Holder::end(std::unique_ptr<HolderSession> session) noexcept {
  session->shut();
  // Its range is this thread's to give back, and its connection another one's to close.
  disposal_.take(session->release());
}

void Holder::run() {
  // Relaxed: the eventfd wakes this thread, which looks again.
  while (!stop_.load(std::memory_order_relaxed)) {
    try {
      turn();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPauseOfHolder);
    }
  }
}

void Holder::turn() {
  std::vector<pollfd> waiting{{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                              {.fd = socket_.fd(), .events = POLLIN, .revents = 0}};
  bool soon = blocks_->has_leaving();
  bool waits = false;  // an engine, for its turn
  const auto begin = std::chrono::steady_clock::now();
  for (const auto& session : sessions_) {
    const bool has_turn = session->next_turn() <= begin;
    waiting.push_back({.fd = has_turn ? session->fd() : -1, .events = POLLIN, .revents = 0});
    soon = soon || session->is_writing();
    waits = waits || !has_turn;
  }
  const auto limit = waits              ? kBetweenTurns
                     : soon             ? kBetweenLooks
                     : socket_.pauses() ? kPauseOfHolder
                                        : std::chrono::milliseconds{-1};
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(limit.count())) < 0) {
    std::this_thread::sleep_for(kPauseOfHolder);
    return;
  }
  socket_.end_pause();
  blocks_->end_leaving();
  if (const auto now = std::chrono::steady_clock::now(); now >= next_note_) {
    next_note_ = now + kBetweenNotes;
    blocks_->note_use();
  }
  constexpr std::size_t kFirst = 2;
  for (std::size_t i = sessions_.size(); i-- > 0;) {
    const pollfd& asked = waiting[kFirst + i];
    if (asked.revents != 0 && !sessions_[i]->serve_in_turn(picture_.stats, sessions_.size())) {
      end(std::move(sessions_[i]));
      sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(i));
    } else if (asked.fd >= 0) {
      // What came before the look has been served: what this process was late to read is no pause of the engine.
      sessions_[i]->end_late_writing(begin);
    }
  }
  if (waiting[1].revents != 0) {
    socket_.accept(disposal_, [this](base::UniqueFd& socket) {
      const bool has_room = make_room();
      if (has_room) {
        sessions_.push_back(std::make_unique<HolderSession>(HolderSocket(std::move(socket)), *blocks_, exchange_.id()));
      }
      return has_room;
    });
  }
  take_picture();
}

/// Those that connect and do not attach give way, the oldest first.
bool Holder::make_room() {
  if (sessions_.size() < kMostSessions) {
    return true;
  }
  const auto silent =
      std::find_if(sessions_.begin(), sessions_.end(), [](const auto& session) { return !session->is_attached(); });
  if (silent == sessions_.end()) {
    return false;
  }
  end(std::move(*silent));
  sessions_.erase(silent);
  return true;
}

// ---- For people ----

void Holder::take_picture() {
  Picture now;
  blocks_->describe(now.stats);
  now.stats.engines = static_cast<std::uint64_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& session) { return session->is_attached(); }));
  now.tenants = blocks_->tenants();
  const std::lock_guard lock(picture_mutex_);
  picture_ = std::move(now);
}

void Holder::write_metrics(MetricsPage& page) const {
  Picture now;
  {
    const std::lock_guard lock(picture_mutex_);
    now = picture_;
  }
  const shmemx_exchange_holder_stats_t& stats = now.stats;
  page.gauge("holder_capacity_bytes", "bytes", "Memory for blocks of the holder", stats.capacity);
  page.gauge("holder_taken_bytes", "bytes", "Memory that the holder has taken so far", stats.taken_bytes);
  page.gauge("holder_engines", "", "Engines that are connected to the holder", stats.engines);
  page.gauge("holder_pinned_bytes", "bytes", "Bytes of blocks that are pinned", stats.pinned_bytes);
  page.gauge("holder_writing_bytes", "bytes", "Bytes of ranges that engines are writing", stats.writing_bytes);
  page.gauge("holder_leaving_bytes", "bytes", "Bytes of evicted blocks that readers have leased", stats.leaving_bytes);
  page.counter("holder_stored_blocks", "", "Blocks that engines have put", stats.stored);
  page.counter("holder_there_already_blocks", "", "Puts of blocks that were there already", stats.there_already);
  page.counter("holder_evicted_blocks", "", "Blocks that went to make room", stats.evicted);
  page.counter("holder_discarded_blocks", "", "Blocks that engines have discarded", stats.discarded);
  page.counter("holder_refused_blocks", "", "Puts of blocks that failed", stats.refused);
  std::vector<std::pair<std::string, std::uint64_t>> bytes;
  std::vector<std::pair<std::string, std::uint64_t>> limits;
  for (const TenantUse& tenant : now.tenants) {
    bytes.emplace_back(tenant.name, tenant.bytes);
    limits.emplace_back(tenant.name, tenant.limit);
  }
  page.gauge_by("tenant", "holder_tenant_bytes", "bytes", "Bytes of blocks of a tenant", bytes);
  page.gauge_by("tenant", "holder_tenant_limit_bytes", "bytes", "The most bytes of blocks of a tenant", limits);
}

}  // namespace shmem::exchange
