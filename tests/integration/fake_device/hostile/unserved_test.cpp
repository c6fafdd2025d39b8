// SPDX-License-Identifier: Apache-2.0
// A file of a FUSE file system whose server does not answer: a close of it does not end before the server does.
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/integration/fake_device/hostile/attack.hpp"

namespace {

using raw::Client;
using raw::Fd;
using raw::milliseconds;
using raw::Port;

/// An open file of such a file system, which is a single file. It is mounted for a thread that has ended, so that
/// nothing is left behind.
class UnservedFile {
 public:
  UnservedFile() : device_(::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK)) {
    if (device_.get() < 0) {
      error_ = std::string("/dev/fuse: ") + std::strerror(errno);
      return;
    }
    server_ = std::thread([this] { serve(); });
    std::thread([this] { open_file(); }).join();
  }
  UnservedFile(const UnservedFile&) = delete;
  UnservedFile& operator=(const UnservedFile&) = delete;
  ~UnservedFile() { end(); }

  [[nodiscard]] int get() const { return file_.get(); }
  /// Why there is none, or "".
  [[nodiscard]] const std::string& error() const { return error_; }
  /// The server ends: all who wait for it get an error.
  void end() {
    stop_ = true;
    if (server_.joinable()) {
      server_.join();
    }
    device_ = Fd();
    file_ = Fd();
  }

 private:
  void open_file() {
    const auto call = [this](const char* what, int result) {
      if (result < 0 && error_.empty()) {
        error_ = std::string(what) + ": " + std::strerror(errno);
      }
      return error_.empty();
    };
    const std::string place = dir_.file("file");
    const std::string options = fmt::format("fd={},rootmode=100666,user_id=0,group_id=0", device_.get());
    std::ofstream(place) << "";
    if (call("unshare", ::unshare(CLONE_NEWNS)) &&
        call("mount", ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr)) &&
        call("mount", ::mount("unserved", place.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()))) {
      file_ = Fd(::open(place.c_str(), O_RDWR | O_CLOEXEC));
      call("open", file_.get());
    }
  }

  void serve() {
    std::vector<std::byte> request(std::size_t{1} << 20);
    while (!stop_) {
      pollfd ready{.fd = device_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 20) != 1 || ::read(device_.get(), request.data(), request.size()) <= 0) {
        continue;
      }
      fuse_in_header header{};
      std::memcpy(&header, request.data(), sizeof header);
      if (header.opcode == FUSE_INIT) {
        fuse_init_out version{};
        version.major = FUSE_KERNEL_VERSION;
        version.minor = FUSE_KERNEL_MINOR_VERSION;
        version.max_write = 4096;
        answer(header, version);
      } else if (header.opcode == FUSE_GETATTR) {
        fuse_attr_out attributes{};
        attributes.attr.ino = FUSE_ROOT_ID;
        attributes.attr.mode = S_IFREG | 0666;
        attributes.attr.nlink = 1;
        answer(header, attributes);
      } else if (header.opcode == FUSE_OPEN) {
        answer(header, fuse_open_out{});
      }
    }
  }

  template <typename Body>
  void answer(const fuse_in_header& request, const Body& body) const {
    fuse_out_header header{};
    header.len = sizeof header + sizeof body;
    header.unique = request.unique;
    auto bytes = raw::bytes_of(header);
    bytes = raw::join(std::move(bytes), std::as_bytes(std::span(&body, 1)));
    [[maybe_unused]] const auto written = ::write(device_.get(), bytes.data(), bytes.size());
  }

  test_support::TempDir dir_;
  Fd device_;
  Fd file_;
  std::string error_;
  std::atomic<bool> stop_ = false;
  std::thread server_;
};

/// The user that connects, if this is root. Of this thread alone: the library's call changes all threads.
class AsAnotherUser {
 public:
  AsAnotherUser() { become(kNobody); }
  AsAnotherUser(const AsAnotherUser&) = delete;
  AsAnotherUser& operator=(const AsAnotherUser&) = delete;
  ~AsAnotherUser() { become(0); }

 private:
  static constexpr uid_t kNobody = 65534;
  static void become(uid_t user) { EXPECT_EQ(::syscall(SYS_setresuid, -1, user, -1), 0) << std::strerror(errno); }
};

/// A device for all users, with few files, so that they could soon be used up.
class Unserved : public raw::Attacks {
 protected:
  Unserved() : Attacks({"--mode", "666"}, {"bash", "-c", R"(ulimit -n 4096 && exec "$0" "$@")"}) {
    std::filesystem::permissions(folder().path(), std::filesystem::perms(0755));
  }

  /// One client sends the file until the device drops it, or all is sent. False: it was not dropped.
  bool send_often(int file) {
    std::optional<Client> client;
    {
      const AsAnotherUser other;
      client.emplace(path());
    }
    limit_sends(*client);
    client->version();
    const std::vector<int> fds(16, file);
    bool sent = true;
    for (int count = 0; count < 30 && sent; ++count) {
      sent = raw::send(*client, VFIO_USER_DEVICE_RESET, {}, fds);
    }
    return !sent;
  }
};

TEST_F(Unserved, FilesOfOneUserStopNoOtherUsers) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root, to mount a FUSE file system and to be two users";
  }
  UnservedFile file;
  if (!file.error().empty()) {
    GTEST_SKIP() << "no FUSE file system: " << file.error();
  }
  const std::string refusal = "file descriptors that its user has sent cannot be closed";
  // It takes a moment until the user's thread is known to be stuck. Before, it is refused for their number.
  const auto end = std::chrono::steady_clock::now() + test_support::Seconds(20);
  while (std::chrono::steady_clock::now() < end && device().output().find(refusal) == std::string::npos) {
    try {
      send_often(file.get());
    } catch (const std::exception&) {
      continue;  // dropped meanwhile
    }
  }
  EXPECT_TRUE(device().wait_for_output(refusal, test_support::Seconds(20))) << device().output();

  const auto before = open_files();
  for (int count = 0; count < 100; ++count) {
    Port newcomer(path());
    ASSERT_EQ(newcomer.arm(GBA_IRQ_MSIX, 0, std::array{raw::make_eventfd().get()}), 0);
  }
  expect_files(before);
  expect_unharmed();
  // The user itself is served, as long as it sends no descriptors.
  {
    const AsAnotherUser other;
    EXPECT_NO_THROW(Client(path()).version());
  }
  file.end();
  expect_no_files_left();
}

}  // namespace
