// SPDX-License-Identifier: Apache-2.0
// gba selftest and bench with two ports: of one device, and of two processes that find each other as two hosts do.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "tests/integration/tool/run_gba.hpp"
#include "tests/support/job.hpp"
#include "tests/support/text.hpp"

namespace tool_test {
namespace {

using test_support::FakeDevice;
using testing::HasSubstr;

constexpr test_support::Seconds kLimit{60};

/// The object in a text that has other lines too.
Json json_in(const std::string& text) {
  const auto begin = text.find('{');
  auto json = begin == std::string::npos ? Json() : Json::parse_or_null(text.substr(begin));
  EXPECT_TRUE(json.is_object()) << text;
  return json;
}

/// gba COMMAND DEVICE --listen on a free port of this machine.
class Listener {
 public:
  explicit Listener(const std::string& command, const std::string& device, const std::vector<std::string>& more = {})
      : process_(line(command, device, more)) {
    EXPECT_TRUE(process_.wait_for_output("listening on 127.0.0.1:", kLimit)) << process_.output();
    const std::string text = process_.output();
    const auto port = test_support::first_match(text, "listening on (127.0.0.1:[0-9]+)");
    EXPECT_FALSE(port.empty()) << text;
    address_ = port.empty() ? "" : port[1];
  }

  [[nodiscard]] const std::string& address() const { return address_; }
  /// Its exit code, when it has ended.
  int code() {
    const auto exit = process_.wait(kLimit);
    EXPECT_TRUE(exit) << process_.output();
    return exit ? exit->code : -1;
  }
  std::string output() { return process_.output(); }

 private:
  static std::vector<std::string> line(const std::string& command, const std::string& device,
                                       const std::vector<std::string>& more) {
    std::vector<std::string> all{test_support::program("gba"), command, device, "--listen", "127.0.0.1:0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  test_support::Process process_;
  std::string address_;
};

void expect_percentiles(const Json& ns) {
  double last = 1;
  for (const auto* name : {"min", "p50", "p90", "p99", "p99.9", "max"}) {
    EXPECT_GE(ns.at(name).get<double>(), last) << ns;
    last = ns.at(name).get<double>();
  }
}

TEST(BenchWithTwoPorts, MeasuresBothPortsOfOneDevice) {
  const FakeDevice device;
  const Json result = gba_json({"bench", device.path(), "--peer", device.path(), "--rounds", "300"});
  EXPECT_EQ(result.at("members"), 2);
  EXPECT_EQ(result.at("rounds"), 300);
  EXPECT_NE(result.at("other_side").at("port"), result.at("port"));
  expect_percentiles(result.at("ns"));
  expect_percentiles(result.at("other_side").at("ns"));
  // It leaves nothing behind, and no member got an error release.
  EXPECT_EQ(gba_json({"groups", device.path(), "--interval", "0.01"}).at("groups").size(), 0U);
  EXPECT_EQ(gba_json({"info", device.path()}).at("counters").at("errors"), 0);
}

TEST(BenchWithTwoPorts, GivesBothHostsTheSameResults) {
  const FakeDevice device;
  Listener listener("bench", device.path(), {"--json"});
  const Json here = gba_json({"bench", device.path(), "--connect", listener.address(), "--rounds", "300"});
  EXPECT_EQ(listener.code(), 0) << listener.output();
  const Json there = json_in(listener.output());
  EXPECT_EQ(there.at("rounds"), 300) << "the side that connects says how many";
  expect_percentiles(here.at("ns"));
  EXPECT_EQ(here.at("ns"), there.at("other_side").at("ns"));
  EXPECT_EQ(there.at("ns"), here.at("other_side").at("ns"));
  EXPECT_EQ(here.at("port"), there.at("other_side").at("port"));
  EXPECT_EQ(there.at("port"), here.at("other_side").at("port"));
  EXPECT_EQ(gba_json({"info", device.path()}).at("counters").at("errors"), 0);
}

TEST(BenchWithTwoPorts, PrintsBothSides) {
  const FakeDevice device;
  Listener listener("bench", device.path());
  const auto here = gba({"bench", device.path(), "--connect", listener.address(), "--rounds", "100"});
  EXPECT_EQ(here.exit.code, 0) << here.output;
  EXPECT_EQ(listener.code(), 0) << listener.output();
  for (const std::string& text : {here.output, listener.output()}) {
    EXPECT_THAT(text, testing::ContainsRegex("here:  +min .*p50 .*p99 .*\nthere:  +min .*p50 .*p99 "));
  }
}

TEST(SelfTestWithTwoPorts, UsesThePortThatIsNamed) {
  const FakeDevice device;
  const Json result = gba_json({"selftest", device.path(), "--peer", device.path(), "--barriers", "50"});
  EXPECT_EQ(result.at("ok"), true) << result;
  const Json failed = gba_json({"selftest", device.path(), "--peer", "@no-such-gba-socket", "--barriers", "50"}, {}, 1);
  EXPECT_THAT(failed.dump(), HasSubstr("cannot open vfio-user:@no-such-gba-socket"));
}

TEST(SelfTestWithTwoPorts, RunsOverTwoHosts) {
  const FakeDevice device;
  Listener listener("selftest", device.path());
  const auto here = gba({"selftest", device.path(), "--connect", listener.address(), "--barriers", "50"});
  EXPECT_EQ(here.exit.code, 0) << here.output;
  EXPECT_THAT(here.output, HasSubstr("the other host is member 1, on port"));
  EXPECT_THAT(here.output, testing::ContainsRegex("ok +member left"));
  EXPECT_EQ(listener.code(), 0) << listener.output();
  for (const char* line : {"ok +connection +", "ok +join +as member 1, on port", "ok +barriers +",
                           "ok +other side +passed", ": passed\n"}) {
    EXPECT_THAT(listener.output(), testing::ContainsRegex(line));
  }
}

TEST(SelfTestWithTwoPorts, TellsBothHostsOfAProblem) {
  // It strikes while both members do barriers.
  const FakeDevice device({"--fault", "dma-fault:after=40"});
  Listener listener("selftest", device.path());
  const auto here = gba({"selftest", device.path(), "--connect", listener.address(), "--barriers", "10"});
  EXPECT_EQ(here.exit.code, 1) << here.output;
  EXPECT_EQ(listener.code(), 1) << listener.output();
  EXPECT_THAT(listener.output(), testing::ContainsRegex("problem +other side +[0-9]+ problem"));
}

TEST(TwoHosts, WithDifferentSwitchesAreFound) {
  const FakeDevice device;
  const FakeDevice other;
  Listener listener("bench", other.path());
  const auto here = gba({"bench", device.path(), "--connect", listener.address(), "--rounds", "10"});
  EXPECT_EQ(here.exit.code, 6) << here.output;
  EXPECT_THAT(here.output, HasSubstr("are both ports on the same switch?"));
  EXPECT_EQ(listener.code(), 4) << listener.output();
  EXPECT_THAT(listener.output(), HasSubstr("are both ports on the same switch?"));
}

TEST(TwoHosts, WithDifferentCommandsAreFound) {
  const FakeDevice device;
  Listener listener("selftest", device.path());
  const auto here = gba({"bench", device.path(), "--connect", listener.address()});
  EXPECT_EQ(here.exit.code, 6) << here.output;
  EXPECT_THAT(here.output, HasSubstr("it runs gba selftest, not gba bench"));
  EXPECT_EQ(listener.code(), 6) << listener.output();
}

TEST(TwoHosts, NobodyComes) {
  const FakeDevice device;
  const auto alone = gba({"bench", device.path(), "--listen", "127.0.0.1:0", "--timeout", "0.2"});
  EXPECT_EQ(alone.exit.code, 6) << alone.output;
  EXPECT_THAT(alone.output, HasSubstr("no gba has connected"));
}

TEST(TwoHosts, SayWhatIsWrongWithAnAddress) {
  const FakeDevice device;
  for (const auto& [option, address] :
       std::vector<std::pair<std::string, std::string>>{{"--listen", "vfio-user:/tmp/gba.sock"},
                                                        {"--connect", "host:port"},
                                                        {"--connect", "host:"},
                                                        {"--connect", "[::1]x"},
                                                        {"--listen", "127.0.0.1:70000"}}) {
    const auto outcome = gba({"bench", device.path(), option, address});
    EXPECT_EQ(outcome.exit.code, 2) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr("[IPV6]:PORT is wanted"));
  }
  EXPECT_EQ(gba({"bench", device.path(), "--listen", "--connect", "host"}).exit.code, 2);
}

/// A server that is not gba: it sends a text and waits for the end.
class Impostor {
 public:
  explicit Impostor(std::string text) : text_(std::move(text)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;
  ~Impostor() { thread_.join(); }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  void serve() {
    const base::UniqueFd client(::accept(listener_.get(), nullptr, nullptr));
    for (std::size_t sent = 0; sent < text_.size();) {
      const ssize_t more = ::send(client.get(), text_.data() + sent, text_.size() - sent, MSG_NOSIGNAL);
      if (more <= 0) {
        return;
      }
      sent += static_cast<std::size_t>(more);
    }
    char rest[256];
    while (::recv(client.get(), rest, sizeof rest, 0) > 0) {
    }
  }

  const std::string text_;
  base::UniqueFd listener_;
  std::string address_;
  std::thread thread_;
};

TEST(TwoHosts, CheckWhatIsAtTheOtherEnd) {
  const FakeDevice device;
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"{\"gba\":\"bench\",\"protocol\":99,\"version\":\"9.8.7\",\"host\":\"h\"}\n",
       "its protocol is 99, of libgba 9.8.7; here it is 1"},
      {"SSH-2.0-Server\r\n", "it is not gba: it sent \"SSH-2.0-Server?\""},
      {"[1]\n", "it is not gba"},
      {std::string(200'000, 'x'), "a message is too long"},
      {"", "no answer for 0.3 s"},
      {"{\"gba\":\"bench\",\"protocol\":1,\"version\":\"9.8.7\"}\n{\"port\":\"\\u001b[31m\"}\n",
       "a message without a valid \"port\""},
      {"{\"error\":\"gba: out of \\u001b[31mpaper\",\"code\":28}\n", "the other side: out of ?[31mpaper"}};
  for (const auto& [text, message] : wrong) {
    const Impostor server(text);
    const char* const limit = text.empty() ? "0.3" : "60";
    const auto outcome = gba({"bench", device.path(), "--connect", server.address(), "--timeout", limit});
    EXPECT_EQ(outcome.exit.code, 6) << outcome.output;
    EXPECT_THAT(outcome.output, HasSubstr(message));
  }
}

TEST(TwoHosts, NeedAListenerFirst) {
  const FakeDevice device;
  std::string address;
  {
    const Impostor gone("");
    address = gone.address();
    const auto outcome = gba({"bench", device.path(), "--connect", address, "--timeout", "0.1"});
    EXPECT_EQ(outcome.exit.code, 6);
  }
  const auto outcome = gba({"bench", device.path(), "--connect", address});
  EXPECT_EQ(outcome.exit.code, 6) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("start the same command there first, with --listen"));
}

}  // namespace
}  // namespace tool_test
