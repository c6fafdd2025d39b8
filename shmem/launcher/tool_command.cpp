// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/tool_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/number.hpp"
#include "base/size_text.hpp"
#include "shmem/launcher/child.hpp"
#include "shmem/launcher/options.hpp"

namespace shmem::launcher {
namespace {

using Ranges = std::vector<std::pair<int, int>>;

/// "0,3-5"
std::optional<Ranges> ranges_of(std::string_view text) {
  Ranges ranges;
  do {
    const auto first = base::take_number<int>(text);
    const auto last = base::take(text, '-') ? base::take_number<int>(text) : first;
    if (!first || !last || *first < 0 || *last < *first) {
      return std::nullopt;
    }
    ranges.emplace_back(*first, *last);
  } while (base::take(text, ',') && !text.empty());
  return text.empty() ? std::optional(ranges) : std::nullopt;
}

Result<std::string> find_tool(const std::string& name) {
  const char* path = std::getenv("PATH");
  return find_program(name, path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
}

}  // namespace

std::optional<Debugger> debugger_of(const std::string& text) {
  const auto colon = text.rfind(':');
  Debugger debugger{text, text.substr(0, colon), {}};
  if (colon != std::string::npos) {
    auto ranges = ranges_of(text.substr(colon + 1));
    if (!ranges) {
      return std::nullopt;
    }
    debugger.pes = std::move(*ranges);
  }
  return debugger.program.empty() ? std::nullopt : std::optional(debugger);
}

Result<ToolCommand> ToolCommand::of(const Options& options, bool terminal) {
  ToolCommand tool;
  if (!options.valgrind.empty()) {
    auto file = find_tool("valgrind");
    if (!file) {
      return file.error();
    }
    // Programs may run in other folders (--wdir).
    std::error_code error;
    const std::string prefix = std::filesystem::absolute(options.valgrind, error).string();
    tool.words_ = {*std::move(file), "--log-file=" + prefix + ".%q{OSHRUN_RANK}.log", "--child-silent-after-fork=yes"};
  }
  if (options.debugger) {
    auto file = find_tool(options.debugger->program);
    if (!file) {
      return file.error();
    }
    tool.pes_ = options.debugger->pes;
    const bool is_one = tool.pes_.empty() || (tool.pes_.size() == 1 && tool.pes_[0].first == tool.pes_[0].second);
    if (terminal && is_one && !options.part) {
      tool.at_terminal_ = tool.pes_.empty() ? 0 : tool.pes_[0].first;
      tool.pes_ = {{*tool.at_terminal_, *tool.at_terminal_}};
      tool.words_ = {*std::move(file), "-q", "--args"};
    } else {
      tool.words_ = {*std::move(file), "-q", "-batch", "-return-child-result"};
      // "backtrace" alone fails, and with it gdb, if the program has ended.
      for (const char* command : {"set startup-with-shell off", "set print thread-events off",
                                  "set print inferior-events off", "run", "thread apply all backtrace"}) {
        tool.words_.insert(tool.words_.end(), {"-ex", command});
      }
      tool.words_.emplace_back("--args");
    }
  }
  return tool;
}

std::vector<std::string> ToolCommand::before(int number) const {
  const bool is_chosen = pes_.empty() || std::ranges::any_of(pes_, [number](const auto& range) {
                           return range.first <= number && number <= range.second;
                         });
  return is_chosen ? words_ : std::vector<std::string>();
}

std::string valgrind_summary(const std::string& prefix, int pes) {
  int silent = 0;
  int with_errors = 0;
  long errors = 0;
  std::string first;
  for (int pe = 0; pe < pes; ++pe) {
    const std::string path = fmt::format("{}.{}.log", prefix, pe);
    std::ifstream file(path);
    long found = -1;
    for (std::string line; std::getline(file, line);) {
      const auto place = line.find("ERROR SUMMARY: ");
      found = place == std::string::npos ? found : std::atol(line.c_str() + place + 15);
    }
    silent += found < 0 ? 1 : 0;
    if (found > 0) {
      errors += found;
      ++with_errors;
      first = first.empty() ? path : first;
    }
  }
  std::string text = fmt::format("valgrind's reports: {}.PE.log; ", prefix);
  text += errors == 0 ? "no errors"
                      : fmt::format("{} of {}, first in {}", base::count(errors, "error"),
                                    base::count(with_errors, "PE"), first);
  return silent == 0 ? text : text + fmt::format("; no summary of {}", base::count(silent, "PE"));
}

}  // namespace shmem::launcher
