// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_exchange/events.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "tools/kv_exchange/commands.hpp"

namespace kv_exchange {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAtOnce = 256;
constexpr auto kLost = static_cast<std::errc>(EOVERFLOW);
/// Between two attempts to reach a holder that is not there.
constexpr double kBetweenTries = 0.2;  // seconds

constexpr std::size_t kMostSubscribers = 64;
/// Between two looks for events.
constexpr std::chrono::milliseconds kBetweenEvents{50};
/// Without a descriptor for one that connects.
constexpr std::chrono::milliseconds kPause{200};
/// One that takes nothing for so long has to connect again.
constexpr std::chrono::minutes kLongestSilence{5};

std::string line_of(const char* what, std::uint64_t number, std::uint64_t layout, std::uint64_t bytes,
                    const shmemx_exchange_name_t& key) {
  return fmt::format("{} {} {:x} {} {}\n", what, number, layout, bytes,
                     printable(std::string(reinterpret_cast<const char*>(key.data), key.bytes)));
}

}  // namespace

// ---- Lines ----

Result<bool> EventLines::next(std::string& text, std::chrono::nanoseconds limit) {
  if (lists_) {
    go_on_with_list(text);
    return true;
  }
  std::vector<shmemx_exchange_event_t> events(kAtOnce);
  const int count = shmemx_exchange_events(member_.get(), &position_, events.data(), events.size(),
                                           static_cast<std::uint64_t>(limit.count()));
  if (count < 0) {
    const Error error = error_of(count);
    if (error.code == kLost) {
      return begin_list(text);
    }
    return error.code == std::errc::protocol_not_supported ? Result<bool>(error) : Result<bool>(false);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const shmemx_exchange_event_t& event = events[i];
    text += line_of(event.kind == SHMEMX_EXCHANGE_STORED ? "stored" : "removed", event.number, event.layout,
                    event.bytes, event.key);
  }
  return true;
}

bool EventLines::begin_list(std::string& text) {
  for (const auto& other : member_.others()) {
    if (other.id == position_.holder) {
      lists_ = true;
      seat_ = other.seat;
      cursor_ = 0;
      text += fmt::format("begin {} {:x}\n", position_.number, position_.holder);
      return true;
    }
  }
  position_ = {};  // its directory has not arrived: ask again
  return false;
}

void EventLines::go_on_with_list(std::string& text) {
  std::vector<shmemx_exchange_name_t> names(kAtOnce);
  std::vector<shmemx_exchange_block_t> blocks(kAtOnce);
  const int count = shmemx_exchange_list(member_.get(), seat_, &cursor_, names.data(), blocks.data(), kAtOnce);
  lists_ = count > 0;
  for (std::size_t i = 0; lists_ && i < static_cast<std::size_t>(count); ++i) {
    if (blocks[i].member == position_.holder) {
      text += line_of("block", position_.number, blocks[i].layout, blocks[i].bytes, names[i]);
    }
  }
  if (!lists_) {
    text += fmt::format("live {} {:x}\n", position_.number, position_.holder);
  }
}

Result<void> events(const Options& options) {
  const EndSignals ends;
  auto member = Member::open(options, kVisitor);
  if (!member) {
    return member.error();
  }
  EventLines lines(*member);
  bool has_said = false;
  while (!ends.ended(0)) {
    std::string text;
    const auto there = lines.next(text, kBetweenEvents);
    if (!there) {
      return there.error();
    }
    if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
      return base::fail_errno(errno, "standard output");
    }
    if (!*there && !std::exchange(has_said, true)) {
      std::fprintf(stderr, "kv_exchange: waiting for the holder of exchange %s\n", options.exchange.c_str());
    }
    if (!*there && ends.ended(kBetweenTries)) {
      break;
    }
    has_said = has_said && !*there;
  }
  return {};
}

// ---- The server ----

Result<EventServer> EventServer::listen(const std::string& address) {
  auto where = wire::parse_service_endpoint(address);
  auto socket = where ? wire::listen_at(*where) : Result<base::UniqueFd>(where.error());
  if (!socket) {
    return fail(socket.error().code, fmt::format("cannot send events at \"{}\": {}; name another address or port, or "
                                                 "port 0 for a free one",
                                                 address, socket.error().text));
  }
  return EventServer(*std::move(socket), where->port());
}

EventServer::EventServer(base::UniqueFd socket, std::uint16_t port)
    : listener_(std::move(socket), kPause), port_(port) {}

void EventServer::turn(Member& member) try {
  wait_for_sockets();
  accept(member);
  has_more_ = false;
  std::erase_if(subscribers_, [this](Subscriber& one) {
    const State state = serve(one);
    has_more_ = has_more_ || state == State::kHasMore;
    return state == State::kOver;
  });
} catch (const std::bad_alloc&) {
  subscribers_.clear();  // they connect again, and get a list
}

void EventServer::wait_for_sockets() const {
  std::vector<pollfd> waiting{{.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
  for (const Subscriber& one : subscribers_) {
    const int wanted = one.has_taken_all() ? POLLIN : POLLIN | POLLOUT;
    waiting.push_back({.fd = one.socket.get(), .events = static_cast<short>(wanted), .revents = 0});
  }
  if (::poll(waiting.data(), waiting.size(), has_more_ ? 0 : static_cast<int>(kBetweenEvents.count())) < 0) {
    std::this_thread::sleep_for(kBetweenEvents);  // EINVAL, ENOMEM: the next poll() fails at once, too
  }
}

void EventServer::accept(Member& member) {
  listener_.resume(Clock::now());
  // Without a descriptor it pauses, and those that connect wait in the kernel's queue.
  static_cast<void>(listener_.accept([&](base::UniqueFd socket, const wire::Endpoint& /*from*/) {
    if (subscribers_.size() < kMostSubscribers) {
      subscribers_.push_back({.socket = std::move(socket), .lines = EventLines(member), .taken_last = Clock::now()});
    }
  }));
}

EventServer::State EventServer::serve(Subscriber& one) {
  std::array<char, 256> ignored{};
  const ssize_t got = ::recv(one.socket.get(), ignored.data(), ignored.size(), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
    return State::kOver;
  }
  bool has_more = false;
  if (one.has_taken_all()) {
    one.text.clear();
    one.sent = 0;
    one.taken_last = Clock::now();
    // No holder: this process is about to end.
    has_more = one.lines.next(one.text, 0ms).has_value() && !one.text.empty();
  }
  const ssize_t sent =
      ::send(one.socket.get(), one.text.data() + one.sent, one.text.size() - one.sent, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN && errno != EINTR) {
    return State::kOver;
  }
  if (sent > 0) {
    one.sent += static_cast<std::size_t>(sent);
    one.taken_last = Clock::now();
  }
  if (Clock::now() - one.taken_last > kLongestSilence) {
    return State::kOver;
  }
  return has_more && one.has_taken_all() ? State::kHasMore : State::kWaits;
}

}  // namespace kv_exchange
