// SPDX-License-Identifier: Apache-2.0
// The command line of kv_exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kv_exchange {

enum class Command { kServe, kHold, kPin, kUnpin, kEvents, kPut, kGet, kList, kStats, kTop, kBench, kExchanges, kPing };

struct Options {
  Command command = Command::kStats;
  std::string exchange;
  std::string key;
  std::string file = "-";            // put, get; "-": standard input or output
  std::vector<std::string> files;    // serve
  std::string listen;                // an address of this node; "": any, if there are members on other nodes
  std::vector<std::string> members;  // addresses of members on other nodes
  std::string directory;             // where members meet; "": as the environment says
  std::size_t bytes = 0;             // hold
  std::uint32_t blocks = 0;          // hold; 0: as many as there is room for
  std::vector<std::pair<std::string, std::uint64_t>> tenants;  // hold; bytes by name
  std::string tenant;                                          // put
  std::size_t room = std::size_t{256} << 20;
  std::uint32_t lease_ms = 1000;
  std::string metrics;                      // serve, hold; an address, or nothing
  std::string events;                       // hold; an address, or nothing
  double interval = 1;                      // top; seconds
  std::uint64_t rounds = 0;                 // top; 0: until a signal comes
  double limit = 10;                        // put, pin, unpin, bench; seconds
  std::size_t most = std::size_t{1} << 30;  // get; bytes
  std::vector<std::size_t> sizes{1024, 8192, 65536};
  int repeats = 20;
  bool json = false;
};

/// Either run with `options`, or print `text` and end with `exit_code` (0 after --help).
struct CommandLine {
  bool go_on = false;
  Options options{};
  int exit_code = 0;
  std::string text{};
};
CommandLine read_command_line(int argc, const char* const* argv);

}  // namespace kv_exchange
