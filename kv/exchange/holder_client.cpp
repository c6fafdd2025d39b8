// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/holder_client.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/user.hpp"

namespace shmem::exchange {
namespace {

/// After a holder has not answered an attempt to attach.
constexpr std::chrono::seconds kBetweenTries{1};
constexpr std::uint64_t kMostStagingBytes = std::uint64_t{64} << 20;
constexpr std::chrono::milliseconds kBetweenEvents{50};
constexpr std::chrono::seconds kLongestClear{60};

/// False: nothing has come by then.
bool wait_readable(int fd, std::chrono::steady_clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    const int count = ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 600'000)));
    if (count != 0 && (count > 0 || errno != EINTR)) {
      return count > 0;
    }
    if (left.count() <= 0) {
      return false;
    }
  }
}

}  // namespace

HolderClient::~HolderClient() {
  disconnect();
}

Error HolderClient::problem(std::errc code, const std::string& text) const {
  return fail(code, fmt::format("shmem: the holder of exchange {}: {}", exchange_.name(), text));
}

Error HolderClient::lost(std::errc code, const std::string& text) {
  disconnect();
  return problem(code, text);
}

void HolderClient::disconnect() noexcept {
  if (socket_) {
    socket_.shut();
    disposal_.take(std::exchange(socket_, HolderSocket()));
  }
  staging_ = {};
  events_.reset();
  holder_ = 0;
  halves_ = {};
  is_silent_ = false;
}

void HolderClient::use(const std::string& tenant, std::chrono::milliseconds answer_limit) {
  const std::lock_guard lock(mutex_);
  tenant_ = tenant;
  answer_limit_ = answer_limit;
  next_try_ = {};
  disconnect();
}

// ---- Connecting ----

Result<void> HolderClient::begin(Clock::duration most) {
  deadline_ = Clock::now() + answer_limit_ + most;
  auto ready = take_late_answers();
  return ready ? attach() : ready;
}

Result<void> HolderClient::attach() {
  if (socket_) {
    return {};
  }
  if (Clock::now() < next_try_) {
    return problem(std::errc::timed_out, "it does not answer");
  }
  auto connected = connect_in(exchange_.place_of_node(), kHolderEnd);
  if (!connected) {
    const Error& error = connected.error();
    return error.code == std::errc::connection_refused
               ? problem(std::errc::not_connected,
                         fmt::format("no holder is here; start one: kv_exchange hold {}", exchange_.name()))
           : error.code == std::errc::resource_unavailable_try_again
               ? problem(std::errc::timed_out, "more processes want to connect than it accepts")
               : problem(error.code, error.text);
  }
  HolderSocket socket(*std::move(connected));
  HolderSocket::Files files{base::UniqueFd(), base::UniqueFd()};
  HolderBuffer answer;
  HolderAttach request{.head = holder_head(HolderKind::kAttach, ++last_request_)};
  set_text(request.tenant, tenant_);
  auto attached = base::is_peer_this_user(socket.fd())
                      ? Result<void>()
                      : problem(std::errc::permission_denied, "it is another user's process");
  if (attached && socket.send(&request, sizeof request) != std::errc{}) {
    attached = problem(std::errc::owner_dead, "it has ended");
  }
  attached = attached ? wait(socket, answer, &files) : attached;
  if (attached) {
    return take_attached(std::move(socket), answer, std::move(files));
  }
  next_try_ = attached.error().code == std::errc::timed_out ? Clock::now() + kBetweenTries : next_try_;
  socket.shut();
  disposal_.take(std::move(socket));
  disposal_.take(std::move(files));
  return attached;
}

/// Maps what the holder has sent, and checks it: any process of this user can take the holder's name.
Result<void> HolderClient::take_attached(HolderSocket socket, const HolderBuffer& answer, HolderSocket::Files files) {
  const auto* const head = answer.as<HolderHead>();
  const auto* const refused = answer.as<HolderRefused>();
  const auto* const attached = answer.as<HolderAttached>();
  Error error = problem(std::errc::protocol_error, "it does not follow the protocol");
  if (head != nullptr && head->kind == HolderKind::kRefused && head->code < 0 && refused != nullptr) {
    error = problem(static_cast<std::errc>(-head->code), std::string(text_in(refused->text)));
  } else if (head != nullptr && head->protocol != kHolderProtocol && head->protocol >> 8 == kHolderProtocol >> 8) {
    error = problem(std::errc::protocol_not_supported,
                    fmt::format("the holder has version {} of libshmem, and this process has {}",
                                text_in(head->version), text_in(holder_head(HolderKind::kAttach, 0).version)));
  } else if (head != nullptr && head->kind == HolderKind::kAttached && attached != nullptr && files[0] && files[1] &&
             attached->staging_bytes >= 2 * kPage && attached->staging_bytes <= kMostStagingBytes &&
             attached->staging_bytes % (2 * kPage) == 0 && check_shared(files[0].get(), attached->staging_bytes)) {
    auto staging = base::Mapping::share(files[0].get(), attached->staging_bytes);
    auto events = HolderEventReader::open(files[1].get());
    if (staging && events) {
      // A child would keep the memory, and has no use for it.
      ::madvise(staging->data(), staging->size(), MADV_DONTFORK);
      socket_ = std::move(socket);
      staging_ = *std::move(staging);
      events_ = *std::move(events);
      holder_ = attached->member;
      most_bytes_ = attached->most_bytes;
      disposal_.take(std::move(files));
      return {};
    }
    error = problem(!staging ? staging.error().code : events.error().code,
                    !staging ? staging.error().text : events.error().text);
  }
  socket.shut();
  disposal_.take(std::move(socket));
  disposal_.take(std::move(files));
  return error;
}

Result<void> HolderClient::wait(HolderSocket& socket, HolderBuffer& answer, HolderSocket::Files* files) {
  const auto deadline = std::min(Clock::now() + answer_limit_, deadline_);
  for (;;) {
    const std::errc error = socket.receive(answer, files);
    if (error == std::errc{}) {
      return {};
    }
    if (error != std::errc::resource_unavailable_try_again) {
      return problem(error == std::errc::protocol_error ? error : std::errc::owner_dead,
                     error == std::errc::protocol_error ? "it does not follow the protocol" : "it has ended");
    }
    if (!wait_readable(socket.fd(), deadline)) {
      return problem(std::errc::timed_out, fmt::format("it has not answered for {} ms", answer_limit_.count()));
    }
  }
}

// ---- Requests ----

Result<void> HolderClient::send(const void* message, std::size_t bytes) {
  const std::errc error = socket_.send(message, bytes);
  if (error == std::errc{}) {
    return {};
  }
  return error == std::errc::resource_unavailable_try_again ? problem(std::errc::timed_out, "it does not take requests")
                                                            : lost(std::errc::owner_dead, "it has ended");
}

/// Notes the answer to a request of a half. `statuses` may be null if the caller of each has gone.
Result<void> HolderClient::settle(const HolderBuffer& answer, std::int32_t* statuses) {
  const auto* const head = answer.as<HolderHead>();
  const auto half = std::find_if(halves_.begin(), halves_.end(), [&](const Half& one) {
    return head != nullptr && one.request != 0 && one.request == head->number;
  });
  const bool is_items = half != halves_.end() && head->kind == HolderKind::kStatuses;
  const auto* const told = is_items ? answer.as<HolderStatuses>(bytes_of_statuses(half->count)) : nullptr;
  if (told == nullptr || head->count != half->count) {
    // That of a request without blocks, whose caller has gone, does not matter.
    const bool is_late = head != nullptr && half == halves_.end() && head->number <= last_request_;
    return is_late ? Result<void>() : lost(std::errc::protocol_error, "it does not follow the protocol");
  }
  for (std::size_t i = 0; i < half->places.size(); ++i) {
    const std::int32_t status = told->statuses[i];
    // A failure of an earlier part of a block is what counts; the success of one is not that of the block.
    std::int32_t& mine = statuses[half->places[i].put];
    if (mine == -EINPROGRESS && (status != 0 || half->places[i].ends)) {
      mine = std::clamp(status, -4095, 0);
    }
  }
  *half = {};
  return {};
}

Result<void> HolderClient::finish(Half& half, std::int32_t* statuses) {
  while (half.request != 0) {
    HolderBuffer answer;
    if (auto came = wait(socket_, answer); !came) {
      is_silent_ = came.error().code == std::errc::timed_out;
      return is_silent_ ? came : lost(came.error().code, "it has ended, or does not follow the protocol");
    }
    if (auto settled = settle(answer, statuses); !settled) {
      return settled;
    }
  }
  return {};
}

Result<void> HolderClient::take_late_answers() {
  HolderBuffer answer;
  while (socket_) {
    const std::errc error = socket_.receive(answer);
    if (error == std::errc::resource_unavailable_try_again) {
      break;
    }
    if (error != std::errc{}) {
      disconnect();  // it has ended: the caller connects again
      break;
    }
    is_silent_ = false;
    if (auto settled = settle(answer, nullptr); !settled) {
      return settled;
    }
  }
  return is_silent_ ? problem(std::errc::timed_out, "it does not answer") : Result<void>();
}

Result<void> HolderClient::ask(const void* message, std::size_t bytes, std::uint64_t number, HolderBuffer& answer) {
  if (auto sent = send(message, bytes); !sent) {
    return sent;
  }
  for (;;) {
    if (auto came = wait(socket_, answer); !came) {
      is_silent_ = came.error().code == std::errc::timed_out;
      return is_silent_ ? came : lost(came.error().code, "it has ended, or does not follow the protocol");
    }
    const auto* const head = answer.as<HolderHead>();
    if (head != nullptr && head->number == number) {
      return {};
    }
    if (auto settled = settle(answer, nullptr); !settled) {
      return settled;
    }
  }
}

Result<void> HolderClient::change(HolderKind kind, std::span<const shmemx_exchange_key_t> keys, std::uint64_t layout,
                                  std::int32_t* statuses) {
  const std::lock_guard lock(mutex_);
  auto done = this->begin(std::chrono::milliseconds(keys.size()));
  for (std::size_t begin = 0; begin < keys.size(); begin += kMostItems) {
    HolderItems request;
    const auto part = keys.subspan(begin, std::min(kMostItems, keys.size() - begin));
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const bool good = fill_item(request.items[places.size()], part[i], layout);
      statuses[begin + i] = !good ? -EINVAL : done ? 0 : -static_cast<std::int32_t>(done.error().code);
      if (good) {
        places.push_back(begin + i);
      }
    }
    if (!done || places.empty()) {
      continue;
    }
    request.head = holder_head(kind, ++last_request_, static_cast<std::uint32_t>(places.size()));
    HolderBuffer answer;
    done = ask(&request, bytes_of_items(places.size()), request.head.number, answer);
    const auto* const told = done ? answer.as<HolderStatuses>(bytes_of_statuses(places.size())) : nullptr;
    if (done && (told == nullptr || told->head.kind != HolderKind::kStatuses || told->head.count != places.size())) {
      done = lost(std::errc::protocol_error, "it does not follow the protocol");
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      statuses[places[i]] =
          done ? std::clamp(told->statuses[i], -4095, 0) : -static_cast<std::int32_t>(done.error().code);
    }
  }
  return done;
}

Result<void> HolderClient::clear() {
  const std::lock_guard lock(mutex_);
  auto done = begin(kLongestClear);
  // So many steps as a holder of all blocks that there can be needs.
  constexpr std::uint32_t kMostSteps = kMostSlots / 1024 + 1;
  for (std::uint32_t i = 0; i < kMostSteps && done; ++i) {
    const HolderHead request = holder_head(HolderKind::kClear, ++last_request_);
    HolderBuffer answer;
    done = ask(&request, sizeof request, request.number, answer);
    if (done && answer.as<HolderHead>()->kind != HolderKind::kCleared) {
      done = lost(std::errc::protocol_error, "it does not follow the protocol");
    } else if (done && answer.as<HolderHead>()->count == 0) {
      break;
    }
  }
  return done;
}

Result<void> HolderClient::stats(shmemx_exchange_holder_stats_t& stats) {
  const std::lock_guard lock(mutex_);
  auto done = begin({});
  if (!done) {
    return done;
  }
  const HolderHead request = holder_head(HolderKind::kAskStats, ++last_request_);
  HolderBuffer answer;
  done = ask(&request, sizeof request, request.number, answer);
  const auto* const told = done ? answer.as<HolderStatsAnswer>() : nullptr;
  if (done && (told == nullptr || told->head.kind != HolderKind::kStats)) {
    return lost(std::errc::protocol_error, "it does not follow the protocol");
  }
  if (done) {
    stats = told->stats;
  }
  return done;
}

Result<int> HolderClient::events(shmemx_exchange_position_t& position, std::span<shmemx_exchange_event_t> events,
                                 std::chrono::nanoseconds limit) {
  const auto deadline = Clock::now() + limit;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (auto ready = begin({}); !ready) {
        return ready.error();
      }
      std::size_t count = 0;
      const bool whole = position.holder == holder_ && events_->read(position.number, events, count);
      if (count > 0) {
        return static_cast<int>(count);
      }
      if (!whole) {
        position = {.holder = holder_, .number = events_->last()};
        return problem(static_cast<std::errc>(EOVERFLOW),
                       "events are lost, or it is another one than before; list its blocks");
      }
    }
    if (events.empty() || Clock::now() >= deadline) {
      return 0;
    }
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kBetweenEvents, deadline - Clock::now()));
  }
}

}  // namespace shmem::exchange
