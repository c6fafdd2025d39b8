// SPDX-License-Identifier: Apache-2.0
#include "driver/vfio_user_channel.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/user.hpp"
#include "driver/wait.hpp"

namespace gba {

namespace {

/// No expected reply is nearly as long; a longer one is not read.
constexpr std::uint32_t kMaxReply = 0x10000;

/// What this client can take. It sends one file descriptor a message and no access over 8 bytes, which is within every
/// server's limits, so the capabilities in the reply need not be looked at.
constexpr std::string_view kCapabilities =
    R"({"capabilities":{"max_msg_fds":8,"max_data_xfer_size":1048576,"pgsizes":4096}})";

std::string command_name(vfio_user_command command) {
  switch (command) {
    case VFIO_USER_VERSION:
      return "VERSION";
    case VFIO_USER_DMA_MAP:
      return "DMA_MAP";
    case VFIO_USER_DMA_UNMAP:
      return "DMA_UNMAP";
    case VFIO_USER_DEVICE_GET_INFO:
      return "DEVICE_GET_INFO";
    case VFIO_USER_DEVICE_GET_REGION_INFO:
      return "DEVICE_GET_REGION_INFO";
    case VFIO_USER_DEVICE_GET_REGION_IO_FDS:
      return "DEVICE_GET_REGION_IO_FDS";
    case VFIO_USER_DEVICE_GET_IRQ_INFO:
      return "DEVICE_GET_IRQ_INFO";
    case VFIO_USER_DEVICE_SET_IRQS:
      return "DEVICE_SET_IRQS";
    case VFIO_USER_REGION_READ:
      return "REGION_READ";
    case VFIO_USER_REGION_WRITE:
      return "REGION_WRITE";
    case VFIO_USER_DEVICE_RESET:
      return "DEVICE_RESET";
    case VFIO_USER_DMA_READ:
    case VFIO_USER_DMA_WRITE:
    case VFIO_USER_REGION_WRITE_MULTI:
    case VFIO_USER_DEVICE_FEATURE:
    case VFIO_USER_MIG_DATA_READ:
    case VFIO_USER_MIG_DATA_WRITE:
      break;
  }
  return fmt::format("command {}", static_cast<unsigned>(command));
}

Error protocol_error(const std::string& what) {
  return fail(std::errc::protocol_error, fmt::format("it broke the protocol: {}", what));
}

Result<void> check_header(const vfio_user_header& header, vfio_user_command command, std::uint16_t id) {
  if (header.msg_size < sizeof(header) || header.msg_size > kMaxReply) {
    return protocol_error(fmt::format("a message of {} bytes", header.msg_size));
  }
  if ((header.flags & VFIO_USER_TYPE_MASK) != VFIO_USER_TYPE_REPLY) {
    return protocol_error("a message that is not a reply");
  }
  if (header.msg_id != id || header.command != command) {
    return protocol_error("the reply to another message");
  }
  return {};
}

/// What the failure of an exchange says of the device.
Loss loss_of(std::errc failure) {
  if (failure == std::errc::not_connected) {
    return Loss::kClosed;
  }
  if (failure == std::errc::timed_out) {
    return Loss::kSilent;
  }
  return Loss::kGarbled;
}

/// The process that made the listening socket; 0 if that cannot be known.
pid_t listener_of(int socket) {
  const auto peer = base::peer_of(socket);
  return peer ? peer->pid : 0;
}

/// Whether the kernel says who has sent what is received. The creator of the listening socket (SO_PEERCRED) may be a
/// service manager, which sleeps while the server works.
void ask_for_senders(int socket, bool wanted) {
  const int value = wanted ? 1 : 0;
  ::setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &value, sizeof value);
}

/// What a failed or refused VERSION means for the user.
Result<void> check_version(const std::string& peer, const Result<Reply>& reply) {
  const std::string tried = fmt::format("gba: cannot open {}: ", peer);
  if (!reply && reply.error().code == std::errc::timed_out) {
    return fail(std::errc::timed_out,
                tried + "it accepts the connection but does not answer (is it stopped, or busy with another client?)");
  }
  if (!reply && reply.error().code == std::errc::not_connected) {
    return fail(std::errc::no_such_device, tried + "it closed the connection (is it a vfio-user server?)");
  }
  if (!reply) {
    return fail(std::errc::protocol_error, tried + reply.error().text);
  }
  if (reply->error == EBUSY) {
    return fail(std::errc::device_or_resource_busy, tried + "it has no free port");
  }
  if (reply->error != 0) {
    return fail(std::errc::protocol_error,
                fmt::format("{}it refused vfio-user 0.0: {}", tried, errno_text(reply->error)));
  }
  const auto version = reply->get<vfio_user_version>();
  if (version.major != VFIO_USER_MAJOR) {
    return fail(std::errc::protocol_error,
                fmt::format("{}it speaks vfio-user {}.{}, not 0", tried, version.major, version.minor));
  }
  return {};
}

}  // namespace

VfioUserChannel::VfioUserChannel(base::UniqueFd socket, std::string peer, std::chrono::nanoseconds reply_timeout)
    : socket_(std::move(socket)),
      peer_(std::move(peer)),
      reply_timeout_(reply_timeout),
      server_(listener_of(socket_.get())) {}

void VfioUserChannel::shut_down(Loss why) {
  broken_.store(why, std::memory_order_relaxed);
  ::shutdown(socket_.get(), SHUT_RDWR);
}

Error VfioUserChannel::break_with(const Error& cause, vfio_user_command command) {
  // After half an exchange it is unknown which reply belongs to which request.
  const Loss loss = loss_of(cause.code);
  shut_down(loss);
  return fail(code_of(loss), fmt::format("gba: lost the device {} in {}: {} ({})", peer_, command_name(command),
                                         cause.text, text_of(loss)));
}

Result<std::uint16_t> VfioUserChannel::send(vfio_user_command command, std::span<const std::byte> payload,
                                            std::span<const int> fds, std::uint32_t flags) {
  const vfio_user_header header{.msg_id = next_id_++,
                                .command = static_cast<std::uint16_t>(command),
                                .msg_size = static_cast<std::uint32_t>(sizeof(header) + payload.size()),
                                .flags = VFIO_USER_TYPE_COMMAND | flags,
                                .error = 0};
  // In one piece: some servers cannot reassemble a message.
  std::vector<std::byte> message;
  message.reserve(header.msg_size);
  const auto head = wire_bytes(header);
  message.insert(message.end(), head.begin(), head.end());
  message.insert(message.end(), payload.begin(), payload.end());
  if (auto ok = send_bytes(socket_.get(), message, fds, Deadline::after(reply_timeout_)); !ok) {
    return ok.error();
  }
  return header.msg_id;
}

/// A server that has a request and is neither running nor about to run will not answer it. The first look at it is
/// compared with the one before this request, if there was any, so that it takes two to find a silent one. A look that
/// is late, because this process had no processor, counts no more than another. Before VERSION has been answered, the
/// process that listens may be a service manager, which sleeps while the server works.
Result<void> VfioUserChannel::await_reply() {
  const Deadline last = Deadline::after(std::max<std::chrono::nanoseconds>(reply_timeout_, kLongestReply));
  Deadline deadline = Deadline::after(reply_timeout_);
  auto looked = Clock::now();
  while (!await_input(socket_.get(), Deadline::after(deadline.left(kLongestIdle)))) {
    const bool works = server_.works() || !ready_;
    const auto before = std::exchange(looked, Clock::now());
    const auto since = looked - before;
    deadline.extend(server_.starved() ? since
                                      : std::max<Clock::duration>(since - kLongestIdle, Clock::duration::zero()));
    const bool over = !works || deadline.passed() || last.passed();
    if (over && !await_input(socket_.get(), Deadline::after({}))) {  // perhaps it came while this looked
      return fail(std::errc::timed_out, "no answer in time");
    }
  }
  return {};
}

Result<Reply> VfioUserChannel::receive(vfio_user_command command, std::uint16_t id, std::size_t reply_size) {
  if (auto answered = await_reply(); !answered) {
    return answered.error();
  }
  const Deadline deadline = Deadline::after(reply_timeout_);  // for a message of which there is a part
  Reply reply;
  vfio_user_header header{};
  const auto head = std::as_writable_bytes(std::span(&header, 1));
  if (auto got = receive_bytes(socket_.get(), head, reply.fds, deadline, &reply.sender); !got) {
    return got.error();
  }
  if (auto good = check_header(header, command, id); !good) {
    return good.error();
  }
  reply.payload.resize(header.msg_size - sizeof(header));
  if (auto got = receive_bytes(socket_.get(), reply.payload, reply.fds, deadline); !got) {
    return got.error();
  }
  if ((header.flags & VFIO_USER_ERROR) != 0) {
    reply.error = header.error == 0 ? EIO : static_cast<int>(header.error);
    reply.payload.clear();  // some servers send one with an error; it means nothing
  } else if (reply.payload.size() < reply_size) {
    return protocol_error("a reply that is too short");
  }
  return reply;
}

Result<Reply> VfioUserChannel::exchange(vfio_user_command command, std::span<const std::byte> payload,
                                        std::size_t reply_size, std::span<const int> fds) {
  const auto id = send(command, payload, fds, 0);
  if (!id) {
    return id.error();
  }
  return receive(command, *id, reply_size);
}

Result<Reply> VfioUserChannel::request(vfio_user_command command, std::span<const std::byte> payload,
                                       std::size_t reply_size, std::span<const int> fds) {
  const std::lock_guard lock(mutex_);
  if (broken() != Loss::kNone) {
    return loss_error(broken(), peer_);
  }
  auto reply = exchange(command, payload, reply_size, fds);
  if (!reply) {
    return break_with(reply.error(), command);
  }
  if (reply->error != 0) {
    return fail_errno(reply->error, fmt::format("gba: {} refused {}", peer_, command_name(command)));
  }
  return reply;
}

Result<void> VfioUserChannel::post(vfio_user_command command, std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  if (broken() != Loss::kNone) {
    return loss_error(broken(), peer_);
  }
  const auto id = send(command, payload, {}, VFIO_USER_NO_REPLY);
  if (!id) {
    return break_with(id.error(), command);
  }
  return {};
}

Result<void> VfioUserChannel::negotiate() {
  const vfio_user_version proposed{.major = VFIO_USER_MAJOR, .minor = VFIO_USER_MINOR};
  const auto head = wire_bytes(proposed);
  std::vector<std::byte> payload(head.begin(), head.end());
  const auto json = std::as_bytes(std::span(kCapabilities.data(), kCapabilities.size()));
  payload.insert(payload.end(), json.begin(), json.end());
  payload.push_back(std::byte{0});

  const std::lock_guard lock(mutex_);
  ask_for_senders(socket_.get(), true);
  const auto reply = exchange(VFIO_USER_VERSION, payload, sizeof(vfio_user_version), {});
  ask_for_senders(socket_.get(), false);
  auto good = check_version(peer_, reply);
  ready_ = good.has_value();
  if (ready_) {
    server_ = base::ProcessActivity(reply->sender);
  }
  if (!good) {
    shut_down(Loss::kClosed);
  }
  return good;
}

}  // namespace gba
