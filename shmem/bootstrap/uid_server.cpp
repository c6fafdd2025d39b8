// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/uid_server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <thread>

#include "wire/strangers.hpp"

namespace shmem {

namespace {

using std::chrono::milliseconds;

/// A PE identifies itself right after connecting. A connection that does not is dropped after this time.
constexpr milliseconds kHelloLimit{5000};
/// How long the server of a failed job stays, for PEs that still connect and for PEs that do not leave.
constexpr milliseconds kFailedLimit{3000};
/// How long no connection is accepted after this process has run out of file descriptors.
constexpr milliseconds kAcceptPause{50};
/// After a turn for which there was no memory.
constexpr milliseconds kMemoryPause{10};
/// The most bytes of a PE's frame.
constexpr std::size_t kMostOfAPe = std::size_t{64} << 20;
/// The most connections that have not identified themselves, in addition to the number of PEs.
constexpr std::size_t kMostOthers = 64;

Result<void> check_descriptors(int size) {
  rlimit limit{};
  const auto needed = static_cast<rlim_t>(size) + 32;  // for the program's own files
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < needed) {
    return fail(std::errc::too_many_files_open,
                fmt::format("shmem: a job of {} PEs takes {} open files in the process that the others connect to; "
                            "raise its limit of {} (ulimit -n)",
                            size, needed, limit.rlim_cur));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<UidServer>> UidServer::start(base::UniqueFd listener, const UidJobState::Job& job) {
  if (auto enough = check_descriptors(job.size); !enough) {
    return enough.error();
  }
  base::UniqueFd poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll) {
    return fail_errno(errno, "shmem: cannot serve the job: epoll_create1");
  }
  base::UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) {
    return fail_errno(errno, "shmem: cannot serve the job: eventfd");
  }
  for (const int descriptor : {listener.get(), wake.get()}) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
      return fail_errno(errno, "shmem: cannot serve the job: epoll_ctl");
    }
  }
  std::unique_ptr<UidServer> server(new UidServer(std::move(listener), std::move(poll), std::move(wake), job));
  auto thread = base::HelperThread::start([raw = server.get()] { raw->run(); });
  if (!thread) {
    return thread.error();
  }
  server->thread_ = *std::move(thread);
  return server;
}

UidServer::UidServer(base::UniqueFd listener, base::UniqueFd poll, base::UniqueFd wake, const UidJobState::Job& job)
    : limit_(job.limit),
      most_strangers_(static_cast<std::size_t>(job.size) + kMostOthers),
      poll_(std::move(poll)),
      wake_(std::move(wake)),
      listener_(std::move(listener), kAcceptPause),
      state_(job, Clock::now()),
      descriptors_(static_cast<std::size_t>(job.size), -1) {}

UidServer::~UidServer() {
  if (!thread_.runs_here()) {
    return;
  }
  finishing_.store(true, std::memory_order_release);  // pairs with the load in go_on()
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void UidServer::abort(int status, const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  abort_ = {status, reason};
  ::eventfd_write(wake_.get(), 1);
}

void UidServer::take_abort() {
  const std::scoped_lock lock(mutex_);
  if (abort_) {
    state_.abort(-1, abort_->status, abort_->reason);
    abort_.reset();
  }
}

void UidServer::flush(milliseconds limit) {
  std::unique_lock lock(mutex_);
  flush_wanted_ = true;
  ::eventfd_write(wake_.get(), 1);
  changed_.wait_for(lock, limit, [this] { return !flush_wanted_; });
}

void UidServer::run() {
  while (true) {
    try {
      if (!go_on()) {
        return;
      }
      take_turn();
    } catch (const std::bad_alloc&) {
      // What is not done yet is done in a later turn.
      if (last_ && Clock::now() >= *last_) {
        return;
      }
      std::this_thread::sleep_for(kMemoryPause);
    }
  }
}

void UidServer::take_turn() {
  std::array<epoll_event, 64> events{};
  const int ready = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), poll_time());
  bool more_come = false;
  for (int i = 0; i < ready; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const auto found = connections_.find(event.data.fd);
    if (event.data.fd == wake_.get()) {
      eventfd_t count = 0;
      ::eventfd_read(wake_.get(), &count);
    } else if (event.data.fd == listener_.fd()) {
      more_come = true;
    } else if (found != connections_.end()) {
      if ((event.events & EPOLLOUT) != 0) {
        found->second.frames.write();  // if it fails, read() says why
        watch(found->second);
      }
      if ((event.events & ~static_cast<unsigned>(EPOLLOUT)) != 0) {
        read(found->second);
      }
    }
  }
  drop_short();
  // Last: a PE that came in the turn before has been heard, and is not one of those that have said nothing, who make
  // room for those that come now.
  if (more_come) {
    accept_some();
  }
  enter_early();
  drop_silent();
  resume_accepting();
  state_.expire(Clock::now());
  take_abort();
  deliver();
  report_flushed();
}

template <typename Work>
void UidServer::serve(Connection& connection, Work work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    connection.is_short = true;
    has_short_ones_ = true;
  }
}

void UidServer::drop_short() {
  while (has_short_ones_) {
    const auto found = std::ranges::find_if(connections_, [](const auto& one) { return one.second.is_short; });
    has_short_ones_ = found != connections_.end();
    if (has_short_ones_) {
      drop(found->first, "there was no memory for its messages");
    }
  }
}

bool UidServer::go_on() {
  if (state_.complete() && !state_.may_start_again()) {
    listener_.close();
  }
  if (!finishing_.load(std::memory_order_acquire)) {
    return true;  // pairs with the store in ~UidServer()
  }
  if (at_once_) {
    return false;
  }
  const auto now = Clock::now();
  if (!last_) {
    last_ = now + (in_order_ && !state_.failed() ? limit_ : kFailedLimit);
  }
  if (!in_order_ && !state_.failed()) {
    state_.fail_all(
        {std::errc::connection_aborted, "shmem: the process that the job's PEs are connected to has given up"});
    deliver();
  }
  return now < *last_ && (!state_.complete() || !connections_.empty());
}

int UidServer::poll_time() const {
  auto next = Clock::now() + std::chrono::hours(1);
  if (const auto deadline = state_.deadline()) {
    next = std::min(next, *deadline);
  }
  if (last_) {
    next = std::min(next, *last_);
  }
  if (const auto paused_until = listener_.paused_until()) {
    next = std::min(next, *paused_until);
  }
  for (const int descriptor : strangers_) {
    next = std::min(next, connections_.at(descriptor).since + kHelloLimit);
  }
  if (has_short_ones_) {
    next = Clock::now();
  }
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::now());
  return static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
}

void UidServer::accept_some() {
  const int listener = listener_.fd();
  const auto accepted = listener_.accept([this](base::UniqueFd socket, const Endpoint& from) {
    make_room();  // now: in a flood the strangers that give way would take all descriptors until the end of the turn
    const int descriptor = socket.get();
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
      return;
    }
    Connection& connection =
        connections_
            .emplace(descriptor, Connection{.frames = wire::Connection(std::move(socket), sizeof(Hello)),
                                            .from = from,
                                            .since = Clock::now()})
            .first->second;
    serve(connection, [&] { strangers_.push_back(descriptor); });
  });
  if (!accepted) {
    state_.refuse("the latest connections", accepted.error().text);
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, listener, nullptr);
  }
}

void UidServer::make_room() {
  if (strangers_.size() < most_strangers_) {
    return;
  }
  std::vector<wire::Stranger> strangers;
  strangers.reserve(strangers_.size());
  for (const int descriptor : strangers_) {
    const Connection& connection = connections_.at(descriptor);
    strangers.push_back({&connection.from, connection.hello.has_value()});
  }
  drop(strangers_[place_to_free(strangers)], "it was one of too many that had not identified themselves");
}

void UidServer::read(Connection& connection) {
  serve(connection, [&] {
    if (const std::string end = read_frames(connection); !end.empty()) {
      drop(connection.frames.fd(), end);
    }
  });
}

std::string UidServer::read_frames(Connection& connection) {
  const bool answered = connection.closing;
  if (auto came = connection.frames.read(!answered); !came) {
    return came.error().text;
  }
  while (!connection.closing) {
    auto frame = connection.frames.next();
    if (!frame) {
      return frame.error().text;
    }
    if (!*frame) {
      return "";
    }
    take(connection, **frame);
  }
  return "";
}

void UidServer::take(Connection& connection, const Frame& frame) {
  if (connection.pe >= 0) {
    return state_.receive(connection.pe, frame, Clock::now());
  }
  if (connection.early) {
    return;  // a PE says nothing more before it hears that it has joined
  }
  return connection.hello ? admit(connection, frame) : challenge(connection, frame);
}

void UidServer::challenge(Connection& connection, const Frame& frame) {
  connection.hello = frame.head<Hello>();
  if (!connection.hello || frame.type != UidFrame::kHello) {
    state_.refuse(connection.from.text(), "it did not identify itself");
    connection.closing = true;
    return;
  }
  Nonce nonce{};
  if (auto random = fill_randomly(nonce, "the start of the job"); !random) {
    return turn_away(connection, random.error());
  }
  connection.challenge = state_.challenge(*connection.hello, nonce);
  send(connection, encode(UidFrame::kChallenge, 0, std::as_bytes(std::span(&connection.challenge, 1))));
  connection.frames.seal(state_.seals(Prover::kServer, *connection.hello, connection.challenge));
}

void UidServer::admit(Connection& connection, const Frame& frame) {
  const auto proof = frame.head<Proof>();
  if (frame.type == UidFrame::kDecline || !proof || frame.type != UidFrame::kProof) {
    state_.refuse_stranger(*connection.hello, connection.from.text());
    connection.closing = true;
    return;
  }
  if (auto admitted = state_.admit(*connection.hello, connection.challenge, *proof, connection.from.text());
      !admitted) {
    return turn_away(connection, admitted.error());
  }
  connection.frames.require(state_.seals(Prover::kPe, *connection.hello, connection.challenge));
  if (state_.is_early(*connection.hello)) {
    connection.early = true;
    std::erase(strangers_, connection.frames.fd());
    early_.push_back(connection.frames.fd());
    return;
  }
  enter(connection);
}

void UidServer::enter_early() {
  if (early_.empty() || (!state_.failed() && !state_.start_again())) {
    return;
  }
  if (!state_.failed()) {
    std::fill(descriptors_.begin(), descriptors_.end(), -1);  // connections of the last start may still be open
  }
  for (const int descriptor : std::exchange(early_, {})) {
    Connection& connection = connections_.at(descriptor);
    connection.early = false;
    serve(connection, [&] {
      strangers_.push_back(descriptor);
      if (state_.failed()) {
        turn_away(connection, state_.failure());
      } else {
        enter(connection);
      }
    });
  }
}

void UidServer::enter(Connection& connection) {
  const auto pe = state_.join(*connection.hello, connection.from.text(), Clock::now());
  if (!pe) {
    return turn_away(connection, pe.error());
  }
  connection.pe = *pe;
  std::erase(strangers_, connection.frames.fd());
  connection.frames.allow(kMostOfAPe);
  descriptors_[static_cast<std::size_t>(*pe)] = connection.frames.fd();
}

void UidServer::turn_away(Connection& connection, const Error& why) {
  send(connection, encode(why));
  connection.closing = true;
}

void UidServer::send(Connection& connection, const FrameBytes& bytes) {
  connection.frames.send(bytes);  // if it fails, read() says why
  watch(connection);
}

void UidServer::watch(const Connection& connection) {
  const unsigned events = EPOLLIN | (connection.frames.unsent() > 0 ? static_cast<unsigned>(EPOLLOUT) : 0U);
  epoll_event event{.events = events, .data = {.fd = connection.frames.fd()}};
  ::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, connection.frames.fd(), &event);
}

void UidServer::drop(int descriptor, const std::string& why) {
  const auto found = connections_.find(descriptor);
  const Connection& connection = found->second;
  if (connection.pe >= 0) {
    int& current = descriptors_[static_cast<std::size_t>(connection.pe)];
    if (current == descriptor) {  // else the PE has started again
      state_.lose(connection.pe, why);
      current = -1;
    }
  } else {
    if (!connection.closing) {
      state_.refuse(connection.from.text(), why);
    }
    std::erase(strangers_, descriptor);
    std::erase(early_, descriptor);
  }
  connections_.erase(found);
}

void UidServer::drop_silent() {
  const auto now = Clock::now();
  const std::vector<int> strangers(strangers_.begin(), strangers_.end());
  for (const int descriptor : strangers) {
    const Connection& connection = connections_.at(descriptor);
    const bool answered = connection.closing && connection.frames.unsent() == 0;
    const bool too_late = state_.complete() && !state_.may_start_again() && !connection.closing;
    if (answered || too_late || now >= connection.since + kHelloLimit) {
      drop(descriptor, "it did not identify itself");
    }
  }
}

void UidServer::resume_accepting() {
  if (listener_.resume(Clock::now())) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = listener_.fd()}};
    ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, listener_.fd(), &event);
  }
}

void UidServer::deliver() {
  for (const UidJobState::Message& message : state_.take_messages()) {
    const auto found = connections_.find(descriptors_[static_cast<std::size_t>(message.pe)]);
    if (found != connections_.end()) {
      serve(found->second, [&] { send(found->second, message.bytes); });
    }
  }
}

void UidServer::report_flushed() {
  const std::scoped_lock lock(mutex_);
  if (!flush_wanted_) {
    return;
  }
  const auto unsent = [](const auto& one) { return one.second.frames.unsent() > 0; };
  if (std::any_of(connections_.begin(), connections_.end(), unsent)) {
    return;
  }
  flush_wanted_ = false;
  changed_.notify_all();
}

}  // namespace shmem
