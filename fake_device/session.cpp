// SPDX-License-Identifier: Apache-2.0
#include "fake_device/session.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/user.hpp"
#include "fake_device/commands.hpp"
#include "fake_device/message.hpp"

namespace fake_device {
namespace {

constexpr std::size_t kMaxPostedWrites = 4096;
// Each vector of the larger device armed twice, ERR, REQ and files: the first ones are being closed.
constexpr std::size_t kMaxOpenFds = 2 * GBA_SWITCH_MSIX_VECTORS + 128;
constexpr Time kCloserPause = kSecond / 500;
// There may be hundreds of clients for whose descriptors there is no room, and a look at each is a system call.
constexpr Time kRoomPause = kSecond / 25;
constexpr unsigned kMostLoggedRefusals = 8;

std::string peer_text(int socket) {
  const auto peer = base::peer_of(socket);
  return peer ? fmt::format("process {} of user {}", peer->pid, peer->uid) : "an unknown process";
}

}  // namespace

Session::Session(Given socket, std::shared_ptr<FdAccount> account, SessionHost& host, PortPool& ports, Time deadline)
    : socket_(std::move(socket)), account_(std::move(account)), host_(host), ports_(ports), deadline_(deadline) {}

// The client learns of the end now, whenever its socket is closed.
Session::~Session() {
  ::shutdown(socket_.get(), SHUT_RDWR);
  if (function_) {
    const unsigned port = function_->port();
    log(LogLevel::kInfo, "closed");
    function_.reset();
    ports_.release(port);
  }
}

void Session::on_readable(Time now) {
  Turn turn;
  while (!turn.over() && !ended_ && (message_ || wants_read())) {
    if (!message_) {
      if (!receive(turn)) {
        return;
      }
      message_ = reader_.take();
      done_ = 0;
      if (message_) {
        unfinished_since_ = kNever;
      } else {
        unfinished_since_ = std::min(unfinished_since_, now);
      }
    }
    if (message_ && handle(*message_, now, turn)) {
      message_.reset();
    }
  }
}

Time Session::deadline() const {
  if (!function_) {
    return deadline_;
  }
  const Time since = std::min(unfinished_since_, stores_.oldest());
  return since == kNever ? kNever : since + kSilenceLimit;
}

void Session::on_deadline() {
  end("it left a message unfinished, or a DMA_WRITE without an answer");
}

// Why descriptors are not even received; nullptr: they are.
const char* Session::no_more_fds() const {
  if (host_.closer().exhausted()) {
    return "there is no room for the file descriptors that it sent (raise our limit, see ulimit -n)";
  }
  if (host_.closer().stuck(*account_->user)) {
    return "file descriptors that its user has sent cannot be closed (is a FUSE file system not served?)";
  }
  return host_.closer().overfull(*account_->user) ? "its user's clients have sent more file descriptors than the part "
                                                    "of one user (raise our limit, see ulimit -n)"
                                                  : nullptr;
}

// Under load the closer gets a processor late. A client that is too fast for it waits, too, and so do those for whose
// descriptors there is no room as long as others' are to be closed.
bool Session::waits_for_closer() {
  const char* const why = no_more_fds();
  const bool is_too_fast = account_->open > kMaxOpenFds - Closer::kMostAtOnce && account_->waiting != 0;
  if (why == nullptr && !is_too_fast) {
    unclosed_since_ = kNever;
    return false;
  }
  if (!brings_fds(socket_.get())) {
    return false;
  }
  unclosed_since_ = std::min(unclosed_since_, host_.now());
  const bool is_hopeless = why != nullptr && (host_.closer().stuck(*account_->user) || host_.closer().done(0));
  if (is_hopeless || host_.now() - unclosed_since_ > kSilenceLimit) {
    end(why != nullptr ? why : "the file descriptors that it sent cannot be closed");
  }
  allowance_.pause_until(host_.now() + (why != nullptr ? kRoomPause : kCloserPause));
  return true;
}

// False: nothing more to read.
bool Session::receive(Turn& turn) {
  if (waits_for_closer()) {
    return false;
  }
  Received received = receive_some(socket_.get(), reader_.room(), host_.closer(), account_);
  turn.take_bytes(static_cast<std::size_t>(std::max<ssize_t>(received.count, 0)));
  turn.take(received.fds.size());
  allowance_.take(received.fds.size(), host_.now());
  if (received.count < 0 && (received.error == EAGAIN || received.error == EWOULDBLOCK)) {
    return false;
  }
  if (received.count < 0) {
    end(fmt::format("its socket failed: {}", std::generic_category().message(received.error)));
  } else if (received.count == 0) {
    end("");
  } else if (account_->open > kMaxOpenFds) {
    end("it keeps too many file descriptors open");
  } else {
    const bool refused = host_.closer().full(*account_->user) && !received.fds.empty();
    if (refused) {
      received.fds.clear();
    }
    if (!reader_.commit(static_cast<std::size_t>(received.count), std::move(received.fds),
                        refused || received.fds_lost)) {
      end("it sent a message of an impossible size");
    }
  }
  return !ended_;
}

// False: the turn is over before the message is.
bool Session::handle(VfioUserMessage& message, Time now, Turn& turn) {
  if (!message.is_reply()) {
    return handle_command(message, now, turn);
  }
  handle_reply(message, turn);
  return true;
}

bool Session::handle_command(VfioUserMessage& message, Time now, Turn& turn) {
  Reply reply;
  if (!message.is_command() || message.too_many_fds) {
    reply.error = EINVAL;
  } else if (message.fds_lost) {  // our limit, not the client's mistake
    reply.error = ENFILE;
  } else if (message.header.command == VFIO_USER_VERSION) {
    reply = negotiate(message);
  } else if (!function_) {
    reply.error = EINVAL;
    closing_ = true;
  } else {
    auto result = run_command(*function_, limits_, message, now, turn, done_);
    if (!result) {
      return false;
    }
    reply = *std::move(result);
    kick_fd_ = reply.error == 0 && message.header.command == VFIO_USER_DEVICE_GET_REGION_IO_FDS && !reply.fds.empty()
                   ? reply.fds.front()
                   : kick_fd_;
  }
  if (reply.error != 0) {
    log_refusal(message.header.command, reply.error);
  }
  if (message.wants_reply()) {
    answer(message.header, reply);
  }
  return true;
}

// At the default level, so that the author of a client sees why. A flood of refused messages must not fill the log, and
// some are usual: clients try features, and hypervisors unmap more than they have mapped.
void Session::log_refusal(std::uint16_t command, int error) {
  if (command == VFIO_USER_VERSION && !function_) {
    return;  // it has been logged
  }
  const bool usual = error == ENOTSUP || (command == VFIO_USER_DMA_UNMAP && error == ENOENT);
  const auto level = usual || refusals_ == kMostLoggedRefusals ? LogLevel::kDebug : LogLevel::kWarning;
  refusals_ += level == LogLevel::kWarning ? 1U : 0U;
  if (host_.log().wants(level)) {
    log(level, function_ ? describe_refusal(command, error) : "refused: its first message is not VERSION");
  }
}

Reply Session::negotiate(const VfioUserMessage& message) {
  if (function_) {
    return {.error = EINVAL, .payload = {}, .fds = {}};
  }
  const auto limits =
      message.fds.empty() ? parse_version(message.payload) : failure("its VERSION message brought file descriptors");
  if (!limits) {
    log(LogLevel::kWarning, fmt::format("refused: {}", limits.error().text));
    closing_ = true;
    return {.error = EINVAL, .payload = {}, .fds = {}};
  }
  Reply reply = open_port(*limits);
  closing_ = reply.error != 0;
  return reply;
}

Reply Session::open_port(const ClientLimits& limits) {
  // The groups of the client before must not count for the next one: uapi rule 37.
  const auto port = ports_.take([this](unsigned free) { return host_.engine().model().groups_held(free) == 0; });
  if (!port) {
    log(LogLevel::kWarning, ports_.size() == 1 ? "refused: the only port is taken"
                                               : fmt::format("refused: all {} ports are taken", ports_.size()));
    return {.error = EBUSY, .payload = {}, .fds = {}};
  }
  auto function = Function::open(host_.engine(), *port, *this, host_.interrupts(), host_.dma_pool());
  if (!function) {
    log(LogLevel::kError, function.error().text);
    ports_.release(*port);
    return {.error = ENOMEM, .payload = {}, .fds = {}};
  }
  limits_ = limits;
  function_ = *std::move(function);
  log(LogLevel::kInfo, fmt::format("opened by {}", peer_text(socket_.get())));
  return {.error = 0, .payload = version_reply(limits), .fds = {}};
}

void Session::answer(const vfio_user_header& request, const Reply& reply) {
  vfio_user_header header{};
  header.msg_id = request.msg_id;
  header.command = request.command;
  header.flags = VFIO_USER_TYPE_REPLY;
  if (reply.error != 0) {
    header.flags |= VFIO_USER_ERROR;
    header.error = static_cast<std::uint32_t>(reply.error);
    send_queue_.push(header, {}, {});
  } else {
    send_queue_.push(header, reply.payload, reply.fds);
  }
  on_writable();
}

void Session::on_writable() {
  if (!send_queue_.flush(socket_.get())) {
    end("");
  }
}

// The others need no more memory than they have.
void Session::on_exception(const std::exception& error) noexcept {
  ended_ = true;
  log(LogLevel::kError, "dropped: ", error.what());
}

void Session::on_kick(Time now) {
  if (function_) {
    function_->kicked(now);
  }
}

void Session::on_shutdown() {
  if (function_) {
    function_->warn_of_removal();
  }
}

// Other clients' work leads here, and must not fail for want of memory.
void Session::send_store(unsigned group, std::uint64_t iova, std::uint64_t word) {
  try {
    post_store(group, iova, word);
  } catch (const std::bad_alloc& error) {
    on_exception(error);
    host_.wants_attention(socket_.get());
  }
}

void Session::post_store(unsigned group, std::uint64_t iova, std::uint64_t word) {
  if (!by_message_) {
    by_message_ = true;
    log(LogLevel::kWarning,
        "gets its flags by DMA_WRITE messages, which take longer, and which it must answer: its memory has no file, or "
        "can be taken away (seal a memfd with F_SEAL_SHRINK and F_SEAL_FUTURE_WRITE after DMA_MAP and before the first "
        "release)");
  }
  if (stores_.outstanding() >= kMaxPostedWrites || send_queue_.full()) {
    doom();  // it has stopped reading
    return;
  }
  vfio_user_header header{};
  header.msg_id = stores_.sent({.group = group, .iova = iova}, host_.now());
  header.command = VFIO_USER_DMA_WRITE;
  header.flags = VFIO_USER_TYPE_COMMAND;
  struct {
    vfio_user_dma_access access;
    std::uint64_t word;
  } const payload{.access = {.address = iova, .count = sizeof word}, .word = word};
  send_queue_.push(header, std::as_bytes(std::span(&payload, 1)), {});
  on_writable();
  host_.wants_attention(socket_.get());
}

void Session::handle_reply(const VfioUserMessage& message, Turn& turn) {
  const bool success = (message.header.flags & VFIO_USER_ERROR) == 0;
  const auto completion = message.header.command == VFIO_USER_DMA_WRITE && message.fds.empty() && function_
                              ? stores_.completed(message.header.msg_id, success)
                              : std::nullopt;
  if (!completion) {
    end("it sent a reply to no request");
    return;
  }
  for (unsigned vector = 0; vector < completion->interrupts.size(); ++vector) {
    if (completion->interrupts[vector]) {
      turn.take(1);
      function_->fire(vector);
    }
  }
  if (completion->failed) {
    host_.engine().flag_store_failed(function_->port(), completion->failed->group, completion->failed->iova);
  }
}

void Session::doom() {
  if (!ended_) {
    end("it took back memory that it had shared, or stopped reading");
    host_.wants_attention(socket_.get());
  }
}

void Session::end(std::string_view why) {
  if (!ended_ && !why.empty()) {
    log(LogLevel::kWarning, "dropped: ", why);
  }
  ended_ = true;
}

// A line for which there is no memory is lost: another client's work may lead here.
void Session::log(LogLevel level, std::string_view text, std::string_view more) const try {
  if (!host_.log().wants(level)) {
    return;
  }
  const auto line = fmt::format("{}{}", text, more);
  if (function_) {
    host_.log().write(level, line, static_cast<int>(function_->port()));
  } else {
    host_.log().write(level, fmt::format("a new client: {}", line));
  }
} catch (const std::bad_alloc&) {
  return;
}

}  // namespace fake_device
