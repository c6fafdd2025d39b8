// SPDX-License-Identifier: Apache-2.0
// One process of a job whose processes are on different hosts, so that all calls go over the network. It measures
// libshmem or, built by Open MPI's compilers with BENCH_OPENMPI_SHMEM or BENCH_OPENMPI_MPI, Open MPI.
//
//   net_worker FILE REPEATS PART     REPEATS: measurements of each; PART: one-sided (two processes) or collective
#include <algorithm>
#include <memory>

#include "bench/library.hpp"
#include "bench/measure.hpp"
#include "bench/worker.hpp"

namespace bench {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 20;
/// The largest block of calls in which each process has a block for each other process.
constexpr std::size_t kBlock = std::size_t{64} << 10;

template <typename Action>
std::function<double(std::uint32_t)> together(Action action) {
  return [action](std::uint32_t count) {
    Library::barrier();
    return time_each(static_cast<int>(count), action);
  };
}

/// Process 0 acts. The other one is inside the library meanwhile: some transports need its progress.
template <typename Action>
std::function<double(std::uint32_t)> alone(Action action) {
  return [action](std::uint32_t count) {
    Library::barrier();
    const double time = Library::me() == 0 ? action(count) : 0;
    Library::barrier();
    return time;
  };
}

/// Half a round trip of a word.
std::function<double(std::uint32_t)> one_way(const std::shared_ptr<Remote>& remote) {
  return [remote, value = 0L](std::uint32_t count) mutable {
    Library::barrier();
    const Stopwatch watch;
    for (std::uint32_t i = 0; i < count; ++i) {
      ++value;
      if (Library::me() == 0) {
        remote->pass(value, 1);
        remote->await(value, 1);
      } else {
        remote->await(value, 0);
        remote->pass(value, 0);
      }
    }
    const double time = watch.nanoseconds() / count / 2;
    Library::barrier();
    return time;
  };
}

/// Calls one after the other, all complete at the end.
template <typename Action>
std::function<double(std::uint32_t)> stream(const std::shared_ptr<Remote>& remote, Action action) {
  return alone([remote, action](std::uint32_t count) {
    const Stopwatch watch;
    for (std::uint32_t i = 0; i < count; ++i) {
      action();
    }
    remote->quiet();
    return watch.nanoseconds() / count;
  });
}

std::vector<Item> one_sided(const std::shared_ptr<Remote>& remote) {
  const auto barrier = together([] { Library::barrier(); });
  const auto one_get = [remote] {
    remote->get(8);
    remote->quiet();
  };
  std::vector<Item> items;
  items.push_back({kPutLatency, one_way(remote), barrier});
  items.push_back({kGetLatency, stream(remote, one_get), barrier});
  for (const std::size_t bytes : kStreamed) {
    const auto most = static_cast<std::uint32_t>(64 * kMost / bytes);
    items.push_back({put_stream(bytes), stream(remote, [remote, bytes] { remote->put(bytes); }), barrier, most});
    items.push_back({get_stream(bytes), stream(remote, [remote, bytes] { remote->get(bytes); }), barrier, most});
  }
  return items;
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it

std::vector<Item> collective(const std::shared_ptr<Remote>& remote) {
  const auto barrier = together([] { Library::barrier(); });
  std::vector<Item> items;
  items.push_back({"barrier", barrier, barrier});
  const auto add = [&](const std::string& name, std::size_t bytes, auto action) {
    items.push_back({name + " " + size_text(bytes), together(action), barrier});
  };  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it
  for (const std::size_t bytes : {std::size_t{8}, kBlock, kMost}) {
    const std::size_t words = bytes / sizeof(long);
    add("sum", bytes, [remote, words] { remote->sum(words); });
    add("broadcast", bytes,
        [remote, words, turn = std::make_shared<int>(0)] { remote->broadcast(words, (*turn)++ % Library::size()); });
    if (bytes > kBlock) {
      continue;
    }
    add("fcollect", bytes, [remote, words] { remote->fcollect(words); });
    add("alltoall", bytes, [remote, words] { remote->alltoall(words); });
  }
  return items;
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, [](bench::Worker& /*worker*/, const std::vector<std::string>& parts) {
    const auto remote = std::make_shared<bench::Remote>(
        std::max(bench::kMost, bench::kBlock * static_cast<std::size_t>(bench::Library::size())));
    return parts[0] == "collective" ? bench::collective(remote) : bench::one_sided(remote);
  });
}
