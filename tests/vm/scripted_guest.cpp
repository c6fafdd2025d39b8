// SPDX-License-Identifier: Apache-2.0
#include "tests/vm/scripted_guest.hpp"

#include <sstream>

#include "tests/support/job.hpp"
#include "tests/support/text.hpp"
#include "tests/vm/machine.hpp"

namespace vm {
namespace {

/// True for a message of the guest's kernel, which may come between the lines of a command.
bool is_from_kernel(const std::string& line) {
  return test_support::has_match(line, R"(^\[ *[0-9]+\.[0-9]{6}\] )");
}

std::map<std::string, Said> parse(const std::string& console) {
  const std::string begin = "gba-vm: begin ";
  const std::string end = "gba-vm: end ";
  std::map<std::string, Said> all;
  Said* current = nullptr;
  std::istringstream lines(console);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && line.back() == '\r') {
      line.pop_back();
    }
    if (line.starts_with(begin)) {
      current = &all[line.substr(begin.size())];
    } else if (current != nullptr && line.starts_with(end)) {
      current->code = std::stoi(line.substr(end.size()));
      current = nullptr;
    } else if (current != nullptr && !is_from_kernel(line)) {
      current->text += line + "\n";
    }
  }
  return all;
}

}  // namespace

Transcript boot(const std::string& kernel, const std::string& script, std::vector<std::string> arguments,
                test_support::Seconds limit) {
  const test_support::TempDir dir;
  arguments.insert(arguments.begin(), GBA_SOURCE_DIR "/tests/vm/" + script);
  arguments.push_back(dir.file("initramfs"));
  const auto made = test_support::run(arguments, {}, test_support::Seconds{300});
  if (!made.exit.clean()) {
    return {script + " failed: " + made.output, {}};
  }
  const test_support::FakeDevice device({"--trust-memory"});
  Machine machine(kernel, dir.file("initramfs"), device.socket());
  machine.process().wait(limit);
  const auto console = machine.console();
  return {console, parse(console)};
}

}  // namespace vm
