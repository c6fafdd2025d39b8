// SPDX-License-Identifier: Apache-2.0
// A member of a replay: exchange_replay_member EXCHANGE NUMBER BOARD REQUESTS.
//
// It is both halves of a serving engine. The half that reads prompts pulls the blocks of a request that another
// member has, and fills and publishes the others. The half that generates finds all blocks of a request, and pulls
// them a moment later; some may be gone by then. When its memory is full, the member withdraws its oldest blocks,
// and uses their memory when no reader has a lease of it; it does not wait for that. Each byte of a block follows
// from the number of the block and the layout under which it was published, which no other block has.
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "shmemx.h"
#include "shmemx_exchange.h"
#include "tests/integration/kv/exchange_replay.hpp"
#include "tests/integration/kv/exchange_replay_requests.hpp"

namespace {

using namespace exchange_replay;  // NOLINT(google-build-using-namespace): the program itself

constexpr std::size_t kSlots = 256;

/// A block that was withdrawn, in memory that readers may still read.
struct Leaving {
  std::uint64_t block;
  std::size_t slot;
};

/// Blocks as they were found, with their numbers.
struct Found {
  std::vector<std::uint64_t> numbers;
  std::vector<shmemx_exchange_block_t> blocks;
};

[[noreturn]] void die(const std::string& what) {
  std::printf("%s: %s\n", what.c_str(), shmemx_error_text());
  std::fflush(stdout);
  std::_Exit(1);
}

/// What the kernel has counted for the threads of this process.
struct Usage {
  std::uint64_t waited_ns = 0;  // for a processor
  std::uint64_t faults = 0;
  std::uint64_t sleeps = 0;

  /// Counts all threads that exist at this moment, since an exchange starts some with the first call that needs them.
  static Usage now() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    Usage all{.faults = static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt),
              .sleeps = static_cast<std::uint64_t>(usage.ru_nvcsw)};
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::ifstream in(thread.path() / "schedstat");
      std::uint64_t ran = 0;
      std::uint64_t waited = 0;
      if (in >> ran >> waited) {
        all.waited_ns += waited;
      }
    }
    return all;
  }
};

class Engine {
 public:
  Engine(const char* exchange, Counts& counts, SharedBoard& board, std::size_t number)
      : counts_(counts), board_(board), layout_(std::random_device{}()) {
    layout_ = layout_ << 32 | 1;
    shmemx_exchange_options_t options{};
    options.blocks = kSlots;
    if (shmemx_exchange_open(exchange, &options, &exchange_) != 0) {
      die("open");
    }
    memory_.bytes = kSlots * kBytes;
    memory_.fd = -1;
    if (shmemx_exchange_register(exchange_, &memory_, &region_) != 0) {
      die("register");
    }
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      free_.push_back(slot);
    }
    room_.resize(kMostOfRequest * kWords);
    shmemx_exchange_stats_t stats;
    shmemx_exchange_stats(exchange_, &stats);
    const std::uint32_t start = board_->starts.fetch_add(1);
    board_->start[start % kMostStarts].begin_ns.store(clock_ns());
    board_->start[start % kMostStarts].id.store(stats.id);
    board_->last_start[number].store(start + 1);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() { shmemx_exchange_close(exchange_); }

  void serve(const Request& request) {
    const bool even = request.number % 2 == 0;
    switch (request.step) {
      case Step::kReadPrompt: {
        std::vector<std::uint64_t> missing;
        const Found found = find(request.blocks, even ? 100 : 0, missing);
        pull(found, even, missing);
        for (const std::uint64_t block : missing) {
          publish(block);
        }
        counts_.requests.fetch_add(1);
        break;
      }
      case Step::kFind: {
        std::vector<std::uint64_t> missing;
        found_[request.number] = find(request.blocks, even ? 100 : 0, missing);
        counts_.missing.fetch_add(missing.size());
        break;
      }
      case Step::kPull: {
        std::vector<std::uint64_t> failed;
        pull(found_[request.number], even, failed);
        found_.erase(request.number);
        break;
      }
    }
  }

 private:
  /// Runs a call, and notes how long it took. While it waits for a thread of the exchange, that one counts, too.
  template <typename Function>
  auto timed(Phase phase, std::size_t blocks, Function function) {
    const Usage before = Usage::now();
    const std::int64_t begin = clock_ns();
    const auto result = function();
    const std::int64_t end = clock_ns();
    const Usage after = Usage::now();
    const auto took = static_cast<std::uint64_t>(end - begin);
    const std::uint64_t waited = std::min(took, after.waited_ns - std::min(before.waited_ns, after.waited_ns));
    const auto note = [&](Call& call) {
      const std::int64_t kill = board_->kill_ns.load();
      call.waited_ns.store(waited);
      call.blocks.store(blocks);
      call.faults.store(after.faults - before.faults);
      call.sleeps.store(after.sleeps - before.sleeps);
      call.after_kill_ns.store(kill == 0 ? 0 : static_cast<std::uint64_t>(std::max<std::int64_t>(end - kill, 1)));
      call.ns.store(took);  // the member is the only writer
    };
    Call& longest = counts_.longest.at(phase);
    Call& running = counts_.longest_running.at(phase);
    if (took > longest.ns.load()) {
      note(longest);
    }
    if (took - waited > running.ns.load() - running.waited_ns.load()) {
      note(running);
    }
    return result;
  }

  void wrong_error(const char* call, int status) {
    counts_.wrong_errors.fetch_add(1);
    std::printf("%s: error %d\n", call, status);
    std::fflush(stdout);
  }

  /// Finds the blocks that this member does not have. `missing` gets those that no member has.
  Found find(const std::vector<std::uint64_t>& wanted, std::uint32_t lease_ms, std::vector<std::uint64_t>& missing) {
    std::vector<std::uint64_t> numbers;
    std::vector<std::string> keys;
    std::vector<shmemx_exchange_key_t> names;
    for (const std::uint64_t block : wanted) {
      if (!own_.contains(block)) {
        numbers.push_back(block);
        keys.push_back(key_of(block));
      }
    }
    names.reserve(keys.size());
    for (const auto& key : keys) {
      names.push_back({key.data(), key.size()});
    }
    std::vector<shmemx_exchange_block_t> blocks(names.size());
    timed(kFind, names.size(),
          [&] { return shmemx_exchange_find(exchange_, names.data(), names.size(), 0, lease_ms, blocks.data()); });
    Found found;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      // Without a lease, because the quota is used up, the block can be pulled all the same.
      if (blocks[i].status == 0 || blocks[i].status == -EDQUOT) {
        found.numbers.push_back(numbers[i]);
        found.blocks.push_back(blocks[i]);
        continue;
      }
      missing.push_back(numbers[i]);
      if (blocks[i].status != -ENOENT) {
        wrong_error("find", blocks[i].status);
      }
    }
    return found;
  }

  /// Pulls what was found, and checks it. `failed` gets the blocks that did not arrive.
  void pull(Found found, bool in_background, std::vector<std::uint64_t>& failed) {
    auto& blocks = found.blocks;
    std::vector<void*> destinations;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      destinations.push_back(room_.data() + i * kWords);
    }
    std::vector<std::int32_t> statuses(blocks.size());
    if (in_background) {
      pull_in_background(blocks, destinations, statuses);
    } else {
      timed(kPull, blocks.size(), [&] {
        return shmemx_exchange_pull(exchange_, blocks.data(), destinations.data(), blocks.size(), statuses.data(),
                                    nullptr);
      });
    }
    shmemx_exchange_release(exchange_, blocks.data(), blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (statuses[i] == 0) {
        check_bytes(found.numbers[i], blocks[i], room_.data() + i * kWords);
      } else {
        check_error(found.numbers[i], blocks[i], statuses[i]);
        failed.push_back(found.numbers[i]);
      }
    }
  }

  void pull_in_background(const std::vector<shmemx_exchange_block_t>& blocks, const std::vector<void*>& destinations,
                          std::vector<std::int32_t>& statuses) {
    timed(kBackgroundPull, blocks.size(), [&] {
      shmemx_exchange_transfer_t* transfer = nullptr;
      if (shmemx_exchange_pull(exchange_, blocks.data(), destinations.data(), blocks.size(), statuses.data(),
                               &transfer) != 0) {
        die("pull in the background");
      }
      if (shmemx_exchange_wait(transfer, kLimitNs) == -ETIMEDOUT) {
        die("wait for a pull");
      }
      shmemx_exchange_transfer_free(transfer);
      return 0;
    });
  }

  void check_bytes(std::uint64_t number, const shmemx_exchange_block_t& block, const std::uint64_t* words) {
    for (std::size_t i = 0; i < kWords; ++i) {
      if (words[i] != word_of(number, block.layout, i)) {
        counts_.wrong_bytes.fetch_add(1);
        return;
      }
    }
    counts_.pulled.fetch_add(1);
    counts_.pulled_bytes.fetch_add(kBytes);
    if (Start* const owner = start_of(block.member)) {
      owner->served.fetch_add(1);
    }
  }

  /// An owner may be dead only if it was killed, and a block stale only if its owner has it no more.
  void check_error(std::uint64_t number, const shmemx_exchange_block_t& block, std::int32_t status) {
    const Start* const owner = start_of(block.member);
    if (status == -EOWNERDEAD && owner != nullptr && owner->killed.load()) {
      counts_.dead.fetch_add(1);
      return;
    }
    const std::string text = key_of(number);
    const shmemx_exchange_key_t key{text.data(), text.size()};
    shmemx_exchange_block_t now{};
    shmemx_exchange_find(exchange_, &key, 1, 0, 0, &now);
    if (status == -ESTALE && (now.member != block.member || now.epoch != block.epoch || now.slot != block.slot)) {
      counts_.stale.fetch_add(1);
      return;
    }
    wrong_error("pull", status);
  }
  Start* start_of(std::uint64_t id) {
    Start* const end = board_->start.data() + std::min<std::size_t>(board_->starts.load(), kMostStarts);
    Start* const found =
        std::find_if(board_->start.data(), end, [id](const Start& start) { return start.id.load() == id; });
    return found != end ? found : nullptr;
  }

  void publish(std::uint64_t block) {
    if (std::ranges::find(leaving_, block, &Leaving::block) != leaving_.end()) {
      return;  // its memory is still leased to a reader
    }
    make_room();
    const std::size_t slot = free_.back();
    free_.pop_back();
    auto* const words = static_cast<std::uint64_t*>(memory_.address) + slot * kWords;
    layout_ += kWords + 2;
    for (std::size_t i = 0; i < kWords; ++i) {
      words[i] = word_of(block, layout_, i);
    }
    const std::string key = key_of(block);
    shmemx_exchange_entry_t entry{.key = {key.data(), key.size()},
                                  .region = region_,
                                  .status = 0,
                                  .offset = slot * kBytes,
                                  .bytes = kBytes,
                                  .layout = layout_};
    if (timed(kPublish, 1, [&] { return shmemx_exchange_publish(exchange_, &entry, 1); }) != 1) {
      die("publish");
    }
    own_[block] = slot;
    order_.push_back(block);
    counts_.published.fetch_add(1);
  }

  /// Withdraws a part of all blocks, as engines do. Some of them may be leased, but readers have few leases.
  void make_room() {
    while (free_.empty()) {
      for (std::size_t i = 0; i < kSlots / 16 && !order_.empty(); ++i) {
        const auto old = own_.find(order_.front());
        leaving_.push_back({old->first, old->second});
        own_.erase(old);
        order_.pop_front();
      }
      std::erase_if(leaving_, [&](const Leaving& one) {
        const int status = withdraw(one.block, order_.empty() ? kLimitNs : 0);
        if (status != 0 && status != -EBUSY) {
          die("withdraw");
        }
        if (status == 0) {
          free_.push_back(one.slot);
          counts_.withdrawn.fetch_add(1);
        }
        return status == 0;
      });
    }
  }
  int withdraw(std::uint64_t block, std::uint64_t limit_ns) {
    const std::string text = key_of(block);
    const shmemx_exchange_key_t key{text.data(), text.size()};
    return timed(kWithdraw, 1, [&] { return shmemx_exchange_withdraw(exchange_, &key, 1, limit_ns); });
  }

  Counts& counts_;
  SharedBoard& board_;
  std::uint64_t layout_;
  shmemx_exchange_t* exchange_ = nullptr;
  shmemx_memory_t memory_{};
  std::uint32_t region_ = 0;
  std::vector<std::size_t> free_;
  std::unordered_map<std::uint64_t, std::size_t> own_;  // slot by block
  std::deque<std::uint64_t> order_;                     // of publishing
  std::vector<Leaving> leaving_;                        // withdrawn, but leased
  std::map<std::size_t, Found> found_;                  // by request
  std::vector<std::uint64_t> room_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    return 2;
  }
  const auto number = static_cast<std::size_t>(std::atoi(argv[2]));
  SharedBoard board(argv[3]);
  const auto requests = read_requests(argv[4], number);
  if (!board || requests.empty() || number >= kMembers) {
    return 2;
  }
  Engine engine(argv[1], board->counts[number], board, number);
  std::printf("ready\n");
  std::fflush(stdout);
  return serve_all(requests, board, engine);
}
