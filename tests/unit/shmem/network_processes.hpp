// SPDX-License-Identifier: Apache-2.0
// PEs that reach each other's memory by the network only, each in a process of its own on this machine.
#pragma once

#include <gtest/gtest.h>
#include <ucp/api/ucp_version.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mapping.hpp"
#include "base/memfd.hpp"
#include "shmem/bootstrap/local.hpp"
#include "shmem/net/network.hpp"
#include "tests/unit/shmem/bootstrap_processes.hpp"
#include "tests/unit/shmem/text_of.hpp"

namespace shmem::testing {

/// Memory that the PEs of a test share besides the network, to coordinate their steps.
struct Rendezvous {
  std::atomic<int> arrived;
  std::atomic<int> served;  // PEs that have left NetworkPe::barrier_and_serve_no_more()
  std::atomic<int> flag;    // for the test's own use
};

/// One PE. Its heap is 16 MiB, its global variables 4 KiB.
struct NetworkPe {
  static constexpr std::size_t kHeapBytes = 16 << 20;

  int pe;
  int pes;
  std::unique_ptr<LocalBootstrap> world;
  Rendezvous& rendezvous;
  std::vector<std::byte> heap = std::vector<std::byte>(kHeapBytes);
  alignas(64) std::array<std::byte, 4096> globals{};
  std::unique_ptr<Network> network = nullptr;
  int barriers = 0;

  [[nodiscard]] NetworkSettings settings() {
    NetworkSettings asked{.segments = {heap, globals},
                          .is_remote = std::vector<bool>(static_cast<std::size_t>(pes), true),
                          .names = {},
                          .limit = std::chrono::seconds{60}};
    asked.is_remote[static_cast<std::size_t>(pe)] = false;
    for (int other = 0; other < pes; ++other) {
      asked.names.push_back("PE " + std::to_string(other) + " (on kiwi)");
    }
    return asked;
  }
  /// Connects to the other PEs. Returns the error, or "".
  std::string connect(NetworkSettings asked) {
    auto made = make_network(*world, std::move(asked));
    if (!made) {
      return made.error().text;
    }
    network = std::move(*made);
    return "";
  }
  /// A barrier of all PEs that serves the requests of the others while it waits.
  void barrier() {
    ++barriers;
    rendezvous.arrived.fetch_add(1);
    serve([&] { return rendezvous.arrived.load() >= pes * barriers; });
  }
  /// The same. After it no PE serves requests that another one makes after it.
  void barrier_and_serve_no_more() {
    barrier();
    rendezvous.served.fetch_add(1);
    while (rendezvous.served.load() < pes) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  template <typename Done>
  void serve(Done done) const {
    while (!done()) {
      if (!network->advance()) {
        network->sleep(std::chrono::microseconds{200});
      }
    }
  }

  [[nodiscard]] std::byte* heap_at(std::size_t offset) { return heap.data() + offset; }
  template <typename Word>
  [[nodiscard]] std::atomic<Word>& word(std::size_t offset) {
    return *reinterpret_cast<std::atomic<Word>*>(heap_at(offset));
  }
};

/// Runs `body` in each of `pes` processes, connected before if `connected`. Returns their results; "" is a success.
inline std::vector<std::string> with_network(int pes, const std::function<std::string(NetworkPe&)>& body,
                                             bool connected = true,
                                             const std::function<void(NetworkSettings&)>& change = {}) {
  const auto job = std::make_shared<const JobMemory>(JobMemory::create(pes).value());
  const base::Mapping shared = base::Mapping::share(base::create_memfd("test", 4096).value().get(), 4096).value();
  auto& rendezvous = *reinterpret_cast<Rendezvous*>(shared.data());
  return in_processes(
      pes,
      [&](int pe) -> std::string {
        NetworkPe place{pe, pes, LocalBootstrap::join(job, pe, std::chrono::seconds{60}).value(), rendezvous};
        if (connected) {
          NetworkSettings settings = place.settings();
          if (change) {
            change(settings);
          }
          if (std::string problem = place.connect(std::move(settings)); !problem.empty()) {
            return problem;
          }
        }
        std::string text = body(place);
        // As Runtime does if connections may be under way.
        static_cast<void>(place.network.release());
        return text;
      },
      std::chrono::seconds{200});
}

inline RemotePlace heap_of(int pe, std::uint64_t offset) {
  return {pe, Segment::kHeap, offset};
}

/// The error, or "".
template <typename T>
std::string problem_of(const Result<T>& result) {
  return result ? "" : result.error().text + "; ";
}

/// Bytes that differ with the position and the `seed`.
inline std::vector<std::byte> pattern(std::size_t bytes, int seed) {
  std::vector<std::byte> made(bytes);
  std::uint32_t state = static_cast<std::uint32_t>(seed) * 2654435761U + 1;
  for (std::byte& byte : made) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return made;
}

/// Whether this machine has UCX.
inline bool has_ucx() {
  static const bool has = [] {
    return with_network(1, [](NetworkPe&) { return std::string(); })[0].find("cannot be used") == std::string::npos;
  }();
  return has;
}

class NetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_ucx()) {
      GTEST_SKIP() << "UCX (libucx0) is not installed";
    }
  }
};

/// Tests that run twice: with requests that the other PE serves, and with UCX's own one-sided operations.
class OneSidedTest : public NetworkTest, public ::testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    if (GetParam() && UCP_API_MINOR >= 23) {
      GTEST_SKIP() << "UCX 1." << UCP_API_MINOR << " does not have all one-sided operations";
    }
  }
  /// with_network() with the setting of this test.
  static std::vector<std::string> in_this_way(int pes, const std::function<std::string(NetworkPe&)>& body,
                                              std::chrono::milliseconds limit = std::chrono::seconds{60}) {
    return with_network(pes, body, true, [limit](NetworkSettings& settings) {
      settings.direct = GetParam();
      settings.limit = limit;
    });
  }
};

inline std::string name_of_way(const ::testing::TestParamInfo<bool>& way) {
  return way.param ? "Direct" : "Requests";
}

}  // namespace shmem::testing
