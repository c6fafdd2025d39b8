// SPDX-License-Identifier: Apache-2.0
// A member on another node that is linked and does not answer, and one whose calls wait while its process forks.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/support/sanitized.hpp"
#include "tests/support/text.hpp"
#include "tests/unit/kv/exchange_insider.hpp"

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about
using shmem::exchange::FoundItem;
using shmem::exchange::RemoteKind;

constexpr std::uint32_t kAnswerMs = 500;

/// What an owner says that has no blocks; or one block, of 8 bytes, under any key.
PortMessage answer_of(const RemoteHead& request, bool has_block = false) {
  RemoteHead head = request;
  if (request.kind == RemoteKind::kDescribe) {
    head.kind = RemoteKind::kDescribed;
    return Insider::message_of(head, {});
  }
  FoundItem item;
  item.epoch = has_block ? 2 : 0;
  item.bytes = has_block ? 8 : 0;
  item.status = has_block ? 0 : -ENOENT;
  head.kind = RemoteKind::kFound;
  return Insider::message_of(head, std::as_bytes(std::span(&item, 1)));
}

class ExchangeNodesSilent : public InsiderTest {
 protected:
  /// Whether a find has waited for an answer that did not come.
  bool waits_in_vain() {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(reader_->find("key").status, -ENOENT);
    return std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(kAnswerMs - 50);
  }
};

TEST_F(ExchangeNodesSilent, AMemberThatDoesNotAnswerCostsOneCall) {
  make_beside(730, kAnswerMs);
  const auto asked = std::make_shared<std::atomic<int>>(0);
  insider_->answer_with([asked](RemoteHead request) {
    *asked += request.kind == RemoteKind::kFind ? 1 : 0;
    return std::optional<PortMessage>();
  });
  EXPECT_TRUE(waits_in_vain());
  ASSERT_TRUE(insider_->is_ended());
  // Time for the next link.
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
       std::chrono::steady_clock::now() < end;) {
    EXPECT_EQ(reader_->find("key").status, -ENOENT);
    ::usleep(10'000);
  }
  EXPECT_EQ(*asked, 1);
  EXPECT_EQ(reader_->stats().members, 0U);
}

TEST_F(ExchangeNodesSilent, AMemberThatAnswersAgainIsAskedAgain) {
  make_beside(731, kAnswerMs);
  EXPECT_TRUE(waits_in_vain());
  insider_->answer_with([](RemoteHead request) { return answer_of(request, true); });
  for (int i = 0; i < 20'000 && reader_->stats().members == 0; ++i) {
    ::usleep(1000);
  }
  EXPECT_EQ(reader_->stats().members, 1U);
  EXPECT_EQ(reader_->find("key").status, 0);
}

std::set<std::string> declared_calls() {
  std::ifstream header(EXCHANGE_HEADER);
  std::stringstream text;
  text << header.rdbuf();
  std::set<std::string> names;
  for (const auto& call :
       test_support::all_matches(text.str(), "SHMEM_API [a-z0-9_* ]*?(shmemx_exchange_[a-z_]+)\\(")) {
    names.insert(call[1]);
  }
  return names;
}

/// In a forked process: the outcome of each call, where 1 is one that is right for a call that returns no errno.
std::map<std::string, int> outcomes(shmemx_exchange_t* exchange, shmemx_exchange_transfer_t* transfer) {
  ::alarm(120);  // ends a call that waits
  std::map<std::string, int> got;
  const auto note = [&got](const char* call, int code) { got[std::string("shmemx_exchange_") + call] = code; };
  shmemx_memory_t memory{.address = nullptr, .bytes = 4096, .fd = -1, .offset = 0};
  std::uint32_t region = 0;
  std::uint64_t cursor = 0;
  shmemx_exchange_entry_t entry{};
  shmemx_exchange_key_t key{.data = "key", .bytes = 3};
  shmemx_exchange_block_t block{};
  shmemx_exchange_name_t name{};
  shmemx_exchange_member_t member{};
  shmemx_exchange_stats_t stats{};
  shmemx_exchange_holder_stats_t holder{};
  shmemx_exchange_position_t position{};
  shmemx_exchange_event_t event{};
  shmemx_exchange_transfer_t* another = nullptr;
  char text[64];
  void* const to = text;
  shmemx_exchange_put_t put{};
  put.key = key;
  put.source = text;
  put.bytes = sizeof text;
  const std::string none;
  const auto network = network_of(none);
  note("connect", shmemx_exchange_connect(exchange, &network));
  note("address", shmemx_exchange_address(exchange, text, sizeof text));
  note("members", shmemx_exchange_members(exchange, &member, 1));
  note("register", shmemx_exchange_register(exchange, &memory, &region));
  note("unregister", shmemx_exchange_unregister(exchange, 1));
  note("publish", shmemx_exchange_publish(exchange, &entry, 1));
  note("withdraw", shmemx_exchange_withdraw(exchange, &key, 1, 0));
  note("find", shmemx_exchange_find(exchange, &key, 1, 0, 0, &block));
  note("release", shmemx_exchange_release(exchange, &block, 1));
  note("pull", shmemx_exchange_pull(exchange, &block, &to, 1, nullptr, nullptr));
  if (shmemx_exchange_pull(exchange, &block, &to, 1, nullptr, &another) != -EPERM) {
    note("pull", 0);
  }
  note("test", shmemx_exchange_test(transfer));
  note("wait", shmemx_exchange_wait(transfer, UINT64_MAX));
  note("list", shmemx_exchange_list(exchange, 0, &cursor, &name, &block, 1));
  note("stats", shmemx_exchange_stats(exchange, &stats));
  note("member_stats", shmemx_exchange_member_stats(exchange, 0, &stats));
  note("use_holder", shmemx_exchange_use_holder(exchange, "tenant", 0));
  note("put", shmemx_exchange_put(exchange, &put, 1));
  note("discard", shmemx_exchange_discard(exchange, &key, 1, 0, nullptr));
  note("discard_all", shmemx_exchange_discard_all(exchange));
  note("pin", shmemx_exchange_pin(exchange, &key, 1, 0, 1, nullptr));
  note("holder_stats", shmemx_exchange_holder_stats(exchange, &holder));
  note("events", shmemx_exchange_events(exchange, &position, &event, 1, UINT64_MAX));
  const bool is_told = std::strstr(shmemx_error_text(), "forked") != nullptr;
  shmemx_exchange_transfer_free(transfer);
  shmemx_exchange_close(exchange);
  note("transfer_free", is_told ? 1 : 0);
  note("close", is_told ? 1 : 0);
  // Those that need no handle.
  shmemx_exchange_holding_t holding{};
  holding.bytes = std::size_t{1} << 20;
  shmemx_exchange_t* own = nullptr;
  const std::string other = exchange_name(739);
  // ThreadSanitizer does not support threads that a child of a process with threads starts.
  note("open", test_support::kSanitized || shmemx_exchange_open(other.c_str(), nullptr, &own) == 0 ? 1 : 0);
  shmemx_exchange_close(std::exchange(own, nullptr));
  note("hold", test_support::kSanitized || shmemx_exchange_hold(other.c_str(), nullptr, &holding, &own) == 0 ? 1 : 0);
  shmemx_exchange_close(own);
  note("plan", shmemx_exchange_plan(nullptr, 0, nullptr, 0, 0, nullptr, 0) != -EPERM ? 1 : 0);
  return got;
}

/// The number of calls that are not made, or not refused, each with a line on standard error.
int wrong_calls(shmemx_exchange_t* exchange, shmemx_exchange_transfer_t* transfer) {
  const auto got = outcomes(exchange, transfer);
  int wrong = 0;
  for (const std::string& name : declared_calls()) {
    const auto found = got.find(name);
    if (found == got.end() || (found->second != -EPERM && found->second != 1)) {
      ++wrong;
      ::dprintf(STDERR_FILENO, "%s: %s\n", name.c_str(),
                found == got.end() ? "not made" : std::to_string(found->second).c_str());
    }
  }
  return got.size() < 20 ? 100 : wrong;
}

TEST_F(ExchangeNodesSilent, AForkedProcessCannotUseTheHandlesAndDoesNotWait) {
  make_beside(732, 5'000);
  insider_->answer_with([](RemoteHead request) {
    return request.kind == RemoteKind::kPull ? std::optional<PortMessage>() : answer_of(request, true);
  });
  const auto block = reader_->find("key");
  ASSERT_EQ(block.status, 0);
  char bytes[8];
  void* const to = bytes;
  shmemx_exchange_transfer_t* transfer = nullptr;
  ASSERT_EQ(shmemx_exchange_pull(reader_->get(), &block, &to, 1, nullptr, &transfer), 0);
  EXPECT_EQ(shmemx_exchange_test(transfer), -EINPROGRESS);
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(wrong_calls(reader_->get(), transfer));
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "a call waited";
  EXPECT_EQ(WEXITSTATUS(status), 0) << "so many calls are wrong";
  EXPECT_EQ(shmemx_exchange_wait(transfer, UINT64_MAX), -ETIMEDOUT);
  shmemx_exchange_transfer_free(transfer);
}

/// The numbers of this process's descriptors.
std::size_t descriptors() {
  std::size_t count = 0;
  for (int fd = 0; fd < 2048; ++fd) {
    count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  }
  return count;
}

TEST_F(ExchangeNodesSilent, StrangersThatComeAtOnceDoNotTakeAllDescriptors) {
  constexpr int kStrangers = 500;
  constexpr std::size_t kMostAtATime = 32 + 8;  // strangers that have not proved themselves, and what else is going on
  owner_ = connected_member(exchange_name(733), "node 1");
  const auto place = *wire::parse_endpoint(address_of(*owner_));
  const std::size_t before = descriptors();
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < kStrangers; ++i) {
      const int stranger = ::socket(place.family(), SOCK_STREAM | SOCK_NONBLOCK, 0);
      ::connect(stranger, place.get(), place.size);
    }
    ::usleep(300'000);
    ::_exit(0);
  }
  std::size_t most = 0;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    most = std::max(most, descriptors());
  }
  EXPECT_LE(most, before + kMostAtATime);
}

/// How many pieces of memory that exchanges have made this process has mapped.
int mapped_regions() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("shmem-exchange-blocks") != std::string::npos ? 1 : 0;
  }
  return count;
}

/// Members on other nodes would be served from it, for as long as the exchange is open.
TEST_F(ExchangeNodesSilent, ARegionThatGoesWhileTheExchangeConnectsIsForgotten) {
  const std::string name = exchange_name(734);
  for (int round = 0; round < 10; ++round) {
    const auto member = member_on_node(name, "node 1");
    std::atomic<bool> connected{false};
    std::thread registers([&] {
      constexpr std::size_t kAtATime = 8;
      std::deque<std::uint32_t> regions;
      while (!connected || !regions.empty()) {
        if (!connected && regions.size() < kAtATime) {
          shmemx_memory_t memory{.address = nullptr, .bytes = 4096, .fd = -1, .offset = 0};
          EXPECT_EQ(shmemx_exchange_register(member->get(), &memory, &regions.emplace_back()), 0);
        } else {
          EXPECT_EQ(shmemx_exchange_unregister(member->get(), regions.front()), 0);
          regions.pop_front();
        }
      }
    });
    const std::string nobody;
    const auto network = exchange_test::network_of(nobody);
    EXPECT_EQ(shmemx_exchange_connect(member->get(), &network), 0) << shmemx_error_text();
    connected = true;
    registers.join();
    EXPECT_EQ(mapped_regions(), 0) << "in round " << round;
  }
}

}  // namespace
