// SPDX-License-Identifier: Apache-2.0
// kv_shuffle: balances the KV caches of several PEs for a trace of requests.
#include <cstdio>
#include <cstdlib>

#include "tools/kv_shuffle/reference.hpp"
#include "tools/kv_shuffle/replay.hpp"

namespace {

using namespace kv_program;  // NOLINT(google-build-using-namespace): the program itself

void say_result(const Options& options, const std::string& result) {
  if (options.json_only()) {
    if (shmem_my_pe() == 0 && result != "PASS") {
      complain("kv_shuffle: " + result);
    }
  } else {
    say("kv_shuffle: " + result);
  }
}

Outcome run(Options& options, Agreement& agreement, Results& results) {
  if (!options.generate_in.empty()) {
    return run_generate(options, agreement);
  }
  return options.import_from.empty() ? replay(options, agreement, results) : run_import(options, agreement, results);
}

/// Writes --json and --report on PE 0. Returns the first failure of the run and of the writing.
Outcome write_outputs(Outputs& outputs, const Options& options, Results& results, Outcome failed) {
  if (shmem_my_pe() != 0) {
    return failed;
  }
  if (failed) {
    results.failure = failed->empty() ? "another PE failed, and printed the reason on standard error" : *failed;
  }
  if (const auto written = outputs.write(options, results); !written && !failed) {
    return written.error().text;
  }
  return failed;
}

/// Returns the exit code. Only PE 0 writes files, so that only its code may differ from the others'.
int run_and_tell(Options options) {
  Outputs outputs;
  Results results;
  results.pes = shmem_n_pes();
  Agreement agreement;
  if (!agreement.ok()) {
    return EXIT_FAILURE;
  }
  auto failed = agree(agreement, shmem_my_pe() == 0 ? outputs.open(options) : Result<void>{});
  if (!failed) {
    failed = write_outputs(outputs, options, results, run(options, agreement, results));
  }
  if (!failed) {
    say_result(options, "PASS");
    return EXIT_SUCCESS;
  }
  if (!failed->empty() && shmem_my_pe() != 0) {
    complain("kv_shuffle: PE " + std::to_string(shmem_my_pe()) + ": " + *failed);
  }
  say_result(options, "FAIL" + (failed->empty() ? "" : ": " + *failed));
  return EXIT_FAILURE;
}

int read_and_run(int argc, char** argv) {
  const CommandLine line = read_command_line(argc, argv);
  if (line.go_on) {
    return run_and_tell(line.options);
  }
  if (shmem_my_pe() == 0) {
    std::fputs(line.text.c_str(), line.exit_code == 0 ? stdout : stderr);
  }
  return line.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  shmem_init();
  const int code = read_and_run(argc, argv);
  shmem_finalize();
  return code;
}
