// SPDX-License-Identifier: Apache-2.0
#include "tools/raw_client/raw_client.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace raw {
namespace {

constexpr int kTimeLimitMs = 20000;

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Memory::Memory(int fd, std::size_t size) : size_(size) {
  base_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base_ == MAP_FAILED) {
    fail("mmap");
  }
}
Memory::Memory(Memory&& other) noexcept : base_(std::exchange(other.base_, nullptr)), size_(other.size_) {}
Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  return *this;
}
Memory::~Memory() {
  if (base_ != nullptr) {
    ::munmap(base_, size_);
  }
}

Fd make_memfd(std::size_t size) {
  Fd fd(::memfd_create("raw-client", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0 || ::ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    fail("memfd");
  }
  return fd;
}

Fd make_eventfd() {
  return Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

std::uint64_t wait_event(int eventfd, double seconds) {
  pollfd ready{.fd = eventfd, .events = POLLIN, .revents = 0};
  std::uint64_t count = 0;
  if (::poll(&ready, 1, static_cast<int>(seconds * 1000)) == 1 && ::read(eventfd, &count, sizeof count) < 0) {
    fail("read eventfd");
  }
  return count;
}

std::vector<std::byte> join(std::vector<std::byte> head, std::span<const std::byte> tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

Client::Client(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + 1);
  if (path.starts_with('@')) {
    name.sun_path[0] = '\0';
    --size;
  }
  if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&name), size) != 0) {
    fail("connect");
  }
}

std::vector<std::byte> Client::frame(std::uint16_t command, std::span<const std::byte> payload, std::uint32_t flags) {
  const vfio_user_header header{.msg_id = next_id_++,
                                .command = command,
                                .msg_size = static_cast<std::uint32_t>(sizeof header + payload.size()),
                                .flags = flags,
                                .error = 0};
  return join(bytes_of(header), payload);
}

bool Client::send_bytes(std::span<const std::byte> bytes, std::span<const int> fds) {
  std::vector<char> control(CMSG_SPACE(fds.size_bytes()));
  while (!bytes.empty()) {
    iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (!fds.empty()) {
      header.msg_control = control.data();
      header.msg_controllen = control.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
    }
    const auto sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    if (sent < 0) {
      return false;
    }
    fds = {};
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
  return true;
}

std::optional<Reply> Client::receive() {
  Reply reply;
  std::vector<std::byte> bytes(sizeof(vfio_user_header));
  std::size_t have = 0;
  while (have < bytes.size()) {
    pollfd ready{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kTimeLimitMs) != 1) {
      throw std::runtime_error("the server does not answer");
    }
    iovec part{.iov_base = bytes.data() + have, .iov_len = bytes.size() - have};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(64 * sizeof(int))> control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    const auto count = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
    if (count <= 0) {
      return std::nullopt;
    }
    for (cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr; rights = CMSG_NXTHDR(&header, rights)) {
      for (std::size_t at = 0; at < rights->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(rights) + at, sizeof fd);
        reply.fds.emplace_back(fd);
      }
    }
    have += static_cast<std::size_t>(count);
    if (have == sizeof reply.header && bytes.size() == sizeof reply.header) {
      std::memcpy(&reply.header, bytes.data(), sizeof reply.header);
      bytes.resize(reply.header.msg_size);
    }
  }
  reply.payload.assign(bytes.begin() + sizeof reply.header, bytes.end());
  return reply;
}

Reply Client::call(std::uint16_t command, std::span<const std::byte> payload, std::span<const int> fds) {
  const auto message = frame(command, payload);
  send_bytes(message, fds);
  auto reply = receive();
  if (!reply) {
    throw std::runtime_error("the server closed instead of answering command " + std::to_string(command));
  }
  return *std::move(reply);
}

Reply Client::version(const std::string& json, std::uint16_t major) {
  const vfio_user_version version{.major = major, .minor = 0};
  const auto text = std::as_bytes(std::span(json.c_str(), json.size() + 1));
  return call(VFIO_USER_VERSION, join(bytes_of(version), text));
}

bool answer(Client& client, const Reply& store, std::uint32_t flags) {
  auto frame = client.frame(store.header.command, bytes_of(store.as<vfio_user_dma_access>()), flags);
  std::memcpy(frame.data(), &store.header.msg_id, sizeof store.header.msg_id);
  return client.send_bytes(frame);
}

void seal(int fd) {
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE) != 0) {
    fail("F_ADD_SEALS");
  }
}

Port::Port(const std::string& path, const std::string& version, FlagMemory flags)
    : client_(path), flag_fd_(make_memfd(0x10000)), flags_(flag_fd_.get(), 0x10000) {
  if (const auto reply = client_.version(version); reply.error() != 0) {
    throw std::system_error(reply.error(), std::generic_category(), "VERSION");
  }
  map_region(GBA_REGION_DOORBELLS, doorbells_, GBA_BAR2_SIZE);
  map_region(GBA_REGION_FLAGS, bar_flags_, GBA_BAR4_SIZE);
  write(0x04, 0x6, 2, GBA_REGION_CONFIG);
  map_dma(kFlagIova, flags.size, 0, flag_fd_.get());
  if (flags.sealed) {
    seal(flag_fd_.get());
  }
  find_kick();
}

Fd Port::map_region(unsigned index, Memory& memory, std::size_t size) {
  vfio_user_region_info info{};
  info.argsz = sizeof info;
  info.index = index;
  auto reply = client_.call(VFIO_USER_DEVICE_GET_REGION_INFO, bytes_of(info));
  memory = Memory(reply.fds.at(0).get(), size);
  return std::move(reply.fds.at(0));
}

void Port::find_kick() {
  const vfio_user_region_io_fds request{.argsz = 4096, .flags = 0, .index = GBA_REGION_DOORBELLS, .count = 0};
  auto reply = client_.call(VFIO_USER_DEVICE_GET_REGION_IO_FDS, bytes_of(request));
  kick_ = std::move(reply.fds.at(0));
}

std::uint64_t Port::read(std::uint64_t offset, std::uint32_t size, std::uint32_t region) {
  const vfio_user_region_access access{.offset = offset, .region = region, .count = size};
  const auto reply = client_.call(VFIO_USER_REGION_READ, bytes_of(access));
  std::uint64_t value = 0;
  if (reply.payload.size() == sizeof access + size) {
    std::memcpy(&value, reply.payload.data() + sizeof access, size);
  }
  return value;
}

int Port::write(std::uint64_t offset, std::uint64_t value, std::uint32_t size, std::uint32_t region) {
  const vfio_user_region_access access{.offset = offset, .region = region, .count = size};
  const auto data = std::as_bytes(std::span(&value, 1)).first(size);
  return client_.call(VFIO_USER_REGION_WRITE, raw::join(bytes_of(access), data)).error();
}

int Port::map_dma(std::uint64_t iova, std::uint64_t size, std::uint64_t offset, int fd, std::uint32_t flags) {
  const vfio_user_dma_map map{.argsz = sizeof map, .flags = flags, .offset = offset, .address = iova, .size = size};
  const std::array fds{fd};
  return client_.call(VFIO_USER_DMA_MAP, bytes_of(map), fd < 0 ? std::span<const int>() : std::span<const int>(fds))
      .error();
}

int Port::unmap_dma(std::uint64_t iova, std::uint64_t size, std::uint32_t flags) {
  const vfio_user_dma_unmap unmap{.argsz = sizeof unmap, .flags = flags, .address = iova, .size = size};
  return client_.call(VFIO_USER_DMA_UNMAP, bytes_of(unmap)).error();
}

int Port::arm(unsigned index, unsigned start, std::span<const int> eventfds) {
  const vfio_user_irq_set set{.argsz = sizeof set,
                              .flags = VFIO_USER_IRQ_DATA_EVENTFD | VFIO_USER_IRQ_ACTION_TRIGGER,
                              .index = index,
                              .start = start,
                              .count = static_cast<std::uint32_t>(eventfds.size())};
  return client_.call(VFIO_USER_DEVICE_SET_IRQS, bytes_of(set), eventfds).error();
}

unsigned Port::command(unsigned opcode, unsigned group, unsigned member, std::uint32_t key) {
  write(GBA_REG_CMD, GBA_FIELD_PUT(GBA_CMD_OPCODE, opcode) | GBA_FIELD_PUT(GBA_CMD_GROUP, group) |
                         GBA_FIELD_PUT(GBA_CMD_MEMBER, member) | GBA_FIELD_PUT(GBA_CMD_KEY, key));
  return static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_STATUS_ERROR, read(GBA_REG_CMD_STATUS)));
}

Port::Group Port::make_group(unsigned members, std::uint64_t sequence) {
  if (const unsigned error = command(GBA_CMD_ALLOC); error != GBA_CMD_OK) {
    throw std::runtime_error("ALLOC failed with " + std::to_string(error));
  }
  const auto result_word = result();
  const Group group{.id = static_cast<unsigned>(GBA_FIELD_GET(GBA_CMD_RESULT_GROUP, result_word)),
                    .key = static_cast<std::uint32_t>(GBA_FIELD_GET(GBA_CMD_RESULT_KEY, result_word))};
  const auto base = GBA_GROUP_BASE(group.id);
  write(base + GBA_GROUP_MEMBER_COUNT, members, 4);
  for (unsigned first = 0; first < members; first += 64) {
    const unsigned bits = members - first;
    write(base + GBA_GROUP_MEMBER_MASK + first / 8, bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1);
  }
  write(base + GBA_GROUP_SEQUENCE, sequence);
  write(base + GBA_GROUP_CONTROL, GBA_CONTROL_ENABLE | GBA_CONTROL_ARM | GBA_CONTROL_IRQ_EN);
  return group;
}

void Port::join(const Group& group, unsigned member) {
  if (const unsigned error = command(GBA_CMD_JOIN, group.id, member, group.key); error != GBA_CMD_OK) {
    throw std::runtime_error("JOIN failed with " + std::to_string(error));
  }
  write(GBA_GROUP_BASE(group.id) + GBA_GROUP_RELEASE_ADDR + std::uint64_t{8} * member,
        kFlagIova + std::uint64_t{GBA_FLAG_STRIDE} * group.id);
}

void Port::arrive(const Group& group, unsigned member, std::uint64_t sequence, bool notify) {
  const auto word = GBA_FIELD_PUT(GBA_ARRIVAL_SEQUENCE, sequence) | GBA_FIELD_PUT(GBA_ARRIVAL_MEMBER, member) |
                    GBA_FIELD_PUT(GBA_ARRIVAL_VALID, 1) | GBA_FIELD_PUT(GBA_ARRIVAL_NOTIFY, notify ? 1 : 0);
  doorbells_.word(GBA_DOORBELL_SLOT(group.id)).exchange(word);  // a full fence, before the read of WAKEUP
  if ((doorbells_.half(GBA_DOORBELL_WAKEUP).load() & GBA_WAKEUP_SLEEPING) != 0) {
    kick();
  }
}

void Port::kick() {
  const std::uint64_t one = 1;
  if (::write(kick_.get(), &one, sizeof one) != sizeof one) {
    fail("kick");
  }
}

std::uint64_t Port::flag(const Group& group) const {
  return flags_.word(std::size_t{GBA_FLAG_STRIDE} * group.id).load(std::memory_order_acquire);
}

std::uint64_t Port::wait_flag(const Group& group, std::uint64_t before) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kTimeLimitMs);
  while (flag(group) == before && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  return flag(group);
}

}  // namespace raw
