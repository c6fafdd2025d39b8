// SPDX-License-Identifier: Apache-2.0
// kv_exchange: blocks by key between processes that come and go.
#include <cstdio>
#include <cstdlib>

#include "tools/kv_exchange/commands.hpp"

namespace {

using namespace kv_exchange;  // NOLINT(google-build-using-namespace): the program itself

Result<void> run(const Options& options) {
  switch (options.command) {
    case Command::kServe:
      return serve(options);
    case Command::kHold:
      return hold(options);
    case Command::kPin:
      return pin(options, true);
    case Command::kUnpin:
      return pin(options, false);
    case Command::kEvents:
      return events(options);
    case Command::kPut:
      return put(options);
    case Command::kGet:
      return get(options);
    case Command::kList:
      return list(options);
    case Command::kStats:
      return stats(options);
    case Command::kTop:
      return top(options);
    case Command::kBench:
      return options.members.empty() ? bench(options) : bench_nodes(options);
    case Command::kExchanges:
      return exchanges();
    case Command::kPing:
      return ping(options);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const CommandLine line = read_command_line(argc, argv);
  if (!line.go_on) {
    std::fputs(line.text.c_str(), line.exit_code == 0 ? stdout : stderr);
    return line.exit_code;
  }
  if (!line.options.directory.empty()) {
    ::setenv("SHMEM_EXCHANGE_DIR", line.options.directory.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): one thread yet
  }
  const auto outcome = run(line.options);
  if (!outcome) {
    std::fprintf(stderr, "kv_exchange: %s\n", outcome.error().text.c_str());
    return EXIT_FAILURE;
  }
  if (std::fflush(stdout) != 0) {
    std::perror("kv_exchange: standard output");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
