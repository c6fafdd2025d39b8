// SPDX-License-Identifier: Apache-2.0
// Thousands of connections at once.
#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "tests/integration/fake_device/hostile/attack.hpp"

namespace {

using raw::bytes_of;
using raw::Client;
using raw::FileLimit;
using raw::Port;

constexpr std::size_t kClients = 2000;
constexpr rlim_t kFilesWanted = 8000;
constexpr unsigned kBystanders = 2;

class Flood : public raw::Bystanders {
 protected:
  void SetUp() override {
    if (!limit_.enough()) {
      GTEST_SKIP() << "needs " << kFilesWanted << " open files (ulimit -Hn)";
    }
  }

  static std::vector<std::unique_ptr<Client>> connect(std::size_t count, const std::string& socket) {
    std::vector<std::unique_ptr<Client>> clients(count);
    for (auto& client : clients) {
      client = std::make_unique<Client>(socket);
    }
    return clients;
  }

  /// The command line of a server that may open 1,024 files.
  static std::vector<std::string> small_server(const std::string& socket,
                                               const std::vector<std::string>& options = {}) {
    std::vector<std::string> line{"bash", "-c", R"(ulimit -n 1024 && exec "$0" "$@")"};
    for (auto& word : command_line(socket, options)) {
      line.push_back(word);
    }
    return line;
  }

  static bool closed(const Client& client) {
    pollfd entry{.fd = client.socket(), .events = 0, .revents = 0};
    return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLHUP) != 0;
  }

 private:
  FileLimit limit_{kFilesWanted};
};

TEST_F(Flood, EachGoodClientGetsAPortOrARefusal) {
  auto clients = connect(kClients, path());
  const vfio_user_version version{.major = 0, .minor = 0};
  for (auto& client : clients) {
    ASSERT_TRUE(client->send_bytes(client->frame(VFIO_USER_VERSION, bytes_of(version))));
  }
  expect_unharmed();
  std::size_t opened = 0;
  for (auto& client : clients) {
    const auto reply = client->receive();
    ASSERT_TRUE(reply) << device().output();
    if (reply->error() == 0) {
      ++opened;
    } else {
      ASSERT_EQ(reply->error(), EBUSY);
      EXPECT_EQ(client->receive(), std::nullopt) << "a refused client is disconnected";
    }
  }
  EXPECT_EQ(opened, GBA_MAX_MEMBERS - kBystanders);
  expect_unharmed();
  clients.clear();
  EXPECT_EQ(Port(path()).read(GBA_REG_MAGIC, 4), GBA_MAGIC_VALUE);
  expect_unharmed();
  expect_no_files_left();
}

// If the device dropped silent clients one by one, each after ten seconds, the new port would not be served in time.
TEST_F(Flood, SilentClientsDelayNoOtherClient) {
  {
    const auto silent = connect(kClients, path());
    EXPECT_EQ(Port(path()).read(GBA_REG_PORT_ID, 4), kBystanders);
    expect_unharmed();
  }
  expect_no_files_left();
}

// A device that may open 1,024 files gives a quarter of them to silent clients, and then drops the oldest of these.
TEST_F(Flood, TheOldestOfTooManySilentClientsAreDropped) {
  const auto small = folder().file("small.sock");
  test_support::Process server(small_server(small));
  ASSERT_TRUE(server.wait_for_output("ready on", test_support::Seconds(20))) << server.output();
  const auto silent = connect(1000, small);
  EXPECT_EQ(Port(small).read(GBA_REG_PORT_ID, 4), 0U);
  EXPECT_TRUE(closed(*silent.front()));
}

/// Opens silent connections without end while the object lives.
class SilentCrowd {
 public:
  explicit SilentCrowd(std::string path) : path_(std::move(path)), thread_([this] { run(); }) {}
  SilentCrowd(const SilentCrowd&) = delete;
  SilentCrowd& operator=(const SilentCrowd&) = delete;
  ~SilentCrowd() {
    stop_ = true;
    thread_.join();
  }

  void wait_for(std::size_t count) const {
    while (count_ < count) {
      std::this_thread::yield();
    }
  }

 private:
  /// More than the device accepts and lets wait together, so that it drops the oldest.
  static constexpr std::size_t kMost = 5000;

  void run() {
    std::deque<Client> clients;
    while (!stop_) {
      clients.emplace_back(path_);
      ++count_;
      if (clients.size() > kMost) {
        clients.pop_front();
      }
    }
  }

  const std::string path_;
  std::atomic<bool> stop_ = false;
  std::atomic<std::size_t> count_ = 0;
  std::thread thread_;  // last, since it uses the other members
};

TEST_F(Flood, AtOneSocketDoesNotReachTheOther) {
  const auto small = folder().file("small.sock");
  const auto admin = folder().file("admin.sock");
  test_support::Process server(small_server(small, {"--admin-socket", admin}));
  ASSERT_TRUE(server.wait_for_output("ready on", test_support::Seconds(20))) << server.output();
  const SilentCrowd crowd(small);
  crowd.wait_for(1000);
  // In the queue of the silent clients, each would wait a fraction of a second.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  int opened = 0;
  while (opened < 200 && std::chrono::steady_clock::now() < end) {
    ASSERT_EQ(Port(admin).read(GBA_REG_PORT_ID, 4), GBA_MAX_MEMBERS);
    ++opened;
  }
  EXPECT_EQ(opened, 200);
}

}  // namespace
