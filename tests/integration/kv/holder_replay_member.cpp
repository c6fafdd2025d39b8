// SPDX-License-Identifier: Apache-2.0
// An engine of a replay with a holder: holder_replay_member EXCHANGE NUMBER BOARD REQUESTS.
//
// It has no memory for blocks of its own. The half that reads prompts pulls the blocks of a request that the holder
// has, and puts the others. The half that generates finds all blocks of a request, and pulls them a moment later. An
// engine that was started again first looks for the blocks that it used before.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "shmemx.h"
#include "shmemx_exchange.h"
#include "tests/integration/kv/exchange_replay.hpp"
#include "tests/integration/kv/exchange_replay_requests.hpp"

namespace {

using namespace exchange_replay;  // NOLINT(google-build-using-namespace): the program itself

constexpr std::uint64_t kLayout = 47;

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

class Engine {
 public:
  Engine(const char* exchange, SharedBoard& board, std::size_t number)
      : board_(board), counts_(board->counts[number]), memory_(board->memory[number]), number_(number) {
    shmemx_exchange_options_t options{};
    options.join_ms = 60'000;  // it looks for what the holder has
    if (shmemx_exchange_open(exchange, &options, &exchange_) != 0) {
      die("open");
    }
    room_.resize(kMostOfRequest * kWords);
    shmemx_exchange_stats_t stats;
    shmemx_exchange_stats(exchange_, &stats);
    const std::uint32_t start = board_->starts.fetch_add(1);
    look_for_what_was_used();
    board_->start[start % kMostStarts].begin_ns.store(clock_ns());
    board_->start[start % kMostStarts].id.store(stats.id);
    board_->last_start[number].store(start + 1);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine() { shmemx_exchange_close(exchange_); }

  void serve(const Request& request) {
    std::vector<std::uint64_t> missing;
    switch (request.step) {
      case Step::kReadPrompt: {
        const Found found = find(request.blocks, 0, missing);
        note(request.blocks.size(), found.blocks.size());
        pull(found, missing);
        put(missing);
        counts_.requests.fetch_add(1);
        break;
      }
      case Step::kFind:
        found_[request.number] = find(request.blocks, request.number % 2 == 0 ? 100 : 0, missing);
        counts_.missing.fetch_add(missing.size());
        break;
      case Step::kPull:
        pull(found_[request.number], missing);
        found_.erase(request.number);
        break;
    }
  }

 private:
  template <typename Function>
  auto timed(Phase phase, std::size_t blocks, Function function) {
    const std::int64_t begin = clock_ns();
    const auto result = function();
    const auto took = static_cast<std::uint64_t>(clock_ns() - begin);
    Call& longest = counts_.longest.at(phase);
    if (took > longest.ns.load()) {
      const std::int64_t kill = board_->kill_ns.load();
      longest.blocks.store(blocks);
      longest.after_kill_ns.store(kill == 0 ? 0
                                            : static_cast<std::uint64_t>(std::max<std::int64_t>(clock_ns() - kill, 1)));
      longest.ns.store(took);  // the member is the only writer
    }
    return result;
  }

  void wrong_error(const char* call, int status) {
    counts_.wrong_errors.fetch_add(1);
    std::printf("%s: error %d %s\n", call, status, shmemx_error_text());
    std::fflush(stdout);
  }

  void look_for_what_was_used() {
    std::vector<std::uint64_t> used;
    for (const auto& block : memory_.blocks) {
      if (block.load() != 0) {
        used.push_back(block.load() - 1);
      }
    }
    std::vector<std::uint64_t> missing;
    find(used, 0, missing);
    memory_.looked_for.fetch_add(used.size());
    memory_.found.fetch_add(used.size() - missing.size());
  }
  void remember(std::uint64_t block) { memory_.blocks.at(memory_.next.fetch_add(1) % kRemembered).store(block + 1); }

  void note(std::size_t wanted, std::size_t found) {
    const std::int64_t at = (clock_ns() - board_->begin_ns.load()) / 1'000'000'000;
    Second& second = board_->seconds[number_].at(std::min(static_cast<std::size_t>(at), kMostSeconds - 1));
    second.wanted.fetch_add(wanted);
    second.found.fetch_add(found);
  }

  Found find(const std::vector<std::uint64_t>& wanted, std::uint32_t lease_ms, std::vector<std::uint64_t>& missing) {
    std::vector<std::string> keys;
    std::vector<shmemx_exchange_key_t> names;
    keys.reserve(wanted.size());
    names.reserve(wanted.size());
    for (const std::uint64_t block : wanted) {
      keys.push_back(key_of(block));
    }
    for (const auto& key : keys) {
      names.push_back({key.data(), key.size()});
    }
    std::vector<shmemx_exchange_block_t> blocks(names.size());
    timed(kFind, names.size(), [&] {
      return shmemx_exchange_find(exchange_, names.data(), names.size(), kLayout, lease_ms, blocks.data());
    });
    Found found;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].status == 0 || blocks[i].status == -EDQUOT) {
        found.numbers.push_back(wanted[i]);
        found.blocks.push_back(blocks[i]);
        continue;
      }
      missing.push_back(wanted[i]);
      if (blocks[i].status != -ENOENT) {
        wrong_error("find", blocks[i].status);
      }
    }
    return found;
  }

  void pull(Found found, std::vector<std::uint64_t>& failed) {
    auto& blocks = found.blocks;
    std::vector<void*> destinations;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      destinations.push_back(room_.data() + i * kWords);
    }
    std::vector<std::int32_t> statuses(blocks.size());
    timed(kPull, blocks.size(), [&] {
      return shmemx_exchange_pull(exchange_, blocks.data(), destinations.data(), blocks.size(), statuses.data(),
                                  nullptr);
    });
    shmemx_exchange_release(exchange_, blocks.data(), blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (statuses[i] == 0) {
        check_bytes(found.numbers[i], room_.data() + i * kWords);
        remember(found.numbers[i]);
        continue;
      }
      failed.push_back(found.numbers[i]);
      if (statuses[i] == -ESTALE) {
        counts_.stale.fetch_add(1);
      } else {
        wrong_error("pull", statuses[i]);
      }
    }
  }
  void check_bytes(std::uint64_t number, const std::uint64_t* words) {
    for (std::size_t i = 0; i < kWords; ++i) {
      if (words[i] != word_of(number, kLayout, i)) {
        counts_.wrong_bytes.fetch_add(1);
        return;
      }
    }
    counts_.pulled.fetch_add(1);
    counts_.pulled_bytes.fetch_add(kBytes);
  }

  void put(const std::vector<std::uint64_t>& missing) {
    std::vector<std::string> keys;
    std::vector<shmemx_exchange_put_t> puts;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      keys.push_back(key_of(missing[i]));
      for (std::size_t word = 0; word < kWords; ++word) {
        room_[i * kWords + word] = word_of(missing[i], kLayout, word);
      }
    }
    for (std::size_t i = 0; i < missing.size(); ++i) {
      puts.push_back({.key = {keys[i].data(), keys[i].size()},
                      .source = room_.data() + i * kWords,
                      .bytes = kBytes,
                      .layout = kLayout,
                      .status = 1,
                      .flags = 0});
    }
    timed(kPublish, puts.size(), [&] { return shmemx_exchange_put(exchange_, puts.data(), puts.size()); });
    for (std::size_t i = 0; i < puts.size(); ++i) {
      if (puts[i].status == 0 || puts[i].status == -EEXIST) {
        counts_.published.fetch_add(puts[i].status == 0 ? 1 : 0);
        remember(missing[i]);
      } else if (puts[i].status == -ETIMEDOUT) {
        counts_.dead.fetch_add(1);  // a machine that is busy
      } else if (puts[i].status != -EBUSY && puts[i].status != -ENOSPC) {
        wrong_error("put", puts[i].status);
      }
    }
  }

  SharedBoard& board_;
  Counts& counts_;
  Memory& memory_;
  const std::size_t number_;
  shmemx_exchange_t* exchange_ = nullptr;
  std::map<std::size_t, Found> found_;  // by request
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
  Engine engine(argv[1], board, number);
  return serve_all(requests, board, engine);
}
