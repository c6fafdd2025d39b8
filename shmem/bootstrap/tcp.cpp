// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/tcp.hpp"
#include "shmem/log.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <thread>

#include "shmem/bootstrap/seconds_text.hpp"
#include "shmem/bootstrap/uid_socket.hpp"
#include "shmem/cores/wait.hpp"

namespace shmem {

namespace {

using std::chrono::milliseconds;

/// The server ends a step that takes too long and says for whom it waited; only when it does not is this added.
constexpr milliseconds kServerDelay{10'000};
/// How long ending a job waits for the others to be told.
constexpr milliseconds kTellLimit{2000};
/// Between two looks whether PE 0 listens by now.
constexpr milliseconds kRetryTime{50};
/// The most that all PEs together can say in a step.
constexpr std::size_t kMostOfAll = std::size_t{1} << 30;

std::uint32_t in_milliseconds(milliseconds time) {
  return static_cast<std::uint32_t>(std::clamp<milliseconds::rep>(time.count(), 1, UINT32_MAX));
}

Hello hello_of(const UniqueId& id, const TcpPlace& place) {
  Hello hello{id.secret, place.rank, place.size, ::getpid(), in_milliseconds(place.limit), {}};
  ::gethostname(hello.host.data(), hello.host.size() - 1);
  return hello;
}

bool nobody_listens(const Error& error) {
  return error.code == std::errc::connection_refused || error.code == std::errc::connection_reset;
}

}  // namespace

Result<std::unique_ptr<TcpBootstrap>> TcpBootstrap::join(const UniqueId& id, const TcpPlace& place,
                                                         std::optional<UidListener> listener) {
  std::unique_ptr<TcpBootstrap> self(new TcpBootstrap(id, place));
  if (listener) {
    auto server = UidServer::start(std::move(listener->socket), {.secret = id.secret,
                                                                 .size = place.size,
                                                                 .server = place.rank,
                                                                 .limit = place.limit,
                                                                 .place = id.place.text(),
                                                                 .how = listener->how});
    if (!server) return tl::make_unexpected(server.error());
    self->server_ = *std::move(server);
  }
  if (auto entered = self->enter(); !entered) return tl::make_unexpected(entered.error());
  return self;
}

TcpBootstrap::~TcpBootstrap() {
  disconnect();
  if (server_ && left_) server_->close();
}

Result<void> TcpBootstrap::enter() {
  const auto deadline = Clock::now() + place_.limit;
  for (;;) {
    auto entered = try_to_enter(deadline);
    if (entered) break;
    disconnect();
    const bool again = place_.patient && nobody_listens(entered.error()) && Clock::now() < deadline;
    if (!again) return entered;
    std::this_thread::sleep_for(kRetryTime);
  }
  return await(place_.limit + kServerDelay, [this] { return welcome_; });
}

Result<void> TcpBootstrap::try_to_enter(Clock::time_point deadline) {
  auto socket = connect_to(id_.place, deadline);
  if (!socket) {
    return fail(socket.error().code,
                "shmem: PE " + std::to_string(place_.rank) + " cannot reach the job at " + id_.place.text() + ": " +
                    socket.error().text +
                    (place_.patient ? "; is PE 0 running, and does SHMEM_UID_SESSION_ID name an address of its host?"
                                    : "; has the process that got the unique id ended, or has its job started "
                                      "already? SHMEM_UID_SOCK_IFNAME or SHMEM_UID_SESSION_ID in its environment "
                                      "make it listen elsewhere"));
  }
  {
    const std::scoped_lock lock(mutex_);
    server_pe_.reset();
    going_ = false;
    end_.reset();
    ended_.store(false, std::memory_order_relaxed);
  }
  socket_ = *std::move(socket);
  auto thread = HelperThread::start([this] { listen(); });
  if (!thread) return tl::make_unexpected(thread.error());
  thread_ = *std::move(thread);
  const Hello hello = hello_of(id_, place_);
  if (auto said = say(encode(FrameType::kHello, 0, std::as_bytes(std::span(&hello, 1)))); !said) return said;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return await(std::max(left, milliseconds(0)), [this] { return server_pe_.has_value(); });
}

void TcpBootstrap::disconnect() {
  {
    const std::scoped_lock lock(mutex_);
    going_ = true;
  }
  changed_.notify_all();
  if (thread_.runs_here()) ::shutdown(socket_.get(), SHUT_RDWR);
  thread_.join();
  socket_.reset();
}

Result<void> TcpBootstrap::say(const FrameBytes& bytes) {
  auto sent = send_all(socket_.get(), *bytes, Clock::now() + place_.limit);
  if (sent) return sent;
  // What the server said last is the better reason.
  await(milliseconds(100), [] { return false; });
  const std::scoped_lock lock(mutex_);
  if (end_) return {};
  return fail(sent.error().code, "shmem: PE " + std::to_string(place_.rank) + " cannot talk to the job at " +
                                     id_.place.text() + ": " + sent.error().text);
}

template <typename Done>
Result<void> TcpBootstrap::await(milliseconds limit, Done done) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return done() || end_; });
  if (done()) return {};
  if (end_) return tl::make_unexpected(end_->error);
  return fail(std::errc::timed_out, "shmem: PE " + std::to_string(place_.rank) + " had no answer from the job at " +
                                        id_.place.text() + " for " + seconds_text(limit));
}

Result<std::vector<std::byte>> TcpBootstrap::allgather(std::span<const std::byte> mine) {
  if (mine.size() > kMostOfAll / static_cast<std::size_t>(size())) {
    return fail(std::errc::message_size, "shmem: " + std::to_string(mine.size()) + " bytes of each of " +
                                             std::to_string(size()) + " PEs are too much for the job's bootstrap");
  }
  std::uint32_t step = 0;
  {
    const std::scoped_lock lock(mutex_);
    gathered_.reset();
    step = ++step_;
  }
  if (auto going = await(milliseconds(0), [this] { return !end_; }); !going) return tl::make_unexpected(going.error());
  const GatherHead head{in_milliseconds(place_.limit)};
  const auto said = say(encode(FrameType::kGather, step, std::as_bytes(std::span(&head, 1)), mine));
  if (!said) return tl::make_unexpected(said.error());
  const auto come = await(place_.limit + kServerDelay, [this] { return gathered_.has_value(); });
  if (!come) {
    hear_end({come.error(), std::nullopt, come.error().text});  // if it was a timeout: the first one counts
    return tl::make_unexpected(come.error());
  }
  const std::scoped_lock lock(mutex_);
  return *std::exchange(gathered_, std::nullopt);
}

Result<void> TcpBootstrap::barrier() {
  const auto all = allgather({});
  if (!all) return tl::make_unexpected(all.error());
  return {};
}

int TcpBootstrap::abort(int status, const std::string& reason) {
  {
    const std::scoped_lock lock(mutex_);
    going_ = true;
  }
  const AbortHead head{place_.rank, status};
  static_cast<void>(say(encode(FrameType::kAbort, head, reason)));
  // The server tells everybody, this PE too.
  static_cast<void>(await(kTellLimit, [] { return false; }));
  if (server_) server_->flush(kTellLimit);
  const std::scoped_lock lock(mutex_);
  return end_ ? end_->status.value_or(status) : status;
}

std::optional<std::string> TcpBootstrap::aborted() const {
  if (ended_.load(std::memory_order_acquire) == 0) return std::nullopt;  // pairs with the store in hear_end()
  const std::scoped_lock lock(mutex_);
  return end_->reason;
}

void TcpBootstrap::leave() {
  {
    const std::scoped_lock lock(mutex_);
    going_ = true;
  }
  changed_.notify_all();
  static_cast<void>(say(encode(FrameType::kLeave, 0, {})));
  left_ = true;
}

void TcpBootstrap::listen() {
  FrameReader reader(kMostOfAll);
  std::vector<std::byte> buffer(16 << 10);  // small: every PE has one
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) return lose_server("it closed the connection (has it died?)");
    if (got < 0) return lose_server("the connection is broken: " + std::generic_category().message(errno));
    reader.push(std::span(buffer).first(static_cast<std::size_t>(got)));
    auto frame = reader.next();
    for (; frame && *frame; frame = reader.next()) hear(**std::move(frame));
    if (!frame) return lose_server(frame.error().text);
  }
}

void TcpBootstrap::hear(Frame frame) {
  if (frame.type == FrameType::kFailed) {
    const auto head = frame.head<FailedHead>().value_or(FailedHead{static_cast<int>(std::errc::bad_message)});
    const std::string text = frame.text(sizeof(FailedHead));
    return hear_end({{std::errc{head.code}, text}, std::nullopt, text});
  }
  if (frame.type == FrameType::kAborted) {
    const auto head = frame.head<AbortHead>().value_or(AbortHead{-1, 1});
    const std::string reason = frame.text(sizeof(AbortHead));
    hear_end({{std::errc::operation_canceled, "shmem: the job was ended: " + reason}, head.status, reason});
    return end_process_unless_it_ends();
  }
  {
    const std::scoped_lock lock(mutex_);
    if (frame.type == FrameType::kAccepted) server_pe_ = frame.head<std::int32_t>();
    if (frame.type == FrameType::kWelcome) welcome_ = true;
    if (frame.type == FrameType::kGathered && frame.step == step_) gathered_ = std::move(frame.payload);
  }
  changed_.notify_all();
}

void TcpBootstrap::lose_server(const std::string& why) {
  std::unique_lock lock(mutex_);
  const std::string who = server_pe_ ? "PE " + std::to_string(*server_pe_) + ", whose process the PEs are connected to"
                                     : "the process that the PEs connect to";
  lock.unlock();
  const std::string text = "shmem: " + who + " (at " + id_.place.text() + "), is lost: " + why;
  hear_end({{std::errc::connection_reset, text}, std::nullopt, text});
}

void TcpBootstrap::hear_end(End end) {
  {
    const std::scoped_lock lock(mutex_);
    if (end_) return;
    end_ = std::move(end);
    ended_.store(1, std::memory_order_release);  // pairs with the load in aborted()
  }
  futex_wake_all(ended_);
  changed_.notify_all();
}

void TcpBootstrap::end_process_unless_it_ends() {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, place_.grace, [this] { return going_; })) return;
  log(LogLevel::kFatal, "shmem: PE %d ends: the job was ended: %s", place_.rank, end_->reason.c_str());
  ::_exit(end_->status.value_or(1));
}

}  // namespace shmem
