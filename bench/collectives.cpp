// SPDX-License-Identifier: Apache-2.0
// Collective calls, on one node.
#include <algorithm>
#include <initializer_list>
#include <memory>

#include "bench/library.hpp"

namespace bench {
namespace {

constexpr std::size_t kLarge = (std::size_t{1} << 20) / sizeof(long);
constexpr int kSmallCalls = 10'000;

std::size_t size() {
  return static_cast<std::size_t>(Library::size());
}

std::shared_ptr<Calls> make_calls(std::size_t words) {
  return std::make_shared<Calls>(words * sizeof(long));
}

int most_calls(std::size_t words) {
  return static_cast<int>(std::clamp<std::size_t>(kLarge * 50 / words, 50, 10'000));
}

Figure barrier() {
  return together([] { Library::barrier(); });
}

/// Collectives on `words` words, whose names end in `text`.
void add(Items& items, const std::shared_ptr<Calls>& calls, std::size_t words, const std::string& text,
         const char* sum = "sum_reduce") {
  const auto item = [&](const std::string& name, auto action) {
    items.push_back({name + " " + text, together(action), barrier(), most_calls(words)});
  };  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it
  item("broadcast", [calls, words] { calls->broadcast(words); });
  item("collect", [calls, words] { calls->collect(words); });
  item("fcollect", [calls, words] { calls->fcollect(words); });
  // `words` is the size of a PE's data for all PEs; each of them gets at least one word.
  item("alltoall", [calls, block = std::max<std::size_t>(words / size(), 1)] { calls->alltoall(block); });
  item(sum, [calls, words] { calls->sum(words); });
}

/// Small collectives on `words` words, whose names begin with `prefix`.
template <typename Kind>
void add_small(Items& items, const std::shared_ptr<CallsBy<Kind>>& calls, const std::string& prefix,
               std::size_t words) {
  const auto item = [&](const std::string& name, auto action) {
    items.push_back({prefix + name + " " + size_text(words * sizeof(long)), together(action), {}, kSmallCalls});
  };  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it
  item("broadcast", [calls, words] { calls->broadcast(words); });
  item("sum", [calls, words] { calls->sum(words); });
  item("fcollect", [calls, words] { calls->fcollect(words); });
  item("alltoall", [calls, words] { calls->alltoall(words); });
}

/// The mean time of a call on all PEs, with a barrier after each.
template <typename Action>
Figure followed(const std::shared_ptr<Calls>& calls, Action action) {
  return [calls, action](int count) {
    Library::barrier();
    double total = 0;
    for (int i = 0; i < count; ++i) {
      total += time_each(1, action);
      Library::barrier();
    }
    return calls->mean(total) / count;
  };
}

const Part kCollective("collective", [](Worker& /*worker*/, const Arguments& /*arguments*/) {
  const auto calls = make_calls(kLarge * size());
  Items items{{"barrier_all", barrier(), together([] { shmem_sync_all(); }), 10'000}};
  for (const std::size_t bytes : std::initializer_list<std::size_t>{8, 64, 1 << 10, 8 << 10, 64 << 10, 1 << 20}) {
    add(items, calls, bytes / sizeof(long), size_text(bytes));
  }
  return items;
});

/// For tune_collective.
const Part kTuning("tuning", [](Worker& /*worker*/, const Arguments& /*arguments*/) {
  const auto calls = make_calls(kLarge * size());
  Items items;
  for (const std::size_t bytes :
       std::initializer_list<std::size_t>{8, 16, 32, 64, 96, 256, 1024, 4096, 16384, 65536, 262144, 1048576}) {
    add(items, calls, bytes / sizeof(long), std::to_string(bytes), "reduce");
  }
  return items;
});

/// Calls that are timed one by one, with a barrier after each, as OSU's benchmarks do.
const Part kFollowed("followed", [](Worker& /*worker*/, const Arguments& /*arguments*/) {
  const auto calls = make_calls(kLarge);
  Items items;
  for (std::size_t words = 1; words <= kLarge; words *= words < 128 ? 2 : 8) {
    const std::string text = size_text(words * sizeof(long));
    const auto broadcast = followed(calls, [calls, words] { calls->broadcast(words, 0); });
    items.push_back({"broadcast " + text, broadcast, {}, most_calls(words)});
    const auto sum = followed(calls, [calls, words] { calls->sum(words); });
    items.push_back({"sum_reduce " + text, sum, {}, most_calls(words)});
  }
  return items;
});

/// Small calls in a row, compared with the raw round trip: of teams, where the library has those, and of active sets.
const Part kSmall("small", [](Worker& /*worker*/, const Arguments& /*arguments*/) {
  constexpr std::size_t kMostWords = 128;
  const auto sets = std::make_shared<CallsBy<SetCollectives>>(kMostWords * size() * sizeof(long));
  Items items{{"barrier_all", barrier(), {}, kSmallCalls},
              {"set: barrier", together([sets] { sets->barrier(); }), {}, kSmallCalls}};
#ifdef BENCH_OURS
  const auto teams = make_calls(kMostWords * size());
#endif
  for (const std::size_t words : {std::size_t{1}, std::size_t{8}, std::size_t{32}, kMostWords}) {
#ifdef BENCH_OURS
    add_small(items, teams, "", words);
#endif
    add_small(items, sets, "set: ", words);
  }
  return items;
});

}  // namespace
}  // namespace bench
