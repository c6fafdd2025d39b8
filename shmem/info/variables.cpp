// SPDX-License-Identifier: Apache-2.0
#include "shmem/info/variables.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace shmem_info {
namespace {

/// With less room than this beside the values, the meaning of a variable has lines of its own.
constexpr std::size_t kLeastRoom = 40;
constexpr std::size_t kIndent = 4;

std::string old_name_text(const shmem::OptionSpec& spec) {
  return spec.old_name != nullptr ? fmt::format("({} is its old name)", spec.old_name) : "";
}

}  // namespace

std::size_t terminal_width() {
  winsize size{};
  return ::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string wrapped(std::string_view text, std::size_t first, std::size_t indent, std::size_t width) {
  std::string all;
  std::size_t column = first;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const bool is_first = all.empty();
    if (!is_first && width > 0 && column + 1 + end > width) {
      all += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      all += ' ';
      ++column;
    }
    all += text.substr(0, end);
    column += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

std::string table_text(const std::vector<shmem::Setting>& settings, std::size_t width) {
  std::size_t names = 0;
  std::size_t values = 0;
  std::size_t sources = std::string_view("environment").size();
  for (const shmem::Setting& setting : settings) {
    names = std::max(names, std::string_view(setting.spec->name).size());
    values = std::max(values, setting.value.size());
    sources = std::max(sources, setting.source.size());
  }
  const std::size_t indent = names + values + sources + 6;
  std::string text;
  for (const shmem::Setting& setting : settings) {
    const std::string old_name = old_name_text(*setting.spec);
    if (width > 0 && indent + kLeastRoom > width) {
      const std::string help = setting.spec->help + (old_name.empty() ? "" : " " + old_name);
      text += fmt::format("{}={} ({})\n{:{}}{}\n", setting.spec->name, setting.value, setting.source, "", kIndent,
                          wrapped(help, kIndent, kIndent, width));
      continue;
    }
    text += fmt::format("{:{}}  {:{}}  {:{}}  {}\n", setting.spec->name, names, setting.value, values, setting.source,
                        sources, wrapped(setting.spec->help, indent, indent, width));
    if (!old_name.empty()) {
      text += fmt::format("{:{}}  {}\n", "", names, old_name);
    }
  }
  return text;
}

std::string variable_text(const shmem::Setting& setting, std::size_t width) {
  const shmem::OptionSpec& spec = *setting.spec;
  std::string text = fmt::format("{}={} ({})\n", spec.name, setting.value, setting.source);
  const auto add = [&](const std::string& line) {
    text += fmt::format("{:{}}{}\n", "", kIndent, wrapped(line, kIndent, kIndent, width));
  };
  add(std::string(spec.help) + ".");
  if (spec.details != nullptr) {
    add(spec.details);
  }
  const std::string initial = *spec.initial == '\0' ? "not set" : spec.initial;
  add(fmt::format("Type: {}; default: {}.{}{}", spec.kind, initial, spec.old_name != nullptr ? " " : "",
                  spec.old_name != nullptr ? fmt::format("{} is its old name.", spec.old_name) : ""));
  return text;
}

}  // namespace shmem_info
