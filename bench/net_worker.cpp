// SPDX-License-Identifier: Apache-2.0
// One process of a job whose processes are on hosts of their own: what it measures goes over the network. Of libshmem,
// or built by Open MPI's compilers with BENCH_OPENMPI_SHMEM or BENCH_OPENMPI_MPI, of theirs.
//
//   net_worker FILE REPEATS PART     how often each is measured; PART is one-sided (two processes) or collective
#include <memory>

#include "bench/clock.hpp"
#include "bench/item.hpp"
#include "bench/net_library.hpp"
#include "bench/net_names.hpp"

namespace bench {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 20;

template <typename Action>
std::function<double(std::uint32_t)> together(Action action) {
  return [action](std::uint32_t count) {
    Library::barrier();
    return time_each(static_cast<int>(count), action);
  };
}

/// Process 0 acts. The other one is in the library meanwhile, without whose help nothing may go on.
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

/// One after the other, and all of them there at the end.
template <typename Action>
std::function<double(std::uint32_t)> stream(const std::shared_ptr<Remote>& remote, Action action) {
  return alone([remote, action](std::uint32_t count) {
    const Stopwatch watch;
    for (std::uint32_t i = 0; i < count; ++i) action();
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
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}}) {
    items.push_back(
        {"sum " + size_text(bytes), together([remote, bytes] { remote->sum(bytes / sizeof(long)); }), barrier});
  }
  return items;
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): std::function owns it

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  return bench::measure_items(argc, argv, [](bench::Player& /*player*/, const std::string& part) {
    const auto remote = std::make_shared<bench::Remote>(bench::kMost);
    return part == "collective" ? bench::collective(remote) : bench::one_sided(remote);
  });
}
