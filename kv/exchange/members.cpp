// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/members.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <functional>
#include <new>
#include <thread>
#include <utility>

#include "shmem/config/log.hpp"

namespace shmem::exchange {
namespace {

/// Between attempts at what has failed: a member with too many waiting, no descriptors left.
constexpr std::chrono::milliseconds kPause{200};
/// Members with other versions that a member warns of.
constexpr std::size_t kMostWarnings = 64;

}  // namespace

/// What poll() waits for: readers before peers. A member that was restarted says hello after its last process has
/// ended, so a member that receives the hello can also see that end.
class Members::Events {
 public:
  explicit Events(const Members& members)
      : readers_(2), pending_(readers_ + members.readers_.size()), peers_(pending_ + members.pending_.size()) {
    waiting_.reserve(peers_ + kMostMembers);
    add(members.wake_.get(), POLLIN);
    add(members.own_seat_.socket.fd(), POLLIN);
    for (std::size_t i = 0; i < members.readers_.size(); ++i) {
      add(members.readers_.fd(i), POLLIN);
    }
    // Also without events, poll() tells of the end of a connection.
    const short of_files = members.starved_ ? 0 : POLLIN;
    for (const auto& pending : members.pending_) {
      add(pending.channel.fd(), of_files);
    }
    for (std::uint32_t seat = 0; seat < kMostMembers; ++seat) {
      if (const auto& peer = members.by_seat_[seat]) {
        of_seat_[seat] = waiting_.size();
        add(peer->fd(), of_files);
      }
    }
  }

  void wait(int limit_ms) {
    const int count = ::poll(waiting_.data(), waiting_.size(), limit_ms);
    if (count > 0) {
      return;
    }
    for (auto& waiting : waiting_) {
      waiting.revents = 0;
    }
    if (count < 0) {
      std::this_thread::sleep_for(kPause);  // EINVAL, ENOMEM: the next poll() fails at once, too
    }
  }

  [[nodiscard]] bool of_listener() const { return at(1); }
  [[nodiscard]] bool of_reader(std::size_t i) const { return at(readers_ + i); }
  [[nodiscard]] std::size_t readers() const { return pending_ - readers_; }
  [[nodiscard]] bool of_pending(std::size_t i) const { return at(pending_ + i); }
  [[nodiscard]] std::size_t pending() const { return peers_ - pending_; }
  [[nodiscard]] bool of_peer(std::size_t seat) const { return of_seat_[seat] != 0 && at(of_seat_[seat]); }

 private:
  void add(int fd, short events) { waiting_.push_back({.fd = fd, .events = events, .revents = 0}); }
  [[nodiscard]] bool at(std::size_t i) const { return waiting_[i].revents != 0; }

  std::size_t readers_, pending_, peers_;  // the first of each
  std::array<std::size_t, kMostMembers> of_seat_{};
  std::vector<pollfd> waiting_;
};

Result<std::unique_ptr<Members>> Members::open(const MeetingPlace& place, const Self& self,
                                               std::chrono::milliseconds limit, Counters& counters) {
  auto seat = SeatSocket::open(place);
  if (!seat) {
    return seat.error();
  }
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) {
    return fail_errno(errno, fmt::format("cannot open exchange {}: eventfd", place.exchange));
  }
  std::unique_ptr<Members> members(new Members(place, self, *std::move(seat), std::move(wake), counters));
  auto thread = base::HelperThread::start([&here = *members] { here.run(); });
  if (!thread) {
    return thread.error();
  }
  members->thread_ = *std::move(thread);
  std::unique_lock lock(members->joined_mutex_);
  members->joined_changed_.wait_for(lock, limit, [&] { return members->joined_; });
  return members;
}

Members::Members(MeetingPlace place, const Self& self, SeatSocket seat, base::UniqueFd wake, Counters& counters)
    : place_(std::move(place)),
      self_(self),
      own_seat_(std::move(seat)),
      wake_(std::move(wake)),
      counters_(counters),
      readers_(self, disposal_) {}

Members::~Members() {
  stop_.store(true, std::memory_order_relaxed);
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
  peers_.reset();
  for (auto& peer : by_seat_) {
    if (peer != nullptr) {
      peer->end();
      disposal_.add(std::move(peer));
    }
  }
  for (auto& offer : pending_) {
    end(std::move(offer));
  }
  // Connections that wait there may have messages with descriptors.
  own_seat_.socket.shut();
  disposal_.take(std::move(own_seat_));
}

// The other member sees the end at once, and what it has sent is closed where no call waits.

void Members::end(Channel channel) noexcept {
  channel.shut();
  disposal_.take(std::move(channel));
}

void Members::end(Offer offer) noexcept {
  offer.channel.shut();
  disposal_.take(std::move(offer));
}

void Members::run() {
  wanted_.fill(true);
  attach_waiting();
  // Relaxed: the eventfd wakes this thread, which looks again.
  while (!stop_.load(std::memory_order_relaxed)) {
    try {
      turn();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kPause);  // what could not be done is done in a later turn
    }
  }
}

void Members::turn() {
  if (pending_.empty()) {
    tell_joined();
  }
  const bool waits = std::find(later_.begin(), later_.end(), true) != later_.end();
  Events events(*this);  // no other thread changes what is in the lists, or a peer
  PlaceSocket& own = own_seat_.socket;
  events.wait(own.pauses() || starved_ || waits ? static_cast<int>(kPause.count()) : -1);
  own.end_pause();
  starved_ = false;
  read_peers(events);
  read_pending(events);
  read_readers(events);
  if (events.of_listener()) {
    add(counters_.refused,
        own.accept(disposal_, [this](base::UniqueFd& socket) { return readers_.add(Channel(std::move(socket))); }));
  }
  attach_waiting();
}

void Members::tell_joined() {
  const std::lock_guard lock(joined_mutex_);
  joined_ = true;
  joined_changed_.notify_all();
}

/// Counts a connection that failed for more than the end of the other member. A member with another version of libshmem
/// does nothing wrong, and only the people who run it can help: they are told, once for each process.
void Members::note_refusal(std::errc error, pid_t pid, std::optional<std::uint32_t> seat) {
  if (error == std::errc::connection_reset) {
    return;
  }
  add(counters_.refused);
  if (error != std::errc::protocol_not_supported || warned_of_.size() == kMostWarnings ||
      !warned_of_.insert(pid).second) {
    return;
  }
  const std::string where = seat ? fmt::format(" on seat {}", *seat) : std::string();
  log(LogLevel::kWarn,
      "shmem: exchange %s: the member in process %d%s has another version of libshmem: it and this member do not see "
      "each other; use the same version in all members",
      place_.exchange.c_str(), static_cast<int>(pid), where.c_str());
}

// ---- As a reader ----

void Members::attach(std::uint32_t seat) {
  bool attached = false;
  try {
    attached = try_to_attach(seat);
  } catch (const std::bad_alloc&) {
    // As without descriptors.
  }
  if (!attached) {
    attach_later(seat);
  }
}

/// False: try it again later.
bool Members::try_to_attach(std::uint32_t seat) {
  const auto waits = [seat](const Offer& offer) { return offer.seat == seat; };
  if (seat == this->seat() || by_seat_[seat] != nullptr || std::any_of(pending_.begin(), pending_.end(), waits)) {
    return true;
  }
  if (disposal_.is_behind()) {
    return false;
  }
  pending_.reserve(pending_.size() + 1);
  auto channel = Channel::connect(place_, seat);
  if (!channel) {
    return channel.error().code == std::errc::connection_refused;
  }
  if (!channel->is_our_user()) {
    add(counters_.refused);
    end(*std::move(channel));
    return true;
  }
  if (channel->send(self_.message(Kind::kHello, this->seat())) == std::errc{}) {
    pending_.push_back({.channel = *std::move(channel), .seat = seat});
  } else {
    end(*std::move(channel));
  }
  return true;
}

void Members::attach_later(std::uint32_t seat) noexcept {
  if (std::find(later_.begin(), later_.end(), true) == later_.end()) {
    retry_ = std::chrono::steady_clock::now() + kPause;
  }
  later_[seat] = true;
}

void Members::attach_waiting() {
  Seats seats = std::exchange(wanted_, {});
  if (std::chrono::steady_clock::now() >= retry_) {
    std::transform(seats.begin(), seats.end(), later_.begin(), seats.begin(), std::logical_or<>());
    later_.fill(false);
  }
  for (std::uint32_t seat = 0; seat < kMostMembers; ++seat) {
    if (seats[seat]) {
      attach(seat);
    }
  }
}

/// If there is no memory, nothing changes.
void Members::set_peer(std::uint32_t seat, std::shared_ptr<LocalPeer> peer) {
  PeerList list;
  list.reserve(kMostMembers);
  for (std::uint32_t one = 0; one < kMostMembers; ++one) {
    if (const auto& of_seat = one == seat ? peer : by_seat_[one]; of_seat != nullptr) {
      list.push_back(of_seat);
    }
  }
  auto peers = std::make_shared<const PeerList>(std::move(list));
  if (std::shared_ptr<LocalPeer> gone = std::exchange(by_seat_[seat], std::move(peer)); gone != nullptr) {
    disposal_.add(std::move(gone));  // now: the last list that has it may be a call's
  }
  const std::lock_guard lock(peers_mutex_);
  peers_.swap(peers);
}

void Members::read_peers(const Events& events) {
  for (std::uint32_t seat = 0; seat < kMostMembers; ++seat) {
    if (by_seat_[seat] == nullptr || (!events.of_peer(seat) && by_seat_[seat]->is_alive())) {
      continue;
    }
    const auto error = by_seat_[seat]->is_alive() ? by_seat_[seat]->receive() : std::errc::connection_reset;
    if (error == std::errc::too_many_files_open) {
      starved_ = true;
    } else if (error != std::errc{}) {
      note_refusal(error, by_seat_[seat]->pid(), seat);
      set_peer(seat, nullptr);
      attach_later(seat);  // if it lives, or another one has taken its seat
    }
  }
}

/// Keeps what has come.
Members::Answer Members::receive_answer(Offer& offer) {
  for (;;) {
    std::optional<Received> received;
    const auto error = offer.channel.receive(received);
    if (error == std::errc{} && !received) {
      return Answer::kNone;
    }
    if (error == std::errc{} && received->message.kind == Kind::kRegion && offer.regions.size() < kMostRegions) {
      offer.regions.push_back(*std::move(received));
      continue;
    }
    const bool is_region = error == std::errc{} && received->message.kind == Kind::kRegion;
    if (received) {
      offer.welcome = *std::move(received);
    }
    if (error == std::errc::too_many_files_open) {
      disposal_.take(std::exchange(offer.welcome, {}));
      starved_ = true;
      return Answer::kNone;
    }
    if (error == std::errc{} && !is_region) {
      return Answer::kComplete;
    }
    note_refusal(is_region ? std::errc::protocol_error : error, offer.channel.peer(), offer.seat);
    return Answer::kRefused;
  }
}

/// False: the member does not follow the protocol.
bool Members::attach_to(Offer& offer) {
  auto peer = LocalPeer::open(offer, disposal_);
  if (!peer) {
    add(counters_.refused);
    return false;
  }
  // Already before it is listed: a call that finds a block must find its memory.
  const auto error = (*peer)->receive();
  if (error != std::errc{} && error != std::errc::too_many_files_open) {
    add(counters_.refused);
    disposal_.add(*std::move(peer));
    return false;
  }
  set_peer(offer.seat, *std::move(peer));
  return true;
}

void Members::read_pending(const Events& events) {
  for (std::size_t i = events.pending(); i-- > 0;) {
    if (!events.of_pending(i)) {
      continue;
    }
    Offer& offer = pending_[i];
    Answer answer = Answer::kRefused;
    try {
      answer = receive_answer(offer);
      if (answer == Answer::kComplete && !attach_to(offer)) {
        answer = Answer::kRefused;
      }
    } catch (const std::bad_alloc&) {
      answer = Answer::kRefused;  // try it again
    }
    if (answer == Answer::kNone) {
      continue;
    }
    if (answer == Answer::kRefused) {
      attach_later(offer.seat);
    }
    end(std::move(offer));
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

// ---- As the owner of blocks ----

void Members::read_readers(const Events& events) {
  for (std::size_t i = events.readers(); i-- > 0;) {
    if (!events.of_reader(i)) {
      continue;
    }
    const Readers::Said said = readers_.read(i);
    if (said.seat && *said.seat < kMostMembers) {
      wanted_[*said.seat] = true;  // a member that has come after this one, which it wants to know
    }
    if (said.refusal != std::errc{}) {
      note_refusal(said.refusal, said.pid, std::nullopt);
    }
  }
}

}  // namespace shmem::exchange
