// SPDX-License-Identifier: Apache-2.0
// Calls of processes on different hosts.
#include <algorithm>
#include <memory>

#include "bench/library.hpp"

namespace bench {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 20;
/// The largest block of calls in which each process has a block for each other process.
constexpr std::size_t kBlock = std::size_t{64} << 10;

using SharedCalls = std::shared_ptr<Calls>;

SharedCalls make_calls() {
  return std::make_shared<Calls>(std::max(kMost, kBlock * static_cast<std::size_t>(Library::size())));
}

/// Half a round trip of a word.
Figure one_way(const SharedCalls& calls) {
  return [calls, value = 0L](int count) mutable {
    Library::barrier();
    const Stopwatch watch;
    for (int i = 0; i < count; ++i) {
      ++value;
      if (Library::me() == 0) {
        calls->pass(value, 1);
        calls->await(value, 1);
      } else {
        calls->await(value, 0);
        calls->pass(value, 0);
      }
    }
    const double time = watch.nanoseconds() / count / 2;
    Library::barrier();
    return time;
  };
}

/// Process 0 makes calls one after the other, all complete at the end. The other one is inside the library meanwhile:
/// some transports need its progress.
template <typename Action>
Figure stream(const SharedCalls& calls, Action action) {
  return [calls, action](int count) {
    Library::barrier();
    const Stopwatch watch;
    if (Library::me() == 0) {
      for (int i = 0; i < count; ++i) {
        action();
      }
      calls->quiet();
    }
    const double time = watch.nanoseconds() / count;
    Library::barrier();
    return time;
  };
}

const Part kOneSided("one-sided between nodes", [](Worker& /*worker*/, const Arguments& /*arguments*/) {
  const SharedCalls calls = make_calls();
  const Figure barrier = together([] { Library::barrier(); });
  const auto one_get = [calls] {
    calls->get(8);
    calls->quiet();
  };
  Items items{{kPutLatency, one_way(calls), barrier}, {kGetLatency, stream(calls, one_get), barrier}};
  for (const std::size_t bytes : kStreamed) {
    const auto most = static_cast<int>(64 * kMost / bytes);
    items.push_back({put_stream(bytes), stream(calls, [calls, bytes] { calls->put(bytes); }), barrier, most});
    items.push_back({get_stream(bytes), stream(calls, [calls, bytes] { calls->get(bytes); }), barrier, most});
  }
  return items;
});  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it

const Part kCollective("collective between nodes", [](Worker& /*worker*/, const Arguments& /*arguments*/) {
  const SharedCalls calls = make_calls();
  const Figure barrier = together([] { Library::barrier(); });
  Items items{{"barrier", barrier, barrier}};
  for (const std::size_t bytes : {std::size_t{8}, kBlock, kMost}) {
    const std::size_t words = bytes / sizeof(long);
    const auto add = [&](const std::string& name, auto action) {
      items.push_back({name + " " + size_text(bytes), together(action), barrier});
    };  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it
    add("sum", [calls, words] { calls->sum(words); });
    add("broadcast", [calls, words] { calls->broadcast(words); });
    if (bytes <= kBlock) {
      add("fcollect", [calls, words] { calls->fcollect(words); });
      add("alltoall", [calls, words] { calls->alltoall(words); });
    }
  }
  return items;
});  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it

}  // namespace
}  // namespace bench
