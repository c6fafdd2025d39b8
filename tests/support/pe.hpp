// SPDX-License-Identifier: Apache-2.0
// What tests of jobs include: jobs whose PEs are programs in build/tests, such as those of pe.h.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <vector>

#include "tests/support/job.hpp"
#include "tests/support/soak.hpp"

namespace test_support {

using Words = std::vector<std::string>;

/// Runs a job to its end: oshrun -n pes [--gba gba]. The first word of `command` is the name of a program of the tests,
/// or a path.
inline Outcome run_pes(int pes, const std::string& gba, Words command, const Words& environment = {},
                       Seconds limit = Seconds{120}) {
  if (command[0].find('/') == std::string::npos) {
    command[0] = test_program(command[0]);
  }
  return run(oshrun(pes, gba, command), environment, limit);
}

/// The same for a job that must succeed.
inline Outcome run_clean(int pes, const std::string& gba, const Words& command, const Words& environment = {},
                         Seconds limit = Seconds{120}) {
  auto job = run_pes(pes, gba, command, environment, limit);
  EXPECT_TRUE(job.exit.clean()) << pes << " PEs of " << testing::PrintToString(command) << '\n' << job.output;
  return job;
}

/// The command of PEs on nodes, which are environments on this machine: the expression `node` of the shell, after the
/// rank, gives the node's name. "/ 2" puts 2 consecutive PEs on each node, "% 2" deals them to 2 nodes in turn.
inline Words on_nodes(const std::string& node, Words command) {
  command[0] = test_program(command[0]);
  const std::string script = "export SHMEM_HOST_ID=node$((OSHRUN_RANK " + node + R"()); exec "$0" "$@")";
  command.insert(command.begin(), {"/bin/sh", "-c", script});
  return command;
}

/// The name of a test with these parameters, which are joined by "_", without hyphens.
template <typename... Parts>
std::string joined(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << [&] {
    std::ostringstream part;
    part << (text.str().empty() ? "" : "_") << parts;
    return part.str();
  }());
  std::string name = text.str();
  std::erase(name, '-');
  return name;
}
inline constexpr auto kNameByParameters = [](const auto& test) {
  if constexpr (requires { std::tuple_size<std::decay_t<decltype(test.param)>>::value; }) {
    return std::apply([](const auto&... parts) { return joined(parts...); }, test.param);
  } else {
    return joined(test.param);
  }
};

/// How often `part` is in the text.
inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace test_support
