// SPDX-License-Identifier: Apache-2.0
// kv_exchange hold --events: indexes of a holder's blocks that processes rebuild from its lines.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "shmemx.h"
#include "shmemx_exchange.h"
#include "tests/support/process.hpp"

namespace {

using test_support::Process;
using test_support::Seconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr Seconds kLimit{60};
constexpr std::uint64_t kLayout = 7;
/// How many events the holder keeps.
constexpr std::size_t kKept = 65'536;

/// A connection, and the index of the holder's blocks that its lines make.
class Subscriber {
 public:
  explicit Subscriber(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int small = 4096;  // what the kernel keeps for one that does not read
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
  }

  /// Reads what is there, for at most `ms`. False: the connection has ended.
  bool read(int ms = 0) {
    pollfd waiting{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, ms) != 1) {
      return true;
    }
    std::array<char, 65'536> bytes{};
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    text_.append(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      apply(text_.substr(begin, end - begin));
    }
    text_.erase(0, begin);
    return got > 0 || (got < 0 && errno == EAGAIN);
  }
  /// Reads until the index has all events up to `number`, after a list that is complete.
  bool read_up_to(std::uint64_t number) {
    const auto end = Clock::now() + kLimit;
    bool goes_on = true;
    while (goes_on && (!live_ || last_ < number) && Clock::now() < end) {
      goes_on = read(100);
    }
    return live_ && last_ >= number;
  }

  [[nodiscard]] const std::set<std::string>& keys() const { return keys_; }
  [[nodiscard]] int lists() const { return lists_; }
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  void apply(const std::string& line) {
    std::istringstream words(line);
    std::string what;
    std::uint64_t number = 0;
    words >> what >> number;
    if (what == "begin" || what == "live") {
      live_ = what == "live";
      lists_ += live_ ? 0 : 1;
      last_ = number;
      if (!live_) {
        keys_.clear();
      }
      return;
    }
    std::string layout;
    std::uint64_t bytes = 0;
    std::string key;
    words >> layout >> bytes >> key;
    EXPECT_TRUE(layout == "7" && bytes != 0 && !key.empty()) << line;
    if (what == "block") {
      EXPECT_EQ(number, last_) << line;
    } else {
      EXPECT_EQ(number, last_ + 1) << line;
      last_ = number;
    }
    if (what == "removed") {
      keys_.erase(key);
    } else {
      EXPECT_TRUE(what == "block" || what == "stored") << line;
      keys_.insert(key);
    }
  }

  base::UniqueFd socket_;
  std::string text_;  // of a line that has not come whole
  std::set<std::string> keys_;
  std::uint64_t last_ = 0;
  bool live_ = false;
  int lists_ = 0;
};

class HolderEvents : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(holder_.wait_for_output("kv_exchange: events: on port ", kLimit)) << holder_.output();
    const std::string output = holder_.output();
    port_ = static_cast<std::uint16_t>(std::atoi(output.c_str() + output.rfind(' ')));
    ASSERT_EQ(shmemx_exchange_open(name_.c_str(), nullptr, &engine_), 0) << shmemx_error_text();
    ASSERT_EQ(shmemx_exchange_use_holder(engine_, nullptr, 60'000), 0) << "longer than any machine is busy";
  }
  ~HolderEvents() override { shmemx_exchange_close(engine_); }

  static std::vector<std::string> command(std::vector<std::string> words) {
    words.insert(words.begin(), test_support::program("kv_exchange"));
    return words;
  }
  void put(const std::vector<std::string>& keys) {
    static constexpr char kBytes[] = "bytes";
    std::vector<shmemx_exchange_put_t> puts(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      puts[i].key = {keys[i].data(), keys[i].size()};
      puts[i].source = kBytes;
      puts[i].bytes = sizeof kBytes;
      puts[i].layout = kLayout;
    }
    ASSERT_EQ(shmemx_exchange_put(engine_, puts.data(), puts.size()), static_cast<int>(keys.size()))
        << shmemx_error_text();
  }
  void discard(const std::vector<std::string>& keys) {
    std::vector<shmemx_exchange_key_t> names;
    names.reserve(keys.size());
    for (const std::string& key : keys) {
      names.push_back({key.data(), key.size()});
    }
    ASSERT_EQ(shmemx_exchange_discard(engine_, names.data(), names.size(), kLayout, nullptr),
              static_cast<int>(keys.size()))
        << shmemx_error_text();
  }

  const std::string name_ = "events-" + std::to_string(::getpid());
  Process holder_{command({"hold", name_, "--bytes", "4MiB", "--events", "0"})};
  std::uint16_t port_ = 0;
  shmemx_exchange_t* engine_ = nullptr;
};

/// Processor time of a process, in ticks of 10 ms.
long ticks_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::vector<std::string> all((std::istream_iterator<std::string>(fields)), {});
  return std::stol(all.at(11)) + std::stol(all.at(12));
}

/// poll() fails at once if this process may have fewer descriptors than it is asked about.
TEST_F(HolderEvents, AServerThatCannotWaitDoesNotSpin) {
  Subscriber first(port_);
  ASSERT_TRUE(first.read_up_to(0));
  rlimit before{};
  ASSERT_EQ(::prlimit(holder_.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  const rlimit lowered{.rlim_cur = 1, .rlim_max = before.rlim_max};
  ASSERT_EQ(::prlimit(holder_.pid(), RLIMIT_NOFILE, &lowered, nullptr), 0);
  const long begin = ticks_of(holder_.pid());
  ::sleep(2);
  EXPECT_LT(ticks_of(holder_.pid()) - begin, 40) << "of 200";
  ASSERT_EQ(::prlimit(holder_.pid(), RLIMIT_NOFILE, &before, nullptr), 0);
  put({"a"});
  EXPECT_TRUE(first.read_up_to(1));
}

TEST_F(HolderEvents, AreAnIndexOfItsBlocks) {
  Subscriber first(port_);
  ASSERT_TRUE(first.read_up_to(0));
  EXPECT_TRUE(first.keys().empty());
  put({"a", "b", "c"});
  discard({"b"});
  ASSERT_TRUE(first.read_up_to(4));
  EXPECT_EQ(first.keys(), (std::set<std::string>{"a", "c"}));
  Subscriber second(port_);
  ASSERT_TRUE(second.read_up_to(4));
  EXPECT_EQ(second.keys(), first.keys());
  put({"d"});
  ASSERT_TRUE(first.read_up_to(5) && second.read_up_to(5));
  EXPECT_EQ(second.keys(), (std::set<std::string>{"a", "c", "d"}));
  EXPECT_EQ(first.keys(), second.keys());
  EXPECT_EQ(first.lists(), 1);
}

TEST_F(HolderEvents, OneThatDoesNotReadDelaysNobodyAndGetsAListLater) {
  Subscriber slow(port_);
  Subscriber quick(port_);
  ASSERT_TRUE(slow.read_up_to(0) && quick.read_up_to(0));
  put({"stays"});
  std::uint64_t events = 1;
  std::vector<std::string> keys(64);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = std::string(80, 'k') + std::to_string(i);  // long, so that what the kernels keep is soon full
  }
  // As many as the holder keeps, twice; the quick one reads them meanwhile.
  while (events < 2 * kKept) {
    put(keys);
    discard(keys);
    events += 2 * keys.size();
    ASSERT_TRUE(quick.read()) << "after " << events;
    if (quick.last() + kKept / 2 < events) {
      ASSERT_TRUE(quick.read_up_to(events - kKept / 4)) << quick.last() << " of " << events;
    }
  }
  ASSERT_TRUE(quick.read_up_to(events));
  EXPECT_EQ(quick.lists(), 1) << "no event was lost";
  EXPECT_EQ(quick.keys(), std::set<std::string>{"stays"});
  ASSERT_TRUE(slow.read_up_to(events)) << slow.last() << " of " << events;
  EXPECT_GE(slow.lists(), 2) << "it was told of the gap";
  EXPECT_EQ(slow.keys(), std::set<std::string>{"stays"});
}

TEST_F(HolderEvents, AListOfManyBlocksComesWhole) {
  std::set<std::string> all;
  for (int i = 0; i < 32; ++i) {
    std::vector<std::string> keys(32);
    for (std::size_t j = 0; j < keys.size(); ++j) {
      keys[j] = std::to_string(i) + "-" + std::to_string(j);
    }
    put(keys);
    all.insert(keys.begin(), keys.end());
  }
  Subscriber late(port_);
  ASSERT_TRUE(late.read_up_to(all.size()));
  EXPECT_EQ(late.keys(), all);
}

TEST_F(HolderEvents, ManyConnectAndLeave) {
  constexpr int kMost = 64;
  std::vector<std::unique_ptr<Subscriber>> many;
  for (int i = 0; i < kMost; ++i) {
    many.push_back(std::make_unique<Subscriber>(port_));
    ASSERT_TRUE(many.back()->read_up_to(0)) << i;
  }
  Subscriber refused(port_);
  EXPECT_FALSE(refused.read(60'000)) << "its connection ends";
  many.pop_back();
  bool taken = false;
  for (const auto end = Clock::now() + kLimit; !taken && Clock::now() < end;) {
    Subscriber next(port_);
    while (next.read(100) && next.lists() == 0 && Clock::now() < end) {
    }
    taken = next.lists() == 1;
  }
  EXPECT_TRUE(taken);
  put({"a"});
  EXPECT_TRUE(many.front()->read_up_to(1));
  holder_.signal(SIGTERM);
  EXPECT_EQ(holder_.wait(kLimit)->code, 0);
  const auto end = Clock::now() + kLimit;
  while (many.front()->read(100) && Clock::now() < end) {
  }
  EXPECT_LT(Clock::now(), end) << "the end of the holder is seen";
}

TEST_F(HolderEvents, SaysWhyItCannotListen) {
  const auto taken = test_support::run(
      command({"hold", name_ + "-other", "--bytes", "1MiB", "--events", std::to_string(port_)}), {}, kLimit);
  EXPECT_EQ(taken.exit.code, 1);
  EXPECT_THAT(taken.output, HasSubstr("kv_exchange: cannot send events at \"" + std::to_string(port_) + "\": "));
  EXPECT_THAT(taken.output, HasSubstr("name another address or port"));
  const auto wrong =
      test_support::run(command({"hold", name_ + "-other", "--bytes", "1MiB", "--events", "nowhere"}), {}, kLimit);
  EXPECT_EQ(wrong.exit.code, 1);
  EXPECT_THAT(wrong.output, HasSubstr("cannot send events at \"nowhere\": "));
}

}  // namespace
