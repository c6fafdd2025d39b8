// SPDX-License-Identifier: Apache-2.0
// Metrics of exchanges: the format, the numbers, and clients that are slow or hostile.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "kv/exchange/metrics.hpp"
#include "tests/support/network.hpp"
#include "tests/unit/kv/exchange_nodes.hpp"
#include "tests/unit/kv/http_client.hpp"
#include "tests/unit/kv/open_metrics.hpp"

namespace exchange_test {

extern std::atomic<int> polls;  // calls of poll() in this process: exchange_members_test.cpp

}  // namespace exchange_test

namespace {

using exchange_test::ask;
using exchange_test::Client;
using exchange_test::exchange_name;
using exchange_test::Member;
using exchange_test::OpenMetrics;
using exchange_test::Options;
using shmem::exchange::CallTimes;
using shmem::exchange::Histogram;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ExchangeMetrics, HistogramsPutEachTimeIntoItsRange) {
  EXPECT_EQ(Histogram::range_of(0), 0U);
  EXPECT_EQ(Histogram::range_of(1), 0U);
  for (std::size_t range = 0; range + 1 < Histogram::kRanges; ++range) {
    EXPECT_EQ(Histogram::range_of(Histogram::end_of(range)), range);
    EXPECT_EQ(Histogram::range_of(Histogram::end_of(range) + 1), range + 1);
  }
  EXPECT_EQ(Histogram::range_of(UINT64_MAX), Histogram::kRanges - 1);
}

TEST(ExchangeMetrics, ThePageFollowsTheRulesOfOpenMetrics) {
  shmemx_exchange_stats_t stats{};
  stats.pulled_bytes = UINT64_MAX;
  stats.failed_corrupt = 3;
  stats.failed_timeout = 4;
  stats.unreachable = 2;
  CallTimes times;
  times.pull.add(std::chrono::nanoseconds(400));
  times.pull.add(std::chrono::milliseconds(1));
  times.pull.add(std::chrono::hours(1));
  const std::string page = shmem::exchange::metrics_text("a.b-c_1", stats, times);
  const OpenMetrics metrics(page);
  EXPECT_EQ(metrics.problem(), "") << page;
  EXPECT_EQ(metrics.type("shmem_exchange_pulled_bytes"), "counter");
  EXPECT_THAT(page, HasSubstr("shmem_exchange_pulled_bytes_total{exchange=\"a.b-c_1\"} 18446744073709551615\n"));
  EXPECT_EQ(metrics.value("shmem_exchange_failed_blocks_total{cause=\"corrupt\"}"), 3);
  EXPECT_EQ(metrics.value("shmem_exchange_failed_blocks_total{cause=\"timeout\"}"), 4);
  EXPECT_EQ(metrics.value("shmem_exchange_failed_blocks_total{cause=\"other\"}"), 0);
  EXPECT_EQ(metrics.value("shmem_exchange_unreachable_members"), 2);
  EXPECT_EQ(metrics.value("shmem_exchange_pull_seconds_bucket{le=\"2.5e-07\"}"), 0);
  EXPECT_EQ(metrics.value("shmem_exchange_pull_seconds_bucket{le=\"5e-07\"}"), 1);
  EXPECT_EQ(metrics.value("shmem_exchange_pull_seconds_bucket{le=\"0.001024\"}"), 2);
  EXPECT_EQ(metrics.value("shmem_exchange_pull_seconds_count"), 3);
  EXPECT_NEAR(metrics.value("shmem_exchange_pull_seconds_sum"), 3600.001, 0.0001);
}

std::string get_page(std::uint64_t port) {
  const std::string answer = ask(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
  const auto body = answer.find("\r\n\r\n");
  return body != std::string::npos ? answer.substr(body + 4) : "";
}

int open_with(const std::string& name, const std::string& metrics) {
  Options options;
  options.metrics = metrics.c_str();
  const auto given = options.get();
  shmemx_exchange_t* exchange = nullptr;
  const int code = shmemx_exchange_open(name.c_str(), &given, &exchange);
  shmemx_exchange_close(exchange);
  return code;
}

/// A member for as long as this process lives.
bool open_metrics(const std::string& name, std::uint64_t port) {
  const std::string metrics = std::to_string(port);
  Options options;
  options.metrics = metrics.c_str();
  const auto given = options.get();
  shmemx_exchange_t* exchange = nullptr;
  return shmemx_exchange_open(name.c_str(), &given, &exchange) == 0;
}

/// An owner of a block, and a reader with metrics, in exchanges of a number of their own.
class ExchangeMetricsPage : public testing::Test {
 protected:
  void SetUp() override {
    if (open_with(exchange_name(299), "0") == -EOPNOTSUPP) {
      GTEST_SKIP() << shmemx_error_text();
    }
    owner_ = std::make_unique<Member>(name_);
    owner_->make_memory(4096);
    ASSERT_EQ(owner_->publish("key", 0, 100), 0);
    reader_ = std::make_unique<Member>(name_, with_port_0());
    port_ = reader_->stats().metrics_port;
    ASSERT_NE(port_, 0U);
  }
  static Options with_port_0() {
    Options options;
    options.metrics = "0";
    return options;
  }
  void pull_times(int times) {
    std::string bytes;
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(reader_->pull(reader_->find("key"), bytes), 0);
    }
  }

  static inline int number_ = 200;
  const std::string name_ = exchange_name(number_++);
  std::unique_ptr<Member> owner_, reader_;
  std::uint64_t port_ = 0;
};

/// ThreadSanitizer sees what the thread that answers reads, and open() writes meanwhile.
TEST_F(ExchangeMetricsPage, IsThereWhileAnExchangeIsBeingOpened) {
  const std::string port = std::to_string(test_support::free_loopback_port());
  std::atomic<bool> answered{false};
  std::thread client([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!answered && std::chrono::steady_clock::now() < end) {
      answered = !ask(std::stoul(port), "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").empty();
    }
  });
  Options options;
  options.metrics = port.c_str();
  const Member member(exchange_name(298), options);
  client.join();
  EXPECT_TRUE(answered);
}

TEST_F(ExchangeMetricsPage, CountsWhatWasPulledAndWhatFailed) {
  pull_times(7);
  EXPECT_EQ(reader_->find("no key").status, -ENOENT);
  const auto stale = reader_->find("key");
  ASSERT_EQ(owner_->withdraw("key"), 0);
  std::string bytes;
  EXPECT_EQ(reader_->pull(stale, bytes), -ESTALE);

  const std::string page = get_page(port_);
  const OpenMetrics metrics(page);
  EXPECT_EQ(metrics.problem(), "") << page;
  EXPECT_EQ(metrics.value("shmem_exchange_pulled_blocks_total"), 7);
  EXPECT_EQ(metrics.value("shmem_exchange_pulled_bytes_total"), 700);
  EXPECT_EQ(metrics.value("shmem_exchange_failed_blocks_total{cause=\"stale\"}"), 1);
  EXPECT_EQ(metrics.value("shmem_exchange_failed_blocks_total{cause=\"owner_dead\"}"), 0);
  EXPECT_EQ(metrics.value("shmem_exchange_found_keys_total"), 8);
  EXPECT_EQ(metrics.value("shmem_exchange_missed_keys_total"), 1);
  EXPECT_EQ(metrics.value("shmem_exchange_pull_seconds_count"), 8);
  EXPECT_EQ(metrics.value("shmem_exchange_find_seconds_count"), 9);
  EXPECT_EQ(metrics.value("shmem_exchange_withdraw_seconds_count"), 0) << "the owner's";
  EXPECT_EQ(metrics.value("shmem_exchange_members"), 1);
  EXPECT_THAT(page, HasSubstr("exchange=\"" + name_ + "\""));
}

TEST_F(ExchangeMetricsPage, CountsWhatConcernsMembersOnOtherNodes) {
  if (!KV_WITH_UCX) {
    GTEST_SKIP() << "built without UCX";
  }
  const std::string name = exchange_name(295);
  Options options = with_port_0();
  options.lease_ms = 60'000;
  const auto owner = exchange_test::connected_member(name, "node 1", "", options);
  owner->make_memory(4096);
  ASSERT_EQ(owner->publish("key", 0, 100, 1), 0);
  const auto reader = exchange_test::connected_member(name, "node 2", exchange_test::address_of(*owner), with_port_0());
  std::string bytes;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(reader->pull(reader->find("key"), bytes), 0);
  }
  EXPECT_EQ(reader->find("no key").status, -ENOENT);
  const auto stale = reader->find("key", 0, 60'000);
  EXPECT_EQ(owner->withdraw("key"), -EBUSY);
  EXPECT_EQ(reader->pull(stale, bytes), -ESTALE);

  const OpenMetrics of_reader(get_page(reader->stats().metrics_port));
  EXPECT_EQ(of_reader.problem(), "");
  EXPECT_EQ(of_reader.value("shmem_exchange_members"), 1);
  EXPECT_EQ(of_reader.value("shmem_exchange_pulled_blocks_total"), 3);
  EXPECT_EQ(of_reader.value("shmem_exchange_pulled_bytes_total"), 300);
  EXPECT_EQ(of_reader.value("shmem_exchange_found_keys_total"), 4);
  EXPECT_EQ(of_reader.value("shmem_exchange_missed_keys_total"), 1);
  EXPECT_EQ(of_reader.value("shmem_exchange_failed_blocks_total{cause=\"stale\"}"), 1);
  EXPECT_EQ(of_reader.value("shmem_exchange_pull_seconds_count"), 4);
  const OpenMetrics of_owner(get_page(owner->stats().metrics_port));
  EXPECT_EQ(of_owner.value("shmem_exchange_readers"), 1);
  EXPECT_EQ(of_owner.value("shmem_exchange_published_blocks_total"), 1);
  EXPECT_EQ(of_owner.value("shmem_exchange_pulled_blocks_total"), 0) << "it has served them";
}

TEST_F(ExchangeMetricsPage, ListensOnOneAddressOnly) {
  EXPECT_TRUE(Client(port_).connected());
  EXPECT_FALSE(Client(port_, "127.0.0.2").connected()) << "this host has that address as well";
  reader_->close();
  EXPECT_FALSE(Client(port_).connected());
}

TEST_F(ExchangeMetricsPage, AnswersNothingElse) {
  EXPECT_THAT(ask(port_, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(port_, "GET /metrics/../metrics HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(port_, "DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask(port_, "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\nx"),
              StartsWith("HTTP/1.1 405 "));
  const auto head = ask(port_, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 "));
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST_F(ExchangeMetricsPage, SlowAndHostileClientsDoNotHoldUpPulls) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(std::make_unique<Client>(port_));
    ASSERT_TRUE(clients.back()->connected());
    switch (i % 5) {
      case 0:
        break;  // says nothing
      case 1:
        clients.back()->send("GET /met");
        break;
      case 2:
        clients.back()->send("GET /metrics HTTP/1.1\r\nHost: a\r\n" + std::string(100'000, 'h') + "\r\n\r\n");
        break;
      case 3:
        clients.back()->send(std::string("\0\xff\r\n\r\n\x16\x03\x01", 9).append(1000, '\n'));
        break;
      default:  // asks often, and takes no answer
        for (int asked = 0; asked < 100; ++asked) {
          clients.back()->send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
        }
    }
  }
  pull_times(1000);
  EXPECT_EQ(reader_->stats().pulled_blocks, 1000U);
  clients.clear();
  EXPECT_EQ(OpenMetrics(get_page(port_)).value("shmem_exchange_pulled_blocks_total"), 1000);
}

TEST_F(ExchangeMetricsPage, ClosesWhileClientsWait) {
  const Client silent(port_);
  const Client half(port_);
  half.send("GET /metrics HT");
  reader_->close();
  EXPECT_EQ(silent.answer(), "");
}

TEST_F(ExchangeMetricsPage, ClosesWhileItReadsWrongRequests) {
  const std::string wrong = "GET /metrics HTTP/1.1\r\nHost: a\r\n" + std::string(100'000, 'h') + "\r\n\r\n";
  for (int round = 0; round < 200; ++round) {
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 30; ++i) {
      clients.push_back(std::make_unique<Client>(port_));
      clients.back()->send(wrong);
    }
    reader_ = std::make_unique<Member>(name_, with_port_0());
    port_ = reader_->stats().metrics_port;
    ASSERT_NE(port_, 0U) << "in round " << round;
  }
}

/// Without a descriptor for it, the client stays in the kernel's queue, and a wait for clients ends at once.
TEST_F(ExchangeMetricsPage, ClientsWithoutDescriptorsDoNotKeepTheProcessorBusy) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const base::UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(base::UniqueFd(::dup(client.get())).get());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port_));
  ::inet_pton(AF_INET, "127.0.0.1", &where.sin_addr);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
  const auto begin = std::chrono::steady_clock::now();
  exchange_test::polls = 0;
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const int polls = exchange_test::polls;
  EXPECT_LT(polls, 600 * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(OpenMetrics(get_page(port_)).problem(), "");
}

/// With a client that is connected when the member is killed. This process has no member: AddressSanitizer does not
/// support threads that a child starts if its parent was just starting one.
TEST(ExchangeMetricsPort, IsFreeWithItsClientsOnceAMemberThatHasAChildIsKilled) {
  const std::string name = exchange_name(295);
  if (open_with(name, "0") == -EOPNOTSUPP) {
    GTEST_SKIP() << shmemx_error_text();
  }
  const std::uint64_t port = test_support::free_loopback_port();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const base::UniqueFd life(ends[0]);
  base::UniqueFd childs_end(ends[1]);
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe2(go.data(), O_CLOEXEC), 0);
  const base::UniqueFd wait_end(go[0]);
  const base::UniqueFd go_end(go[1]);
  const pid_t member = ::fork();
  if (member == 0) {
    ::setpgid(0, 0);
    ::alarm(60);
    char byte = 0;
    const bool good = open_metrics(name, port) && ::write(childs_end.get(), "x", 1) == 1 &&
                      ::read(wait_end.get(), &byte, 1) == 1 && ::fork() >= 0 &&
                      ::write(childs_end.get(), "x", 1) == 1;  // both
    ::alarm(60);                                               // also of the child
    ::pause();
    ::_exit(good ? 0 : 1);
  }
  childs_end.reset();
  char byte = 0;
  ASSERT_EQ(::read(life.get(), &byte, 1), 1);
  const Client client(port);
  client.send("GET /met");
  EXPECT_NE(ask(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), "");  // the first one is accepted, too
  ASSERT_EQ(::write(go_end.get(), "x", 1), 1);
  for (int process = 0; process < 2; ++process) {
    ASSERT_EQ(::read(life.get(), &byte, 1), 1);
  }
  ASSERT_EQ(::kill(member, SIGKILL), 0);
  ASSERT_EQ(::waitpid(member, nullptr, 0), member);
  EXPECT_TRUE(client.ends());
  EXPECT_EQ(open_with(name, std::to_string(port)), 0) << shmemx_error_text();
  pollfd child{.fd = life.get(), .events = 0, .revents = 0};
  EXPECT_EQ(::poll(&child, 1, 0), 0) << "the child has ended as well, so that this shows nothing";
  ::kill(-member, SIGKILL);
}

TEST_F(ExchangeMetricsPage, TellsWhichAddressIsWrong) {
  const std::string name = exchange_name(298);
  for (const char* const address :
       {"", "x", "1.2.3:80", "70000", "127.0.0.1", "127.0.0.1:", "::1:80", "[127.0.0.1]:80"}) {
    EXPECT_EQ(open_with(name, address), -EINVAL) << address;
    EXPECT_THAT(shmemx_error_text(), HasSubstr("metrics at \"" + std::string(address) + "\""));
  }
  EXPECT_EQ(open_with(name, std::to_string(port_)), -EADDRINUSE);
  EXPECT_THAT(shmemx_error_text(), HasSubstr("127.0.0.1:" + std::to_string(port_)));
  EXPECT_EQ(open_with(name, "192.0.2.1:0"), -EADDRNOTAVAIL);
  EXPECT_EQ(open_with(name, "0.0.0.0:0"), 0);
  EXPECT_THAT(open_with(name, "[::1]:0"), AnyOf(0, -EADDRNOTAVAIL, -EAFNOSUPPORT));
}

TEST(ExchangeMetrics, AreOffUnlessAskedFor) {
  Member member(exchange_name(297));
  EXPECT_EQ(member.stats().metrics_port, 0U);
}

TEST(ExchangeMetrics, MembersSeeTheCountersOfOthers) {
  Member owner(exchange_name(296));
  owner.make_memory(4096);
  ASSERT_EQ(owner.publish("key", 0, 100), 0);
  Member reader(exchange_name(296));
  std::string bytes;
  ASSERT_EQ(reader.pull(reader.find("key"), bytes), 0);
  reader.find("no key");

  shmemx_exchange_stats_t stats{};
  ASSERT_EQ(shmemx_exchange_member_stats(reader.get(), 0, &stats), 0);
  EXPECT_EQ(stats.id, owner.stats().id);
  EXPECT_EQ(stats.blocks, 1U);
  EXPECT_EQ(stats.published, 1U);
  EXPECT_EQ(stats.pulled_blocks, 0U);
  Member third(exchange_name(296));
  ASSERT_EQ(shmemx_exchange_member_stats(third.get(), 1, &stats), 0);
  EXPECT_EQ(stats.id, reader.stats().id);
  EXPECT_EQ(stats.pulled_bytes, 100U);
  EXPECT_EQ(stats.missed, 1U);
  EXPECT_EQ(shmemx_exchange_member_stats(third.get(), 2, &stats), -ENOENT) << "its own seat";
  EXPECT_EQ(shmemx_exchange_member_stats(third.get(), 63, &stats), -ENOENT);
  EXPECT_EQ(shmemx_exchange_member_stats(third.get(), 0, nullptr), -EINVAL);
}

}  // namespace
