// SPDX-License-Identifier: Apache-2.0
#include "kv/service/members.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "shmem/config/log.hpp"

namespace shmem::exchange {
namespace {

/// Connections to this member: one of each other member, and a few that have not said hello.
constexpr std::size_t kMostReaders = kMostMembers + 16;
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
    add(members.wake_.get());
    add(members.pause_ ? -1 : members.listener_.fd());
    for (const auto& reader : members.readers_) {
      add(reader->channel.fd());
    }
    for (const auto& pending : members.pending_) {
      add(pending.channel.fd());
    }
    for (const auto& peer : members.by_seat_) {
      add(peer != nullptr ? peer->fd() : -1);
    }
  }

  void wait(int limit_ms) {
    if (::poll(waiting_.data(), waiting_.size(), limit_ms) <= 0) {
      for (auto& waiting : waiting_) {
        waiting.revents = 0;
      }
    }
  }

  [[nodiscard]] bool of_listener() const { return at(1); }
  [[nodiscard]] bool of_reader(std::size_t i) const { return at(readers_ + i); }
  [[nodiscard]] std::size_t readers() const { return pending_ - readers_; }
  [[nodiscard]] bool of_pending(std::size_t i) const { return at(pending_ + i); }
  [[nodiscard]] std::size_t pending() const { return peers_ - pending_; }
  [[nodiscard]] bool of_peer(std::size_t seat) const { return at(peers_ + seat); }

 private:
  void add(int fd) { waiting_.push_back({.fd = fd, .events = POLLIN, .revents = 0}); }
  [[nodiscard]] bool at(std::size_t i) const { return waiting_[i].revents != 0; }

  std::size_t readers_, pending_, peers_;  // the first of each
  std::vector<pollfd> waiting_;
};

Result<std::unique_ptr<Members>> Members::open(const std::string& exchange, const Self& self,
                                               std::chrono::milliseconds limit, Counters& counters) {
  auto listener = Listener::open(exchange);
  if (!listener) {
    return listener.error();
  }
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) {
    return fail_errno(errno, fmt::format("cannot open exchange {}: eventfd", exchange));
  }
  std::unique_ptr<Members> members(new Members(exchange, self, *std::move(listener), std::move(wake), counters));
  auto thread = HelperThread::start([&here = *members] { here.run(); });
  if (!thread) {
    return thread.error();
  }
  members->thread_ = *std::move(thread);
  std::unique_lock lock(members->joined_mutex_);
  members->joined_changed_.wait_for(lock, limit, [&] { return members->joined_; });
  return members;
}

Members::Members(std::string exchange, const Self& self, Listener listener, base::UniqueFd wake, Counters& counters)
    : exchange_(std::move(exchange)),
      self_(self),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      counters_(counters) {}

Members::~Members() {
  stop_.store(true, std::memory_order_relaxed);
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

Message Members::message(Kind kind, std::uint32_t number) const {
  Message message;
  message.kind = kind;
  message.member = self_.id;
  message.number = number;
  return message;
}

void Members::run() {
  for (std::uint32_t seat = 0; seat < kMostMembers; ++seat) {
    attach(seat);
  }
  // Relaxed: the eventfd wakes this thread, which looks again.
  while (!stop_.load(std::memory_order_relaxed)) {
    if (pending_.empty()) {
      tell_joined();
    }
    Events events(*this);  // no other thread changes what is in the lists, or a peer
    events.wait(pause_ || !later_.empty() ? static_cast<int>(kPause.count()) : -1);
    pause_ = false;
    read_peers(events);
    read_pending(events);
    read_readers(events);
    if (events.of_listener()) {
      accept();
    }
    attach_waiting();
  }
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
      exchange_.c_str(), static_cast<int>(pid), where.c_str());
}

// ---- As a reader ----

void Members::attach(std::uint32_t seat) {
  const auto waits = [seat](const Pending& pending) { return pending.seat == seat; };
  if (seat >= kMostMembers || seat == this->seat() || by_seat_[seat] != nullptr ||
      std::any_of(pending_.begin(), pending_.end(), waits)) {
    return;
  }
  auto channel = Channel::connect(exchange_, seat);
  if (channel && channel->send(message(Kind::kHello, this->seat())) == std::errc{}) {
    pending_.push_back({*std::move(channel), seat, {}});
  } else if (!channel && channel.error().code == std::errc::permission_denied) {
    add(counters_.refused);
  } else if (!channel && channel.error().code != std::errc::connection_refused) {
    attach_later(seat);
  }
}

void Members::attach_later(std::uint32_t seat) {
  if (later_.empty()) {
    retry_ = std::chrono::steady_clock::now() + kPause;
  }
  if (std::find(later_.begin(), later_.end(), seat) == later_.end()) {
    later_.push_back(seat);
  }
}

void Members::attach_waiting() {
  auto seats = std::exchange(wanted_, {});
  if (!later_.empty() && std::chrono::steady_clock::now() >= retry_) {
    seats.insert(seats.end(), later_.begin(), later_.end());
    later_.clear();
  }
  for (const std::uint32_t seat : seats) {
    attach(seat);
  }
}

void Members::set_peer(std::uint32_t seat, std::shared_ptr<Peer> peer) {
  if (std::shared_ptr<Peer> gone = std::exchange(by_seat_[seat], std::move(peer)); gone != nullptr) {
    disposal_.add(std::move(gone));  // now: the last list that has it may be a call's
  }
  PeerList list;
  std::copy_if(by_seat_.begin(), by_seat_.end(), std::back_inserter(list),
               [](const auto& one) { return one != nullptr; });
  auto peers = std::make_shared<const PeerList>(std::move(list));
  const std::lock_guard lock(peers_mutex_);
  peers_.swap(peers);
}

void Members::read_peers(const Events& events) {
  for (std::uint32_t seat = 0; seat < kMostMembers; ++seat) {
    if (!events.of_peer(seat) && (by_seat_[seat] == nullptr || by_seat_[seat]->is_alive())) {
      continue;
    }
    const auto error = by_seat_[seat]->is_alive() ? by_seat_[seat]->receive() : std::errc::connection_reset;
    if (error != std::errc{}) {
      note_refusal(error, by_seat_[seat]->pid(), seat);
      set_peer(seat, nullptr);
      attach_later(seat);  // if it lives, or another one has taken its seat
    }
  }
}

/// Keeps the regions before it. Nothing: it has not come yet.
std::errc Members::receive_answer(Pending& pending, std::optional<Received>& answer) {
  for (;;) {
    std::optional<Received> received;
    const auto error = pending.channel.receive(received);
    if (error != std::errc{} || !received || received->message.kind != Kind::kRegion) {
      answer = std::move(received);
      return error;
    }
    if (pending.regions.size() == kMostRegions) {
      return std::errc::protocol_error;
    }
    pending.regions.push_back(*std::move(received));
  }
}

void Members::read_pending(const Events& events) {
  std::vector<Pending> rest;
  for (std::size_t i = 0; i < events.pending(); ++i) {
    Pending& pending = pending_[i];
    std::optional<Received> received;
    const auto error = events.of_pending(i) ? receive_answer(pending, received) : std::errc{};
    if (error != std::errc{}) {
      note_refusal(error, pending.channel.peer(), pending.seat);
      attach_later(pending.seat);
      continue;
    }
    if (!received) {
      rest.push_back(std::move(pending));
      continue;
    }
    auto peer = Peer::open(std::move(pending.channel), pending.seat, *std::move(received), std::move(pending.regions),
                           disposal_);
    if (!peer || (*peer)->receive() != std::errc{}) {
      add(counters_.refused);
      attach_later(pending.seat);
      continue;
    }
    set_peer(pending.seat, *std::move(peer));
  }
  pending_ = std::move(rest);
}

// ---- As the owner of blocks ----

void Members::accept() {
  std::uint64_t refused = 0;
  bool came = false;
  while (auto channel = listener_.accept(refused)) {
    came = true;
    const std::lock_guard lock(readers_mutex_);
    if (make_room()) {
      readers_.push_back(std::make_unique<Reader>(Reader{*std::move(channel), nullptr}));
    } else {
      ++refused;
    }
  }
  add(counters_.refused, refused);
  // Without descriptors the connection stays, and poll() would return at once.
  pause_ = !came && refused == 0;
}

/// REQUIRES: readers_mutex_. Those that connect and say nothing give way, the oldest first.
bool Members::make_room() {
  if (readers_.size() < kMostReaders) {
    return true;
  }
  const auto silent =
      std::find_if(readers_.begin(), readers_.end(), [](const auto& reader) { return reader->board == nullptr; });
  if (silent == readers_.end()) {
    return false;
  }
  readers_.erase(silent);
  return true;
}

void Members::read_readers(const Events& events) {
  const std::lock_guard lock(readers_mutex_);
  for (std::size_t i = 0; i < events.readers(); ++i) {
    if (events.of_reader(i) && !answer(*readers_[i])) {
      readers_[i].reset();  // its leases end
    }
  }
  std::erase(readers_, nullptr);
}

/// False: the connection is over.
bool Members::answer(Reader& reader) {
  std::optional<Received> received;
  const auto error = reader.channel.receive(received);
  if (error == std::errc{} && !received) {
    return true;
  }
  if (error == std::errc{} && received->message.kind == Kind::kHello && reader.board == nullptr) {
    // A member that has come after this one, which it wants to know.
    wanted_.push_back(received->message.number);
    return welcome(reader);
  }
  note_refusal(error, reader.channel.peer(), std::nullopt);
  if (error == std::errc::protocol_not_supported) {
    reader.channel.send(message(Kind::kGone, 0));  // whatever it says there: its version tells the other member
  }
  return false;
}

bool Members::welcome(Reader& reader) {
  auto board = LeaseBoard::create(self_.quota);
  if (!board) {
    return false;
  }
  reader.board = std::make_unique<LeaseBoard>(*std::move(board));
  Message answer = message(Kind::kWelcome, self_.slots);
  answer.quota = self_.quota;
  answer.lease_ms = self_.lease_ms;
  const std::array<int, 2> files{self_.directory, reader.board->file()};
  // The regions come first, so that a reader that has the directory has the memory of every block in it.
  const bool sent = std::all_of(regions_.begin(), regions_.end(),
                                [&](const auto& region) { return send_region(reader, region.first, region.second); }) &&
                    reader.channel.send(answer, files) == std::errc{};
  reader.board->handed_over();
  return sent;
}

bool Members::send_region(Reader& reader, std::uint32_t number, const Region& region) {
  Message news = message(Kind::kRegion, number);
  news.offset = region.range.offset;
  news.bytes = region.range.bytes;
  const int file = region.file.get();
  return reader.channel.send(news, {&file, 1}) == std::errc{};
}

// A reader that does not take its messages loses the connection, by which it notices; its end is seen here as well.

void Members::add_region(std::uint32_t number, base::UniqueFd file, const Range& range) {
  const std::lock_guard lock(readers_mutex_);
  const Region& region = regions_[number] = {std::move(file), range};
  for (const auto& reader : readers_) {
    if (reader->board != nullptr && !send_region(*reader, number, region)) {
      ::shutdown(reader->channel.fd(), SHUT_RDWR);
    }
  }
}

void Members::remove_region(std::uint32_t number) {
  const std::lock_guard lock(readers_mutex_);
  regions_.erase(number);
  for (const auto& reader : readers_) {
    if (reader->board != nullptr && reader->channel.send(message(Kind::kGone, number)) != std::errc{}) {
      ::shutdown(reader->channel.fd(), SHUT_RDWR);
    }
  }
}

std::map<std::uint32_t, Members::Region> Members::regions() const {
  const std::lock_guard lock(readers_mutex_);
  std::map<std::uint32_t, Region> copies;
  for (const auto& [number, region] : regions_) {
    copies[number] = {base::UniqueFd(::fcntl(region.file.get(), F_DUPFD_CLOEXEC, 0)), region.range};
  }
  return copies;
}

bool Members::is_leased(std::uint32_t slot, std::uint32_t now) const {
  const std::lock_guard lock(readers_mutex_);
  return std::any_of(readers_.begin(), readers_.end(),
                     [&](const auto& reader) { return reader->board != nullptr && reader->board->has(slot, now); });
}

std::size_t Members::reader_count() const {
  const std::lock_guard lock(readers_mutex_);
  return static_cast<std::size_t>(
      std::count_if(readers_.begin(), readers_.end(), [](const auto& reader) { return reader->board != nullptr; }));
}

}  // namespace shmem::exchange
