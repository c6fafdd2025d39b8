// SPDX-License-Identifier: Apache-2.0
#include "shmem/config/config_file.hpp"

#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>
#include <string_view>

#include "base/regular_file.hpp"
#include "shmem/config/process_state.hpp"

namespace shmem {
namespace {

constexpr std::size_t kLargestFile = std::size_t{64} << 10;  // far above a line for each variable
constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlanks);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

/// Without a comment: "#" at the beginning or after a blank.
std::string_view without_comment(std::string_view line) {
  for (auto mark = line.find('#'); mark != std::string_view::npos; mark = line.find('#', mark + 1)) {
    if (mark == 0 || kBlanks.find(line[mark - 1]) != std::string_view::npos) {
      return line.substr(0, mark);
    }
  }
  return line;
}

/// "" or what is wrong with a variable of this name in a file.
std::string name_problem(std::string_view name) {
  if (name == kConfigFileVariable) {
    return "is read from the environment only";
  }
  const auto table = option_table();
  if (std::ranges::any_of(table, [name](const OptionSpec& spec) { return name == spec.name; })) {
    return "";
  }
  const auto old = std::ranges::find_if(
      table, [name](const OptionSpec& spec) { return spec.old_name != nullptr && name == spec.old_name; });
  if (old != table.end()) {
    return fmt::format("is the old name of {}: use that here", old->name);
  }
  return fmt::format("is not a variable of libshmem (shmem_info lists them){}",
                     name.starts_with("GBA_") ? "; those of libgba are read from the environment only" : "");
}

Error wrong_line(const std::string& path, int line, const std::string& problem) {
  return fail(std::errc::invalid_argument, fmt::format("shmem: {}:{}: {}", path, line, problem));
}

/// `what`: which file it is, and how to do without it.
Error cannot_read(const ConfigFile& file, const std::string& why) {
  return fail(std::errc::invalid_argument,
              fmt::format("shmem: cannot read the configuration file {}: {} ({})", file.path, why,
                          file.required ? "SHMEM_CONFIG_FILE names it"
                                        : "repair or remove it, or set SHMEM_CONFIG_FILE=none to use no such file"));
}

/// Also a file in a folder that this process may not look into: it may be the home of another user.
bool exists(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0;
}

std::string user_file(const Environment& environment) {
  const auto named = environment("XDG_CONFIG_HOME");
  if (named && named->starts_with('/')) {
    return *named + "/libshmem.conf";
  }
  const auto home = environment("HOME");
  return home && home->starts_with('/') ? *home + "/.config/libshmem.conf" : "";
}

}  // namespace

bool has_more_rights() {
  return ::getauxval(AT_SECURE) != 0;
}

std::vector<ConfigFile> config_files(const Environment& environment, bool more_rights) {
  if (more_rights) {
    return {{kSystemConfigFile}};
  }
  if (const auto named = environment(kConfigFileVariable)) {
    // An empty name is refused as a value.
    if (*named == "none" || named->empty()) {
      return {};
    }
    return {{*named, true}};
  }
  std::vector<ConfigFile> files{{kSystemConfigFile}};
  if (std::string path = user_file(environment); !path.empty()) {
    files.push_back({std::move(path)});
  }
  return files;
}

Result<void> parse_config(const std::string& path, const std::string& text, ConfigValues& values) {
  std::istringstream lines(text);
  lines.exceptions(std::ios::badbit);  // no memory for a word throws, and does not end the text
  std::map<std::string, int, std::less<>> seen;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string_view content = trimmed(without_comment(line));
    if (content.empty()) {
      continue;
    }
    const auto equals = content.find('=');
    const std::string name(trimmed(content.substr(0, equals)));
    if (equals == std::string_view::npos || name.empty()) {
      return wrong_line(path, number, fmt::format("\"{}\" is not NAME = VALUE", content));
    }
    if (const std::string problem = name_problem(name); !problem.empty()) {
      return wrong_line(path, number, fmt::format("{} {}", name, problem));
    }
    if (const auto [first, is_new] = seen.emplace(name, number); !is_new) {
      return wrong_line(path, number, fmt::format("{} is already set in line {}", name, first->second));
    }
    values[name] = {std::string(trimmed(content.substr(equals + 1))), fmt::format("{}:{}", path, number)};
  }
  return {};
}

Result<bool> read_config_file(const ConfigFile& file, ConfigValues& values) {
  if (!file.required && !exists(file.path)) {
    return false;
  }
  const auto fd = base::open_regular_file(file.path);
  if (!fd) {
    return cannot_read(file, fd.error().text);
  }
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) {
    return cannot_read(file, std::strerror(errno));
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return cannot_read(file, "every user may write it: chmod o-w");
  }
  const auto text = base::read_text(*fd, kLargestFile);
  if (!text) {
    return cannot_read(file, text.error().text);
  }
  if (auto parsed = parse_config(file.path, *text, values); !parsed) {
    return parsed.error();
  }
  return true;
}

Result<ConfigValues> process_config() {
  ConfigValues values;
  for (const ConfigFile& file : config_files(process_environment(), has_more_rights())) {
    if (auto read = read_config_file(file, values); !read) {
      return read.error();
    }
  }
  return values;
}

namespace {

/// The secret of the PEs of a job, from oshrun or the user: programs that a PE starts do not inherit it, and it is not
/// in /proc/PID/environ. Kept for the next start of the library, and for the exchanges of a PE. A process that is no PE
/// leaves it: its children may be members of an exchange, as it may be.
void take_job_secret(Options& options) {
  constexpr const char* kVariable = "SHMEM_UID_SECRET";
  ProcessState& state = *kvexchange_process_state_1();
  const std::lock_guard lock(state.secret_mutex);
  // As everywhere in the library, the program does not change its environment in another thread.
  if (char* const given = std::getenv(kVariable); given != nullptr && options.uid_rank) {
    state.job_secret = given;
    std::memset(given, 'x', state.job_secret.size());
    ::unsetenv(kVariable);
  }
  if (options.uid_secret.empty()) {
    options.uid_secret = state.job_secret;
  }
}

}  // namespace

Result<Options> process_options() {
  const auto config = process_config();
  auto options = config ? read_options(process_environment(), *config) : config.error();
  if (options) {
    take_job_secret(*options);
  }
  return options;
}

}  // namespace shmem
