// SPDX-License-Identifier: Apache-2.0
// Exchanges without memory: whichever allocation of a call fails, the call is an error and can be made again; whichever
// one of the threads of members fails, members find each other all the same.
#include <atomic>
#include <cerrno>
#include <functional>
#include <vector>

#include "tests/support/failing_new.hpp"
#include "tests/support/soak.hpp"
#include "tests/unit/kv/exchange_nodes.hpp"

namespace {

enum class Whose { kNobody, kCaller, kOthers };

thread_local bool is_caller = false;
constinit std::atomic<Whose> whose{Whose::kNobody};
constinit std::atomic<long> until_failure{0};  // so many succeed before one fails
constinit std::atomic<int> fails_in_a_row{1};  // with those that follow
constinit std::atomic<int> failures{0};

}  // namespace

bool test_support::must_fail() {
  const Whose those = whose;
  if (those == Whose::kNobody || (those == Whose::kCaller) != is_caller) {
    return false;
  }
  const long left = until_failure.fetch_sub(1);
  const bool fails = left <= 0 && left > -fails_in_a_row;
  failures += fails ? 1 : 0;
  return fails;
}

namespace {

using namespace exchange_test;  // NOLINT(google-build-using-namespace): what the test is about

/// While it exists, allocations fail.
class Shortage {
 public:
  Shortage(Whose those, long number, int in_a_row) {
    failures = 0;
    until_failure = number;
    fails_in_a_row = in_a_row;
    whose = those;
  }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;
  ~Shortage() { whose = Whose::kNobody; }
};

/// Each allocation of the call fails in turn, alone and with all later ones. `call` returns an errno, or a number; and
/// can be made again after an error. `undo` follows a call that has worked.
void expect_errors(
    const char* name, const std::function<int()>& call, const std::function<void()>& undo = [] {}) {
  constexpr long kMost = 500;
  for (const int in_a_row : {1, 1'000'000}) {
    for (long number = 0; number < kMost; ++number) {
      int code = 0;
      {
        const Shortage none(Whose::kCaller, number, in_a_row);
        code = call();
      }
      const bool over = failures == 0;
      EXPECT_TRUE(code >= 0 || code == -ENOMEM)
          << name << ", allocation " << number << ": " << code << ' ' << shmemx_error_text();
      EXPECT_TRUE(code >= 0 || !over) << name << " fails without a failure: " << shmemx_error_text();
      if (code < 0) {
        code = call();
        EXPECT_GE(code, 0) << name << " again, after allocation " << number << ": " << shmemx_error_text();
      }
      undo();
      if (over || testing::Test::HasFailure()) {
        break;
      }
      EXPECT_LT(number + 1, kMost) << name;
    }
  }
}

class ExchangeMemoryShortage : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (on_nodes() && !KV_WITH_UCX) {
      GTEST_SKIP() << "built without UCX";
    }
    is_caller = true;
  }
  static bool on_nodes() { return GetParam(); }
  std::unique_ptr<Member> join(const char* node, const std::string& members = "") const {
    return on_nodes() ? connected_member(name_, node, members) : std::make_unique<Member>(name_);
  }
  void make_two() {
    owner_ = join("1");
    owner_->make_memory(std::size_t{1} << 20);
    ASSERT_EQ(owner_->publish("key", 0, 300'000), 0);
    reader_ = join("2", on_nodes() ? address_of(*owner_) : "");
    ASSERT_EQ(reader_->find_soon("key").status, 0);
  }

  static inline int number_ = 900;
  const std::string name_ = exchange_name(number_++);
  std::unique_ptr<Member> owner_, reader_;
};

class ExchangeMemoryShortageOnNodes : public ExchangeMemoryShortage {};
/// Engines are on the node of their holder.
class ExchangeMemoryShortageHere : public ExchangeMemoryShortage {};

const auto name_of = [](const auto& test) { return test.param ? "nodes" : "here"; };
INSTANTIATE_TEST_SUITE_P(Where, ExchangeMemoryShortage, testing::Bool(), name_of);
INSTANTIATE_TEST_SUITE_P(Where, ExchangeMemoryShortageOnNodes, testing::Values(true), name_of);
INSTANTIATE_TEST_SUITE_P(Where, ExchangeMemoryShortageHere, testing::Values(false), name_of);

TEST_P(ExchangeMemoryShortage, CallsAreErrorsAndCanBeMadeAgain) {
  make_two();
  shmemx_exchange_t* const owner = owner_->get();
  shmemx_exchange_t* const reader = reader_->get();
  const std::string text = "another";
  const auto key = key_of(text);
  shmemx_memory_t memory{};
  std::uint32_t region = 0;
  expect_errors(
      "register",
      [&] {
        memory = {.address = nullptr, .bytes = 4096, .fd = -1, .offset = 0};
        return shmemx_exchange_register(owner, &memory, &region);
      },
      [&] { EXPECT_EQ(shmemx_exchange_unregister(owner, region), 0) << shmemx_error_text(); });
  shmemx_exchange_entry_t entry{};
  const auto publish = [&] {
    entry = {.key = key, .region = owner_->region(), .status = 1, .offset = 400'000, .bytes = 8, .layout = 0};
    return shmemx_exchange_publish(owner, &entry, 1) == 1 ? 0 : entry.status;
  };
  const auto withdraw = [&] { return shmemx_exchange_withdraw(owner, &key, 1, kSecond); };
  expect_errors("publish", publish, [&] { EXPECT_EQ(withdraw(), 0); });
  EXPECT_EQ(publish(), 0);
  expect_errors("withdraw", withdraw, [&] { EXPECT_EQ(publish(), 0); });
  shmemx_exchange_block_t block{};
  const std::string published = "key";
  const auto found = key_of(published);
  expect_errors(
      "find",
      [&] {
        const int count = shmemx_exchange_find(reader, &found, 1, 0, 60'000, &block);
        return count < 0 ? count : count == 1 ? 0 : -ENOMEM;  // of a member that has none for its answer
      },
      [&] { EXPECT_EQ(shmemx_exchange_release(reader, &block, 1), 0); });
  std::vector<char> bytes(300'000);
  void* const to = bytes.data();
  block = reader_->find("key", 0, 60'000);
  std::int32_t status = 1;
  expect_errors("pull", [&] { return shmemx_exchange_pull(reader, &block, &to, 1, &status, nullptr); });
  expect_errors("pull in the background", [&] {
    shmemx_exchange_transfer_t* transfer = nullptr;
    const int begun = shmemx_exchange_pull(reader, &block, &to, 1, &status, &transfer);
    if (begun != 0) {
      return begun;
    }
    const int code = shmemx_exchange_wait(transfer, 20 * kSecond);
    shmemx_exchange_transfer_free(transfer);
    return code;
  });
  std::vector<shmemx_exchange_member_t> members(4);
  expect_errors("members", [&] { return shmemx_exchange_members(reader, members.data(), members.size()); });
  ASSERT_EQ(shmemx_exchange_members(reader, members.data(), members.size()), 1);
  std::uint64_t cursor = 0;
  shmemx_exchange_name_t name{};
  expect_errors("list", [&] {
    cursor = 0;
    return shmemx_exchange_list(reader, members[0].seat, &cursor, &name, &block, 1);
  });
  shmemx_exchange_stats_t stats{};
  expect_errors("stats", [&] { return shmemx_exchange_stats(reader, &stats); });
  shmemx_exchange_t* third = nullptr;
  expect_errors(
      "open", [&] { return shmemx_exchange_open(name_.c_str(), nullptr, &third); },
      [&] { shmemx_exchange_close(std::exchange(third, nullptr)); });
  EXPECT_EQ(reader_->find_soon("key").status, 0) << "they see each other still";
}

TEST_P(ExchangeMemoryShortageOnNodes, ConnectIsAnErrorAndCanBeMadeAgain) {
  make_two();
  const std::string members = address_of(*owner_);
  const auto network = network_of(members);
  auto third = member_on_node(name_, "3");
  expect_errors(
      "connect", [&] { return shmemx_exchange_connect(third->get(), &network); },
      [&] {
        EXPECT_EQ(third->find_soon("key").status, 0);
        third.reset();
        third = member_on_node(name_, "3");
      });
}

TEST_P(ExchangeMemoryShortageHere, CallsToAHolderAreErrorsAndCanBeMadeAgain) {
  shmemx_exchange_holding_t holding{};
  holding.bytes = std::size_t{4} << 20;
  shmemx_exchange_t* holder = nullptr;
  ASSERT_EQ(shmemx_exchange_hold(name_.c_str(), nullptr, &holding, &holder), 0) << shmemx_error_text();
  reader_ = join("1");
  shmemx_exchange_t* const engine = reader_->get();
  expect_errors("use_holder", [&] { return shmemx_exchange_use_holder(engine, "tenant", 20'000); });
  const std::string text = "key";
  const auto key = key_of(text);
  const std::vector<char> bytes(300'000, 'x');
  const auto put = [&] {
    shmemx_exchange_put_t one{};
    one.key = key;
    one.source = bytes.data();
    one.bytes = bytes.size();
    const int count = shmemx_exchange_put(engine, &one, 1);
    return count < 0 ? count : one.status == -EEXIST ? 0 : one.status;
  };
  const auto discard = [&] {
    std::int32_t status = 0;
    const int count = shmemx_exchange_discard(engine, &key, 1, 0, &status);
    return count < 0 ? count : 0;
  };
  expect_errors("put", put, [&] { EXPECT_EQ(discard(), 0); });
  EXPECT_EQ(put(), 0);
  expect_errors("discard", discard, [&] { EXPECT_EQ(put(), 0); });
  expect_errors("pin", [&] { return shmemx_exchange_pin(engine, &key, 1, 0, 1, nullptr); });
  shmemx_exchange_holder_stats_t stats{};
  expect_errors("holder_stats", [&] { return shmemx_exchange_holder_stats(engine, &stats); });
  shmemx_exchange_position_t position{};
  std::vector<shmemx_exchange_event_t> events(16);
  shmemx_exchange_events(engine, &position, events.data(), events.size(), kSecond);  // sets the position
  expect_errors("events", [&] {
    auto from = position;
    return shmemx_exchange_events(engine, &from, events.data(), events.size(), 0);
  });
  expect_errors("discard_all", [&] { return shmemx_exchange_discard_all(engine); });
  reader_.reset();
  shmemx_exchange_close(holder);
  expect_errors(
      "hold", [&] { return shmemx_exchange_hold(name_.c_str(), nullptr, &holding, &holder); },
      [&] { shmemx_exchange_close(std::exchange(holder, nullptr)); });
}

/// A third member joins, is read from and leaves.
TEST_P(ExchangeMemoryShortage, OfThreadsIsNoticedByNobody) {
  make_two();
  struct Way {
    int in_a_row;
    long step;  // between the numbers of the first that fails
  };
  for (const auto& [in_a_row, step] : {Way{1, test_support::repeats(4, 1)}, Way{20, 29}}) {
    long number = 0;
    for (bool failed = true; failed && number < 400 && !HasFailure(); number += step) {
      const std::string key = "third " + std::to_string(in_a_row) + " " + std::to_string(number);
      const auto begin = std::chrono::steady_clock::now();
      {
        const Shortage none(Whose::kOthers, number, in_a_row);
        const auto third = join("3", on_nodes() ? address_of(*owner_) : "");
        third->make_memory(4096);
        EXPECT_EQ(third->publish(key, 0, 100), 0);
        const auto block = reader_->find_soon(key);
        EXPECT_EQ(block.status, 0) << "allocation " << number << ", " << in_a_row << " in a row";
        std::string bytes;
        EXPECT_EQ(block.status == 0 ? reader_->pull(block, bytes) : 0, 0) << "allocation " << number;
        failed = failures > 0;
      }
      EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong) << "allocation " << number;
    }
    EXPECT_GT(number, 5) << "they allocate less than this test expects";
  }
  EXPECT_EQ(reader_->find_soon("key").status, 0);
}

}  // namespace
