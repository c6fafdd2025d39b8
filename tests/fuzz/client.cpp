// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/client.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <limits>
#include <string>

#include "base/mapping.hpp"
#include "fake_device/message.hpp"
#include "tests/fuzz/check.hpp"

namespace fuzz {
namespace {

constexpr std::size_t kPage = 4096;
constexpr off_t kMemoryPages = 16;
constexpr unsigned kMostPages = 64;
constexpr std::size_t kMostDescriptors = 40;
constexpr std::size_t kMostReceived = 8;

base::UniqueFd make_eventfd(bool full) {
  base::UniqueFd fd(::eventfd(0, EFD_CLOEXEC | (full ? 0 : EFD_NONBLOCK)));
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max() - 1;
  if (full) {
    check(::write(fd.get(), &most, sizeof most) == sizeof most, "an eventfd can be filled");
  }
  return fd;
}

base::UniqueFd one_of_two(int (*make)(int*), unsigned which) {
  std::array<int, 2> ends{-1, -1};
  check(make(ends.data()) == 0, "a pair of descriptors can be made");
  const base::UniqueFd other(ends[1 - which]);
  return base::UniqueFd(ends[which]);
}

int make_pipe(int* ends) {
  return ::pipe2(ends, O_CLOEXEC | O_NONBLOCK);
}

int make_sockets(int* ends) {
  return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
}

base::UniqueFd make_memory(int seals) {
  base::UniqueFd fd(::memfd_create("client", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  check(fd && ::ftruncate(fd.get(), kMemoryPages * static_cast<off_t>(kPage)) == 0, "memory can be made");
  check(seals == 0 || ::fcntl(fd.get(), F_ADD_SEALS, seals) == 0, "memory can be sealed");
  return fd;
}

}  // namespace

void Client::connect() {
  if (!socket_) {
    socket_ = device_.connect();
    outgoing_.clear();
    fds_.clear();
    stores_.clear();
    reader_ = {};
  }
}

void Client::shut_down(unsigned how) const {
  ::shutdown(socket_.get(), how % 2 == 0 ? SHUT_WR : SHUT_RD);
}

void Client::queue(std::uint16_t command, std::uint32_t flags, std::span<const std::byte> payload) {
  const vfio_user_header header{.msg_id = command,
                                .command = command,
                                .msg_size = static_cast<std::uint32_t>(sizeof header + payload.size()),
                                .flags = flags,
                                .error = 0};
  queue_bytes(std::as_bytes(std::span(&header, 1)));
  queue_bytes(payload);
}

void Client::bring(Descriptor kind) {
  if (auto fd = make(kind); fd && fds_.size() < kMostDescriptors) {
    fds_.push_back(std::move(fd));
  }
}

void Client::cut_at(std::size_t length, bool drop_rest) {
  cut_ = length;
  drop_rest_ = drop_rest;
}

void Client::send() {
  if (cut_ != 0) {
    send_some(cut_);
    if (drop_rest_) {
      outgoing_.clear();
    }
    cut_ = 0;
    device_.settle();
  }
  while (send_some(outgoing_.size()) != 0) {
    device_.settle();
  }
  outgoing_.clear();  // the server accepts no more from a client that does not read
  fds_.clear();
  device_.settle();
}

std::size_t Client::send_some(std::size_t limit) {
  iovec part{.iov_base = outgoing_.data(), .iov_len = std::min(limit, outgoing_.size())};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (part.iov_len == 0) {
    return 0;
  }
  if (!fds_.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds_.size() * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds_.size() * sizeof(int));
    for (std::size_t index = 0; index < fds_.size(); ++index) {
      const int fd = fds_[index].get();
      std::memcpy(CMSG_DATA(rights) + index * sizeof fd, &fd, sizeof fd);
    }
  }
  const auto sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent <= 0) {
    return 0;
  }
  fds_.clear();
  outgoing_.erase(outgoing_.begin(), outgoing_.begin() + sent);
  return static_cast<std::size_t>(sent);
}

void Client::read(std::size_t limit) {
  while (limit != 0 && socket_) {
    const auto room = reader_.room();
    auto some =
        fake_device::receive_some(socket_.get(), room.first(std::min(limit, room.size())), device_.closer(), account_);
    if (some.count <= 0) {
      break;
    }
    limit -= static_cast<std::size_t>(some.count);
    check(!some.fds_lost && some.fds.size() <= 1, "a reply has one descriptor at most");
    check(reader_.commit(static_cast<std::size_t>(some.count), std::move(some.fds)), "the server sends messages");
    if (auto message = reader_.take()) {
      keep_reply(*std::move(message));
    }
  }
  device_.settle();
}

void Client::keep_reply(fake_device::VfioUserMessage message) {
  const auto flags = message.header.flags;
  if (message.is_command()) {
    check(message.header.command == VFIO_USER_DMA_WRITE, "the only command of the server is DMA_WRITE");
    stores_.push_back(message.header.msg_id);
  } else {
    check((flags & ~(VFIO_USER_TYPE_REPLY | VFIO_USER_ERROR)) == 0, "a reply has no flag but Error");
    check((flags & VFIO_USER_ERROR) == 0 || message.payload.empty(), "an error reply is its header");
  }
  for (auto& fd : message.fds) {
    if (received_.size() == kMostReceived) {
      received_.erase(received_.begin());
    }
    received_.push_back(std::move(fd));
  }
}

void Client::answer_store(std::uint32_t flags, std::size_t length) {
  if (stores_.empty()) {
    return;
  }
  queue(VFIO_USER_DMA_WRITE, VFIO_USER_TYPE_REPLY | flags, std::vector<std::byte>(length));
  const auto start = outgoing_.size() - sizeof(vfio_user_header) - length;
  std::memcpy(outgoing_.data() + start, &stores_.front(), sizeof stores_.front());
  stores_.pop_front();
  send();
}

int Client::received(unsigned which) const {
  return received_.empty() ? -1 : received_[received_.size() - 1 - which % received_.size()].get();
}

void Client::store(unsigned which, std::size_t offset, std::uint64_t value) const {
  constexpr std::size_t kSize = GBA_BAR2_SIZE;
  const base::Mapping pages(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, received(which), 0), kSize);
  if (pages) {
    auto* const word = pages.data() + offset % kSize / sizeof value * sizeof value;
    reinterpret_cast<std::atomic<std::uint64_t>*>(word)->store(value, std::memory_order_release);
    device_.settle();
  }
}

// Each call must return at once, so the descriptor is non-blocking during the misuse.
void Client::misuse(unsigned which, Misuse how) const {
  const int fd = received(which);
  const int flags = ::fcntl(fd, F_GETFL);
  std::uint64_t value = how == Misuse::kFill ? std::numeric_limits<std::uint64_t>::max() - 1 : 1;
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  switch (how) {
    case Misuse::kShrink:
      check(::ftruncate(fd, 0) != 0, "device memory cannot be taken away");
      break;
    case Misuse::kGrow:
      check(::ftruncate(fd, 0x100000) != 0, "device memory cannot grow");
      break;
    case Misuse::kWrite:
    case Misuse::kFill: {
      [[maybe_unused]] const auto written = ::write(fd, &value, sizeof value);
      break;
    }
    case Misuse::kDrain: {
      [[maybe_unused]] const auto drained = ::read(fd, &value, sizeof value);
      break;
    }
    case Misuse::kMakeBlocking:
      break;
  }
  ::fcntl(fd, F_SETFL, how == Misuse::kMakeBlocking ? flags & ~O_NONBLOCK : flags);
  device_.settle();
}

int Client::memory(unsigned which) {
  base::UniqueFd& file = memory_[which % memory_.size()];
  if (!file) {
    file = make_memory(0);
  }
  return file.get();
}

void Client::resize(unsigned which, unsigned pages) {
  [[maybe_unused]] const int done = ::ftruncate(memory(which), static_cast<off_t>(pages % kMostPages * kPage));
  device_.settle();
}

base::UniqueFd Client::make(Descriptor kind) {
  const auto opened = [](const char* path, int flags) { return base::UniqueFd(::open(path, flags | O_CLOEXEC)); };
  switch (kind) {
    case Descriptor::kMemory:
      return base::UniqueFd(::dup(memory(0)));
    case Descriptor::kOtherMemory:
      return base::UniqueFd(::dup(memory(1)));
    case Descriptor::kReadOnlyMemory:
      return opened(("/proc/self/fd/" + std::to_string(memory(0))).c_str(), O_RDONLY);
    case Descriptor::kSealedMemory:
      return make_memory(F_SEAL_WRITE);
    case Descriptor::kEventfd:
      return make_eventfd(/*full=*/false);
    case Descriptor::kFullEventfd:
      return make_eventfd(/*full=*/true);
    case Descriptor::kPipeReader:
      return one_of_two(make_pipe, 0);
    case Descriptor::kPipeWriter:
      return one_of_two(make_pipe, 1);
    case Descriptor::kSocket:
      return one_of_two(make_sockets, 0);
    case Descriptor::kFolder:
      return opened("/", O_RDONLY | O_DIRECTORY);
    case Descriptor::kNull:
      return opened("/dev/null", O_RDWR);
    case Descriptor::kPath:
      return opened("/", O_PATH);
    case Descriptor::kReceived:
      return received_.empty() ? base::UniqueFd() : base::UniqueFd(::dup(received(0)));
  }
  return base::UniqueFd();
}

}  // namespace fuzz
