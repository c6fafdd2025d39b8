// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/tcp.hpp"
#include "shmem/config/failure.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <thread>

#include "shmem/bootstrap/end_reports.hpp"
#include "shmem/bootstrap/job_memory.hpp"
#include "shmem/bootstrap/message_text.hpp"
#include "shmem/cores/wait.hpp"

namespace shmem {

namespace {

using std::chrono::milliseconds;

/// The server ends a step that takes too long, with an Error that names the missing PEs. PEs allow it this much more.
constexpr milliseconds kServerDelay{10'000};
/// How long the end of a job waits until the other PEs are told.
constexpr milliseconds kTellLimit{10'000};
/// Between two attempts to connect to PE 0.
constexpr milliseconds kRetryTime{50};
/// The most bytes of all PEs in a step.
constexpr std::size_t kMostOfAll = std::size_t{1} << 30;

std::uint32_t in_milliseconds(milliseconds time) {
  return static_cast<std::uint32_t>(std::clamp<milliseconds::rep>(time.count(), 1, UINT32_MAX));
}

Result<Hello> hello_of(const TcpPlace& place) {
  Hello hello{{}, place.rank, place.size, ::getpid(), in_milliseconds(place.limit), {}};
  ::gethostname(hello.host.data(), hello.host.size() - 1);
  if (auto random = fill_randomly(hello.nonce, "the start of the job"); !random) {
    return random.error();
  }
  return hello;
}

bool has_no_listener(const Error& error) {
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
    if (!server) {
      return server.error();
    }
    self->server_ = *std::move(server);
  }
  if (auto entered = self->join_server(); !entered) {
    return entered.error();
  }
  return self;
}

TcpBootstrap::~TcpBootstrap() {
  serve_others();
}

void TcpBootstrap::serve_others() {
  disconnect();
  if (server_ && left_) {
    server_->close();
  }
  server_.reset();
}

Result<void> TcpBootstrap::join_server() {
  const auto deadline = Clock::now() + place_.limit;
  for (;;) {
    auto entered = try_to_join(deadline);
    if (entered) {
      break;
    }
    disconnect();
    // The server drops strangers in a flood, of which this PE may be one until it has proved itself.
    const bool again = end_ ? end_->is_early : place_.retries && has_no_listener(entered.error());
    if (!again || Clock::now() >= deadline) {
      return entered;
    }
    std::this_thread::sleep_for(kRetryTime);
  }
  return await(place_.limit + kServerDelay, [this] { return welcome_; });
}

Result<void> TcpBootstrap::try_to_join(Clock::time_point deadline) {
  {
    const std::scoped_lock lock(mutex_);
    server_pe_.reset();
    going_ = false;
    end_.reset();
    ended_.store(false, std::memory_order_relaxed);
  }
  auto socket = wire::connect_to(id_.place, deadline);
  if (!socket) {
    return fail(
        socket.error().code,
        fmt::format(
            "shmem: PE {} cannot reach the job at {}: {}{}", place_.rank, id_.place.text(), socket.error().text,
            place_.retries
                ? "; is PE 0 running, and does SHMEM_UID_SESSION_ID name an address of its host?"
                : "; has the process that got the unique id ended, got another one since, or "
                  "has its job started already? SHMEM_UID_SOCK_IFNAME or SHMEM_UID_SESSION_ID in its environment "
                  "make it listen elsewhere"));
  }
  const auto hello = hello_of(place_);
  if (!hello) {
    return hello.error();
  }
  hello_ = *hello;
  socket_ = base::PrivateFd(*std::move(socket));
  seals_.reset();
  auto thread = base::HelperThread::start([this] { listen(); });
  if (!thread) {
    return thread.error();
  }
  thread_ = *std::move(thread);
  // The thread answers what the server says to this.
  if (auto sent = send(encode(UidFrame::kHello, 0, std::as_bytes(std::span(&hello_, 1)))); !sent) {
    return sent;
  }
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return await(std::max(left, milliseconds(0)), [this] { return server_pe_.has_value(); });
}

void TcpBootstrap::disconnect() {
  {
    const std::scoped_lock lock(mutex_);
    going_ = true;
  }
  changed_.notify_all();
  if (thread_.runs_here()) {
    ::shutdown(socket_.get(), SHUT_RDWR);
  }
  thread_.join();
  socket_.reset();
}

Result<void> TcpBootstrap::send(const FrameBytes& bytes) {
  auto sent = send_sealed(bytes);
  if (sent) {
    return sent;
  }
  // The server's last frame has a better reason.
  static_cast<void>(await(milliseconds(100), [] { return false; }));
  const std::scoped_lock lock(mutex_);
  if (end_) {
    return {};
  }
  return fail(sent.error().code, fmt::format("shmem: PE {} cannot talk to the job at {}: {}", place_.rank,
                                             id_.place.text(), sent.error().text));
}

Result<void> TcpBootstrap::send_sealed(const FrameBytes& bytes) {
  const std::scoped_lock lock(send_mutex_);
  const auto deadline = Clock::now() + place_.limit;
  auto sent = wire::send_all(socket_.get(), *bytes, deadline);
  return sent && seals_ ? wire::send_all(socket_.get(), *encode(seals_->next(*bytes)), deadline) : sent;
}

template <typename Done>
Result<void> TcpBootstrap::await(milliseconds limit, Done done) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return done() || end_; });
  if (done()) {
    return {};
  }
  if (end_) {
    return end_->error;
  }
  return fail(std::errc::timed_out, fmt::format("shmem: PE {} had no answer from the job at {} for {}", place_.rank,
                                                id_.place.text(), seconds_text(limit)));
}

Result<std::vector<std::byte>> TcpBootstrap::allgather(std::span<const std::byte> mine) {
  if (mine.size() > kMostOfAll / static_cast<std::size_t>(size())) {
    return fail(
        std::errc::message_size,
        fmt::format("shmem: {} bytes of each of {} PEs are too much for the job's bootstrap", mine.size(), size()));
  }
  std::uint32_t step = 0;
  {
    const std::scoped_lock lock(mutex_);
    gathered_.reset();
    step = ++step_;
  }
  if (auto going = await(milliseconds(0), [this] { return !end_; }); !going) {
    return going.error();
  }
  const GatherHead head{in_milliseconds(place_.limit)};
  const auto sent = send(encode(UidFrame::kGather, step, std::as_bytes(std::span(&head, 1)), mine));
  if (!sent) {
    return sent.error();
  }
  const auto done = await(place_.limit + kServerDelay, [this] { return gathered_.has_value(); });
  if (!done) {
    set_end({done.error(), std::nullopt, done.error().text});  // a timeout; else the end is already set
    return done.error();
  }
  const std::scoped_lock lock(mutex_);
  return *std::exchange(gathered_, std::nullopt);
}

int TcpBootstrap::abort(int status, const std::string& reason) {
  {
    const std::scoped_lock lock(mutex_);
    going_ = true;
  }
  const AbortHead head{place_.rank, status};
  static_cast<void>(send(encode(UidFrame::kAbort, head, reason)));
  // The server tells all PEs, including this one.
  static_cast<void>(await(kTellLimit, [] { return false; }));
  if (server_) {
    server_->flush(kTellLimit);
  }
  const std::scoped_lock lock(mutex_);
  return end_ ? end_->status.value_or(status) : status;
}

std::optional<std::string> TcpBootstrap::aborted() const {
  if (ended_.load(std::memory_order_acquire) == 0) {
    return std::nullopt;  // pairs with the store in set_end()
  }
  const std::scoped_lock lock(mutex_);
  return end_->reason;
}

Result<void> TcpBootstrap::survive() {
  if (std::getenv(kJobServedVariable) != nullptr) {
    return fail(std::errc::not_supported,
                "oshrun ends a job on several nodes when it has lost a PE (jobs by unique id go on)");
  }
  const std::scoped_lock lock(mutex_);
  survives_ = true;
  return {};
}

void TcpBootstrap::leave() {
  {
    const std::scoped_lock lock(mutex_);
    going_ = true;
  }
  changed_.notify_all();
  static_cast<void>(send(encode(UidFrame::kLeave, 0, {})));
  left_ = true;
}

void TcpBootstrap::listen() {
  try {
    hear_server();
  } catch (const std::bad_alloc&) {
    // These texts need none.
    set_end({{std::errc::not_enough_memory, "no memory"}, std::nullopt, "no memory", is_early()});
  }
}

void TcpBootstrap::hear_server() {
  FrameReader reader(sizeof(Challenge));
  bool verified = false;
  std::vector<std::byte> buffer(16 << 10);  // small: every PE has one
  for (;;) {
    const ssize_t got = base::retry([&] { return ::recv(socket_.get(), buffer.data(), buffer.size(), 0); });
    if (got == 0) {
      return lose_server(std::errc::connection_reset, "it closed the connection (has it died?)");
    }
    if (got < 0) {
      return lose_server(std::errc{errno}, "the connection is broken: " + std::generic_category().message(errno));
    }
    reader.push(std::span(buffer).first(static_cast<std::size_t>(got)));
    auto frame = reader.next();
    for (; frame && *frame; frame = reader.next()) {
      if (verified) {
        handle(**std::move(frame));
      } else if (!verify(**frame)) {
        return;
      } else {
        verified = true;
        reader.allow(kMostOfAll);
        reader.require(seals_of(id_.secret, Prover::kServer, hello_, *(*frame)->head<Challenge>()));
      }
    }
    if (!frame) {
      return lose_server(frame.error().code, frame.error().text);
    }
  }
}

bool TcpBootstrap::verify(const Frame& frame) {
  const auto challenge = frame.head<Challenge>();
  if (!challenge || frame.type != UidFrame::kChallenge) {
    const std::string text = fmt::format(
        "shmem: PE {} cannot join: the program that listens at {} is not of this job, or has another libshmem: it did "
        "not prove that it has the job's secret",
        place_.rank, id_.place.text());
    set_end({{std::errc::permission_denied, text}, std::nullopt, text});
    return false;
  }
  if (!same(challenge->proof, prove(id_.secret, Prover::kServer, hello_, *challenge))) {
    const std::string text = foreign_secret_text(id_.place.text(), hello_, challenge->size);
    // Only so that the server, if this is one, can name this PE.
    static_cast<void>(wire::send_all(socket_.get(), *encode(UidFrame::kDecline, 0, {}), Clock::now() + kTellLimit));
    set_end({{std::errc::permission_denied, text}, std::nullopt, text});
    return false;
  }
  const Proof proof = prove(id_.secret, Prover::kPe, hello_, *challenge);
  const std::scoped_lock lock(send_mutex_);
  seals_ = seals_of(id_.secret, Prover::kPe, hello_, *challenge);
  // The server gets it, or the connection breaks, which this thread then notices.
  static_cast<void>(wire::send_all(socket_.get(), *encode(UidFrame::kProof, 0, std::as_bytes(std::span(&proof, 1))),
                                   Clock::now() + place_.limit));
  return true;
}

void TcpBootstrap::handle(Frame frame) {
  if (frame.type == UidFrame::kFailed) {
    const auto head = frame.head<FailedHead>().value_or(FailedHead{static_cast<int>(std::errc::bad_message)});
    const std::string text = frame.text(sizeof(FailedHead));
    return set_end({{std::errc{head.code}, text}, std::nullopt, text});
  }
  if (frame.type == UidFrame::kAborted) {
    const auto head = frame.head<AbortHead>().value_or(AbortHead{-1, 1});
    const std::string reason = frame.text(sizeof(AbortHead));
    const std::string text = fmt::format("shmem: PE {}: the job was ended: {}", place_.rank, reason);
    set_end({{std::errc::operation_canceled, text}, head.status, reason});
    return end_process_unless_it_ends();
  }
  {
    const std::scoped_lock lock(mutex_);
    if (frame.type == UidFrame::kAccepted) {
      server_pe_ = frame.head<std::int32_t>();
    }
    if (frame.type == UidFrame::kWelcome) {
      welcome_ = true;
    }
    if (frame.type == UidFrame::kGathered && frame.step == step_) {
      gathered_ = std::move(frame.payload);
    }
  }
  changed_.notify_all();
}

std::string TcpBootstrap::server_name() const {
  const std::scoped_lock lock(mutex_);
  if (!server_pe_) {
    return "the process that the PEs connect to";
  }
  if (*server_pe_ == kLauncher) {
    return "oshrun";
  }
  return fmt::format("PE {}, whose process the PEs are connected to,", *server_pe_);
}

bool TcpBootstrap::is_early() const {
  const std::scoped_lock lock(mutex_);
  return !server_pe_;
}

void TcpBootstrap::lose_server(std::errc code, const std::string& why) {
  const std::string server = server_name();
  const bool can_try_again = code == std::errc::connection_reset && is_early();
  const std::string text = fmt::format("shmem: {} (at {}) is lost: {}", server, id_.place.text(), why);
  set_end({{std::errc::connection_reset, text}, std::nullopt, text, can_try_again});
}

void TcpBootstrap::set_end(End end) {
  {
    const std::scoped_lock lock(mutex_);
    // A loss that the job survives ends the steps of the bootstrap only, and a PE can still end the job.
    const bool is_survived = survives_ && end_ && !end_->status;
    if (end_ && !(is_survived && end.status)) {
      return;
    }
    end_ = std::move(end);
    if (!survives_ || end_->status) {
      ended_.store(1, std::memory_order_release);  // pairs with the load in aborted()
      futex_wake_all(ended_);
    }
  }
  changed_.notify_all();
}

void TcpBootstrap::end_process_unless_it_ends() {
  if (errors_return()) {
    return;  // its waits fail
  }
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, place_.grace, [this] { return going_; })) {
    return;
  }
  const bool is_told = report_end(EndKind::kTold, "");
  end_process_for({std::errc::operation_canceled,
                   is_told ? "" : fmt::format("shmem: PE {} ends: the job was ended: {}", place_.rank, end_->reason)},
                  end_->status.value_or(1));
}

}  // namespace shmem
