// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/links.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <thread>
#include <tuple>
#include <utility>

#include "shmem/config/log.hpp"
#include "wire/strangers.hpp"

namespace shmem::exchange {
namespace {

using State = LinkConnection::State;

/// For a connection to become a link.
constexpr std::chrono::seconds kGreetingLimit{5};
/// Connections that have not proved themselves.
constexpr std::size_t kMostStrangers = 32;
constexpr std::size_t kMostPlaces = 512;
constexpr std::chrono::milliseconds kFirstRetry{100};
constexpr std::chrono::milliseconds kLongestRetry{1000};
/// An address that came from another member is dropped after so many failed attempts to connect.
constexpr unsigned kMostFailures = 8;
/// Until a program hears that no member answers at a place that it has named.
constexpr std::chrono::seconds kSilenceLimit{5};
/// After an error that would come again at once.
constexpr std::chrono::milliseconds kLinksPause{200};

}  // namespace

Result<std::unique_ptr<Links>> Links::open(Endpoint& place, LinkSelf self, LinkHandlers handlers, Counters& counters) {
  auto listener = wire::listen_at(place);
  if (!listener) {
    return listener.error();
  }
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) {
    return fail_errno(errno, "cannot connect an exchange to other nodes: eventfd");
  }
  std::unique_ptr<Links> links(
      new Links(*std::move(listener), place, std::move(wake), std::move(self), std::move(handlers), counters));
  auto thread = base::HelperThread::start([&here = *links] { here.run(); });
  if (!thread) {
    return thread.error();
  }
  links->thread_ = *std::move(thread);
  return links;
}

Links::Links(base::UniqueFd listener, const Endpoint& place, base::UniqueFd wake, LinkSelf self, LinkHandlers handlers,
             Counters& counters)
    : self_(std::move(self)),
      place_(place),
      handlers_(std::move(handlers)),
      counters_(counters),
      listener_(std::move(listener), kLinksPause),
      wake_(std::move(wake)) {}

Links::~Links() {
  stop_.store(true, std::memory_order_relaxed);
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Links::look_for(const std::vector<Endpoint>& seeds) {
  const std::lock_guard lock(mutex_);
  new_seeds_.insert(new_seeds_.end(), seeds.begin(), seeds.end());
  joined_ = false;
  refusal_.clear();
  ::eventfd_write(wake_.get(), 1);
}

Result<void> Links::await_seeds(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  joined_changed_.wait_for(lock, limit, [&] { return joined_ || !refusal_.empty(); });
  std::string refusal = std::exchange(refusal_, {});
  return refusal.empty() ? Result<void>() : fail(std::errc::permission_denied, std::move(refusal));
}

void Links::welcome(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  to_welcome_.push_back(session);
  ::eventfd_write(wake_.get(), 1);
}

void Links::drop(std::uint64_t session, std::chrono::milliseconds pause) {
  const std::lock_guard lock(mutex_);
  to_drop_.push_back({session, pause});
  ::eventfd_write(wake_.get(), 1);
}

// ---- The thread ----

void Links::run() {
  // Relaxed: the eventfd wakes this thread, which looks again.
  while (!stop_.load(std::memory_order_relaxed)) {
    try {
      turn();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kLinksPause);
    }
  }
}

void Links::turn() {
  take_orders();
  try_places();
  tell_joined();
  tell_unreachable();
  std::vector<pollfd> waiting{{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                              {.fd = listener_.fd(), .events = POLLIN, .revents = 0}};
  for (const auto& connection : connections_) {
    waiting.push_back({.fd = connection->fd(), .events = connection->events(), .revents = 0});
  }
  if (::poll(waiting.data(), waiting.size(), poll_limit()) < 0) {
    if (errno != EINTR) {
      std::this_thread::sleep_for(kLinksPause);  // EINVAL, ENOMEM: the next poll() fails at once, too
    }
    return;  // nothing is known of any
  }
  eventfd_t woken = 0;
  ::eventfd_read(wake_.get(), &woken);
  for (std::size_t i = 2; i < waiting.size(); ++i) {
    handle(*connections_[i - 2], waiting[i].revents);
  }
  if (waiting[1].revents != 0) {
    accept();
  }
  erase_dropped();
}

/// Until a place is tried again, or a connection has not become a link in time.
int Links::poll_limit() const {
  std::optional<Clock::time_point> next = listener_.paused_until();
  const auto consider = [&](Clock::time_point time) { next = next ? std::min(*next, time) : time; };
  for (const auto& [text, place] : places_) {
    if (!place.is_busy) {
      consider(place.next);
    }
    if (place.is_seed && !place.is_reached && !place.is_told) {
      consider(place.silent_since + kSilenceLimit);
    }
  }
  for (const auto& connection : connections_) {
    if (connection->state != State::kLinked) {
      consider(connection->deadline);
    }
  }
  if (!next) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void Links::handle(Connection& connection, short events) {
  if (connection.dropped) {
    return;  // by one that was handled before
  }
  bool goes_on = false;
  try {
    goes_on = go_on(connection, events);
  } catch (const std::bad_alloc&) {
    // It is made again, or the other side makes it again.
  }
  if (!goes_on) {
    drop(connection);
  }
}

bool Links::go_on(Connection& connection, short events) {
  if (connection.state != State::kLinked && Clock::now() >= connection.deadline) {
    return false;
  }
  if (events == 0) {
    return true;
  }
  if (connection.state == State::kConnecting) {
    return connection.finish_connecting() && greet(connection);
  }
  const bool alive = connection.read();
  return take_frames(connection) && alive && connection.write();
}

void Links::accept() {
  // Those that were dropped have descriptors, too.
  erase_dropped();
  // An Error begins a pause.
  static_cast<void>(listener_.accept([this](base::UniqueFd socket, const Endpoint& from) {
    make_room();
    connections_.push_back(std::make_unique<Connection>(std::move(socket), from, false, Clock::now() + kGreetingLimit));
  }));
}

/// For another connection that has not proved itself.
void Links::make_room() {
  std::vector<wire::Stranger> strangers;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    const Connection& one = *connections_[i];
    if (!one.dropped && !one.outgoing && one.state < State::kAdmitted) {
      strangers.push_back({&one.place, one.state == State::kProving});
      places.push_back(i);
    }
  }
  if (strangers.size() < kMostStrangers) {
    return;
  }
  const auto gone = connections_.begin() + static_cast<std::ptrdiff_t>(places[place_to_free(strangers)]);
  drop(**gone);
  connections_.erase(gone);  // its descriptor, before the next one comes
}

void Links::take_orders() {
  std::vector<std::uint64_t> welcome_sessions;
  std::vector<Order> drop_sessions;
  {
    const std::lock_guard lock(mutex_);
    if (seeds_.empty()) {  // else there was no memory for them
      seeds_.swap(new_seeds_);
    }
    welcome_sessions.swap(to_welcome_);
    drop_sessions.swap(to_drop_);
  }
  for (const auto& connection : connections_) {
    const auto dropped = std::find_if(drop_sessions.begin(), drop_sessions.end(),
                                      [&](const Order& order) { return order.session == connection->session; });
    if (dropped != drop_sessions.end()) {
      drop(*connection, dropped->pause);
    }
  }
  for (const auto& connection : connections_) {
    const bool comes = !connection->dropped && std::find(welcome_sessions.begin(), welcome_sessions.end(),
                                                         connection->session) != welcome_sessions.end();
    bool is_linked = !comes;
    try {
      is_linked = is_linked || welcome(*connection);
    } catch (const std::bad_alloc&) {
      // The other side makes it again.
    }
    if (!is_linked) {
      drop(*connection);
    }
  }
  for (; !seeds_.empty(); seeds_.pop_back()) {
    add_place(seeds_.back(), Source::kProgram);
  }
  erase_dropped();
}

void Links::add_place(const Endpoint& endpoint, Source source) {
  const std::string text = endpoint.text();
  if (text == place_.text()) {
    return;
  }
  if (places_.size() >= kMostPlaces && !places_.contains(text)) {
    if (source == Source::kOther) {
      return;
    }
    forget_place();
  }
  LinkTarget& place = places_[text];
  place.endpoint = endpoint;
  if (source == Source::kProgram && !std::exchange(place.is_seed, true)) {
    place.silent_since = Clock::now();
  }
  place.failures = 0;
  if (!place.is_busy) {
    place.next = Clock::now();
  }
}

/// Makes room for a place of which more is known: one member alone could fill the table with places that others say.
/// Seeds stay, and places with a connection, of which there are few. The first to go has never been linked, and has
/// failed most often.
void Links::forget_place() {
  auto least = places_.end();
  for (auto one = places_.begin(); one != places_.end(); ++one) {
    const LinkTarget& place = one->second;
    if (place.is_seed || place.is_busy) {
      continue;
    }
    const auto worth = [](const LinkTarget& of) {
      return std::tuple(of.was_linked, !of.was_tried, -static_cast<int>(of.failures));
    };
    if (least == places_.end() || worth(place) < worth(least->second)) {
      least = one;
    }
  }
  if (least != places_.end()) {
    places_.erase(least);
  }
}

void Links::try_places() {
  const auto now = Clock::now();
  listener_.resume(now);
  for (auto& [text, place] : places_) {
    if (place.is_busy || now < place.next) {
      continue;
    }
    const bool may = count(true, true) + count(true, false) < kMostLinks;
    if (auto connection = may ? Connection::connect(place.endpoint, now + kGreetingLimit) : nullptr) {
      connections_.push_back(std::move(connection));
      place.is_busy = true;
    } else {
      place.was_tried = true;
      place.next = now + kLongestRetry;
    }
  }
}

void Links::tell_joined() {
  const bool all =
      std::all_of(places_.begin(), places_.end(), [](const auto& place) { return place.second.was_tried; });
  const std::lock_guard lock(mutex_);
  if (all && seeds_.empty() && new_seeds_.empty() && !joined_) {
    joined_ = true;
    joined_changed_.notify_all();
  }
}

void Links::tell_unreachable() {
  const auto now = Clock::now();
  std::uint64_t unreachable = 0;
  for (auto& [text, place] : places_) {
    if (!place.is_seed || place.is_reached || now < place.silent_since + kSilenceLimit) {
      continue;
    }
    ++unreachable;
    if (!std::exchange(place.is_told, true)) {
      log(LogLevel::kWarn,
          "shmem: exchange %s: no member has answered at %s for %d s (%s); this member goes on trying. Is one started "
          "there, and is the port open on the way?",
          self_.exchange.c_str(), text.c_str(), static_cast<int>(kSilenceLimit.count()),
          place.why.empty() ? "no answer" : place.why.c_str());
    }
  }
  counters_.unreachable.store(unreachable, std::memory_order_relaxed);
}

void Links::note_reached(const Connection& connection) {
  if (LinkTarget* const place = find_place(connection)) {
    place->is_reached = true;
    place->is_told = false;
  }
}

std::size_t Links::count(bool outgoing, bool proved) const {
  return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(), [&](const auto& one) {
    return !one->dropped && one->outgoing == outgoing && (one->state >= State::kAdmitted) == proved;
  }));
}

LinkConnection* Links::find_member(std::uint64_t member, bool outgoing) const {
  const auto found = std::find_if(connections_.begin(), connections_.end(), [&](const auto& one) {
    return !one->dropped && one->outgoing == outgoing && one->state >= State::kAdmitted && one->member == member;
  });
  return found != connections_.end() ? found->get() : nullptr;
}

/// The end of a connection, and of its link.
void Links::drop(Connection& connection, std::chrono::milliseconds pause) {
  connection.dropped = true;
  connection.pause = pause;
  if (!connection.outgoing && connection.state == State::kProving) {
    add(counters_.refused);  // it has got a proof of the secret, and has given none
  }
  forget(connection);
}

void Links::erase_dropped() {
  for (const auto& connection : connections_) {
    if (connection->dropped && !connection->is_forgotten) {
      forget(*connection);
    }
  }
  std::erase_if(connections_, [](const auto& connection) { return connection->dropped; });
}

void Links::forget(Connection& connection) {
  if (connection.state >= State::kAdmitted) {
    (connection.outgoing ? handlers_.owner_left : handlers_.reader_left)(connection.session);
  }
  if (connection.outgoing) {
    if (LinkTarget* const place = find_place(connection)) {
      leave_place(connection, *place);
    }
  }
  connection.is_forgotten = true;
}

void Links::leave_place(const Connection& connection, LinkTarget& place) {
  place.why = connection.failure;
  place.is_busy = false;
  place.was_tried = true;
  if (!connection.declined && std::exchange(place.is_reached, false)) {
    place.silent_since = Clock::now();
  }
  place.failures = connection.state == State::kLinked ? 0 : place.failures + 1;
  // If it was linked, the member may still live, or be started again.
  const auto usual =
      std::min<std::chrono::milliseconds>(kLongestRetry, kFirstRetry * (1U << std::min(place.failures, 4U)));
  place.next = std::max(place.next, Clock::now() + std::max(usual, connection.pause));
  if (!place.is_seed && place.failures >= kMostFailures) {
    std::erase_if(places_, [&place](const auto& one) { return &one.second == &place; });
  }
}

}  // namespace shmem::exchange
