// SPDX-License-Identifier: Apache-2.0
#include "kv/exchange/holder_socket.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/fd_message.hpp"

namespace shmem::exchange {
namespace {

ssize_t receive_once(int socket, msghdr& header, int flags) {
  ssize_t got = -1;
  do {
    got = ::recvmsg(socket, &header, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

std::errc HolderSocket::send(const void* message, std::size_t bytes, std::span<const int> files) {
  // sendmsg does not change what it sends.
  iovec data{.iov_base = const_cast<void*>(message),
             .iov_len = bytes};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * std::tuple_size_v<Files>)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!files.empty()) {
    base::attach_fds(header, control, files);
  }
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(fd(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? static_cast<std::errc>(errno) : std::errc{};
}

std::errc HolderSocket::receive(HolderBuffer& message, Files* files) {
  message.size = 0;
  iovec data{.iov_base = message.bytes.data(), .iov_len = sizeof(HolderHead)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * std::tuple_size_v<Files>)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (files != nullptr) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  // A look first. The message stays, with its files: what the kernel cannot hand over it would otherwise close here.
  const ssize_t there = receive_once(fd(), header, MSG_PEEK);
  if (there < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
    return std::errc::resource_unavailable_try_again;
  }
  if (there <= 0) {
    return std::errc::connection_reset;
  }
  if (files != nullptr) {
    std::size_t count = 0;
    base::take_fds(header, [&](base::UniqueFd file) { (*files)[count++] = std::move(file); });
  }
  if ((header.msg_flags & MSG_CTRUNC) != 0) {
    return std::errc::protocol_error;
  }
  // Its files have descriptors here, so that this closes none of them.
  header.msg_control = nullptr;
  header.msg_controllen = 0;
  data.iov_len = message.bytes.size();
  const ssize_t got = receive_once(fd(), header, 0);
  if (got <= 0) {
    return std::errc::connection_reset;
  }
  message.size = static_cast<std::size_t>(got);
  return (header.msg_flags & MSG_TRUNC) == 0 && got >= ssize_t{sizeof(HolderHead)} ? std::errc{}
                                                                                   : std::errc::protocol_error;
}

void HolderSocket::shut() {
  ::shutdown(fd(), SHUT_RDWR);
}

}  // namespace shmem::exchange
