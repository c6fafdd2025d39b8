// SPDX-License-Identifier: Apache-2.0
// The bootstrap by a key-value store: which other processes count as ended.
#include "shmem/bootstrap/store_bootstrap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace shmem {
namespace {

using ::testing::HasSubstr;

/// PE 0 of two: the other one has made a step, as `sender`, and no more. Returns what PE 0 is told in the next step.
Error second_step(const std::function<void(StoreSender& sender)>& change) {
  std::vector<std::byte> last;
  int gets = 0;
  KeyValueStore store;
  store.set = [&](const std::string& /*key*/, std::span<const std::byte> value) -> Result<void> {
    last.assign(value.begin(), value.end());
    return {};
  };
  store.get = [&](const std::string& /*key*/, std::span<std::byte> value) -> Result<void> {
    if (gets++ == 0) {  // the first step: what PE 0 has said, with changes
      StoreSender sender;
      std::memcpy(&sender, last.data(), sizeof sender);
      change(sender);
      std::memcpy(value.data(), &sender, sizeof sender);
      return {};
    }
    ::usleep(1000);
    return fail(gets < 500 ? std::errc::resource_unavailable_try_again : std::errc::timed_out, "no such key");
  };
  StoreBootstrap bootstrap(store, 0, 2);
  const std::array<std::byte, 1> mine{};
  EXPECT_TRUE(bootstrap.allgather(mine));
  const auto second = bootstrap.allgather(mine);
  return second ? Error{} : second.error();
}

pid_t ended_process() {
  const pid_t process = ::fork();
  if (process == 0) {
    ::_exit(0);
  }
  ::waitpid(process, nullptr, 0);
  return process;
}

TEST(StoreBootstrap, NamesAPeOfThisMachineThatHasEnded) {
  const Error ended = second_step([](StoreSender& sender) { sender.pid = ended_process(); });
  EXPECT_EQ(ended.code, std::errc::owner_dead);
  EXPECT_THAT(ended.text, HasSubstr("PE 1 (pid "));
}

TEST(StoreBootstrap, NamesOneWhoseNumberAnotherProcessHas) {
  EXPECT_EQ(second_step([](StoreSender& sender) { --sender.start; }).code, std::errc::owner_dead);
}

/// A store in this process. Its first `keys` can be read when all of them are there: until then a PE cannot learn that
/// another one has ended.
class MapStore {
 public:
  using Change = std::function<void(const std::string& key, StoreSender& sender)>;
  MapStore(std::size_t keys, Change change) : keys_(keys), change_(std::move(change)) {}

  KeyValueStore calls() {
    return {[this](const std::string& key, std::span<const std::byte> value) -> Result<void> {
              const std::scoped_lock lock(mutex_);
              auto& kept = values_[key];
              kept.assign(value.begin(), value.end());
              if (StoreSender sender; kept.size() >= sizeof sender) {
                std::memcpy(&sender, kept.data(), sizeof sender);
                change_(key, sender);
                std::memcpy(kept.data(), &sender, sizeof sender);
              }
              return {};
            },
            [this](const std::string& key, std::span<std::byte> value) -> Result<void> {
              const std::scoped_lock lock(mutex_);
              const auto found = values_.find(key);
              if (found == values_.end() || values_.size() < keys_) {
                return fail(std::errc::resource_unavailable_try_again, "no such key");
              }
              std::copy(found->second.begin(), found->second.end(), value.begin());
              return {};
            }};
  }

 private:
  const std::size_t keys_;
  const Change change_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::byte>> values_;
};

// PE 2 is dead. PE 1 notices and ends, before PE 0 looks.
TEST(StoreBootstrap, NamesTheFirstOfThoseThatHaveEnded) {
  const pid_t ended = ended_process();
  MapStore store(3, [&](const std::string& key, StoreSender& sender) { sender.pid = key.back() == '0' ? 0 : ended; });
  std::array<StoreBootstrap, 3> pes{StoreBootstrap(store.calls(), 0, 3), StoreBootstrap(store.calls(), 1, 3),
                                    StoreBootstrap(store.calls(), 2, 3)};
  const std::array<std::byte, 1> mine{};
  {
    std::vector<std::jthread> threads;
    for (StoreBootstrap& pe : pes) {
      threads.emplace_back([&] { EXPECT_TRUE(pe.allgather(mine)); });
    }
  }
  for (StoreBootstrap* const pe : {&pes[1], &pes[0]}) {
    const auto second = pe->allgather(mine);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, std::errc::owner_dead);
    EXPECT_THAT(second.error().text, HasSubstr("PE 2 (pid "));
  }
}

TEST(StoreBootstrap, DoesNotLookHereForAPeOfAnotherMachine) {
  EXPECT_EQ(second_step([](StoreSender& /*sender*/) {}).code, std::errc::timed_out) << "that is this process";
  using Change = std::function<void(StoreSender & sender)>;
  for (const Change& change : {
           Change([](StoreSender& sender) { sender.machine.boot[0] ^= 1; }),
           Change([](StoreSender& sender) { sender.machine.hardware[0] ^= 1; }),  // of a copy of a virtual machine
           Change([](StoreSender& sender) { ++sender.space; }),
       }) {
    const Error told = second_step([&](StoreSender& sender) {
      sender.pid = ended_process();
      change(sender);
    });
    EXPECT_EQ(told.code, std::errc::timed_out) << told.text;
  }
}

}  // namespace
}  // namespace shmem
