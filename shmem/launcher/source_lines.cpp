// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/source_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "shmem/launcher/node_part.hpp"

namespace shmem::launcher {
namespace {

/// Calls that a line names.
constexpr std::size_t kMostCalls = 8;

struct Call {
  std::string module;
  std::string offset;
  std::string function;  // "": unknown
  std::string line;      // "heat.c:31"; "": unknown
};

std::string base_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<Call> read_calls(std::string_view frames) {
  std::vector<Call> calls;
  std::istringstream stream{std::string(frames)};
  for (std::string line; std::getline(stream, line);) {
    if (const auto space = line.find(' '); space != std::string::npos) {
      calls.push_back({line.substr(space + 1), "0x" + line.substr(0, space), "", ""});
    }
  }
  return calls;
}

/// The output of a shell's command.
std::string output_of(const std::string& command) {
  struct Close {
    void operator()(std::FILE* stream) const { ::pclose(stream); }
  };
  const std::unique_ptr<std::FILE, Close> stream(::popen(command.c_str(), "re"));
  std::string text;
  std::array<char, 4096> part{};
  while (stream) {
    const std::size_t got = std::fread(part.data(), 1, part.size(), stream.get());
    if (got == 0) {
      break;
    }
    text.append(part.data(), got);
  }
  return text;
}

/// "heat.c:31" of "/home/me/heat.c:31 (discriminator 2)"; "" of "??:0" and "heat.c:?".
std::string line_of(const std::string& place) {
  const std::string text = base_name(place.substr(0, place.find(" (")));
  return text.starts_with("??") || text.ends_with(":?") || text.ends_with(":0") ? "" : text;
}

/// Fills in what is known of the calls in one module. Within seconds, and without a look into the network.
void look_up(std::vector<Call>& calls, const std::string& module) {
  std::vector<std::string> command{"timeout", "-s", "KILL", "5", "addr2line", "-C", "-f", "-e", module};
  for (const Call& call : calls) {
    if (call.module == module) {
      command.push_back(call.offset);
    }
  }
  std::istringstream stream(output_of("DEBUGINFOD_URLS= " + quoted(command) + " </dev/null 2>/dev/null"));
  for (Call& call : calls) {
    std::string function;
    std::string place;
    if (call.module != module || !std::getline(stream, function) || !std::getline(stream, place)) {
      continue;
    }
    call.function = function == "??" ? "" : function;
    call.line = line_of(place);
  }
}

std::string text_of(const Call& call) {
  const std::string module = base_name(call.module);
  if (call.function.empty()) {
    return module + "+" + call.offset;
  }
  return fmt::format("{} ({})", call.function, call.line.empty() ? module : call.line);
}

bool has_line(const Call& call) {
  return !call.line.empty();
}

/// In a library that each program has, of which its author knows nothing.
bool is_in_system(const Call& call) {
  constexpr std::array<std::string_view, 6> kSystem{"libc.",     "libc-",          "libstdc++.",
                                                    "libgcc_s.", "libkvexchange.", "libshmem."};
  const std::string module = base_name(call.module);
  return std::ranges::any_of(kSystem, [&module](std::string_view start) { return module.starts_with(start); });
}

/// Without what is inside those libraries or was there before main().
void leave_out_others(std::vector<Call>& calls) {
  const auto first = std::ranges::find_if(calls, [](const Call& call) { return !is_in_system(call); });
  if (first != calls.end()) {
    calls.erase(calls.begin(), first);
  }
  const auto main = std::ranges::find(calls, "main", &Call::function);
  if (main != calls.end()) {
    calls.erase(main + 1, calls.end());
  }
}

}  // namespace

std::string source_lines(std::string_view frames) {
  std::vector<Call> calls = read_calls(frames);
  std::vector<std::string> modules;
  for (const Call& call : calls) {
    if (std::ranges::find(modules, call.module) == modules.end()) {
      modules.push_back(call.module);
    }
  }
  for (const std::string& module : modules) {
    look_up(calls, module);
  }
  const bool has_lines = std::ranges::any_of(calls, has_line);
  const bool has_names = std::ranges::any_of(calls, [](const Call& call) { return !call.function.empty(); });
  leave_out_others(calls);
  std::string text;
  std::string last;
  std::size_t named = 0;
  for (const Call& call : calls) {
    const std::string name = text_of(call);
    if (name == last) {  // a recursion
      continue;
    }
    if (named++ == kMostCalls) {
      text += ", and more";
      break;
    }
    text += (last.empty() ? "" : ", ") + name;
    last = name;
  }
  if (has_lines || text.empty()) {
    return text;
  }
  return text + (has_names ? " (compile with -g for source lines)" : " (addr2line of binutils would name the lines)");
}

}  // namespace shmem::launcher
