// SPDX-License-Identifier: Apache-2.0
// shmem_info: what libshmem reads of the environment, what it would make of it, and how it was built.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/option_help.hpp"
#include "shmem/build_parts.hpp"
#include "shmem/config/build.hpp"
#include "shmem/config/config_file.hpp"
#include "shmem/config/options.hpp"
#include "shmem/config/tuning.hpp"
#include "shmem/config/unknown_variables.hpp"
#include "shmem/info/libraries.hpp"
#include "shmem/info/variables.hpp"
#include "shmem/version.hpp"

namespace {

using shmem::Setting;

constexpr int kWrongValue = 1;
constexpr int kWrongUsage = 2;

/// What libgba reads for itself; its own table is in gba(1).
constexpr const char* kOfLibgba =
    "GBA_DEVICE, GBA_PCI_ID, GBA_FLAGS, GBA_STATUS and GBA_VF_TOKEN are libgba's: see gba(1)";

std::string value_of(const std::vector<Setting>& settings, std::string_view name) {
  const auto found = std::find_if(settings.begin(), settings.end(),
                                  [name](const Setting& setting) { return setting.spec->name == name; });
  return found->value;
}

/// The configuration files, and what they set; nothing in one that is wrong, and why.
struct Config {
  Config() {
    for (const shmem::ConfigFile& file : shmem::config_files(shmem::process_environment(), shmem::has_more_rights())) {
      const auto read = shmem::read_config_file(file, values);
      files.push_back({file.path, read ? (*read ? "read" : "not there") : "wrong"});
      if (!read) {
        problems.push_back(read.error().text);
      }
    }
  }

  struct File {
    std::string path;
    const char* state;
  };
  std::vector<File> files;
  shmem::ConfigValues values;
  std::vector<std::string> problems;
};

/// The tables in force; the built-in one in place of one that cannot be read, and why.
struct Tables {
  explicit Tables(const std::vector<Setting>& settings) {
    take(shmem::TuningTable::in_force(value_of(settings, "SHMEM_BARRIER_TUNING")), barriers);
    take(shmem::CollectiveTable::in_force(value_of(settings, "SHMEM_COLLECTIVE_TUNING")), collectives);
  }

  shmem::TuningTable barriers = shmem::TuningTable::built_in();
  shmem::CollectiveTable collectives = shmem::CollectiveTable::built_in();
  std::vector<std::string> problems;

 private:
  template <typename Table>
  void take(shmem::Result<Table> read, Table& table) {
    if (read) {
      table = *std::move(read);
    } else {
      problems.push_back(read.error().text);
    }
  }
};

template <typename Table>
nlohmann::json rows_of(const Table& table) {
  auto rows = nlohmann::json::array();
  for (const auto& row : table.rows()) {
    rows.push_back(to_string(row));
  }
  return {{"from", table.name()}, {"rows", rows}};
}

nlohmann::json library_json(const shmem_info::LoadedLibrary& library) {
  nlohmann::json json{{"file", library.file}, {"version", nullptr}};
  if (library.version.empty()) {
    json["problem"] = library.problem;
  } else {
    json["version"] = library.version;
  }
  return json;
}

void print(const nlohmann::json& all) {
  // Values of variables may be any bytes.
  std::printf("%s\n", all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
}

/// With the libraries of this machine, which are loaded for that.
nlohmann::json build_object() {
  nlohmann::json build = nlohmann::json::parse(shmem::build_json());
  build["libraries"] = {{"ucx", library_json(shmem_info::find_ucx())}, {"pmix", library_json(shmem_info::find_pmix())}};
  for (const shmem::BuildPart& part : shmem::kBuildParts) {
    build["parts"][part.name] = *part.left_out == '\0' ? "built" : part.left_out;
  }
  return build;
}

void print_build_line(const char* title, const std::string& value) {
  std::printf("%-13s %s\n", title, value.c_str());
}

void print_library(const char* title, const shmem_info::LoadedLibrary& library) {
  const bool found = !library.version.empty();
  print_build_line(title,
                   library.file + (found ? ", version " + library.version : " cannot be loaded: " + library.problem));
}

void print_build() {
  for (const shmem::BuildFact& fact : shmem::build_facts()) {
    print_build_line(fact.title, fact.value.empty() ? "not in this build" : fact.value);
  }
  print_library("UCX here", shmem_info::find_ucx());
  print_library("PMIx here", shmem_info::find_pmix());
  for (const shmem::BuildPart& part : shmem::kBuildParts) {
    const bool built = *part.left_out == '\0';
    std::printf("%-48s%s%s\n", part.title, built ? "built" : "left out: ", part.left_out);
  }
}

nlohmann::json files_json(const Config& config) {
  auto files = nlohmann::json::array();
  for (const Config::File& file : config.files) {
    files.push_back({{"path", file.path}, {"state", file.state}});
  }
  return files;
}

void print_json(const std::vector<Setting>& settings, const Tables& tables, const Config& config) {
  auto variables = nlohmann::json::array();
  for (const Setting& setting : settings) {
    nlohmann::json entry{{"name", setting.spec->name}, {"type", setting.spec->kind},
                         {"value", setting.value},     {"default", setting.spec->initial},
                         {"from", setting.source},     {"help", setting.spec->help}};
    if (setting.spec->details != nullptr) {
      entry["details"] = setting.spec->details;
    }
    if (setting.spec->old_name != nullptr) {
      entry["old_name"] = setting.spec->old_name;
    }
    if (setting.problem) {
      entry["error"] = *setting.problem;
    }
    variables.push_back(std::move(entry));
  }
  auto algorithms = nlohmann::json::array();
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    algorithms.push_back({{"name", spec.name}, {"help", spec.help}});
  }
  print({{"schema", shmem::kJsonSchema},
         {"version", shmem::kVersion},
         {"openshmem", "1.6"},
         {"build", build_object()},
         {"configuration_files", files_json(config)},
         {"variables", variables},
         {"barrier_algorithms", algorithms},
         {"barrier_tuning", rows_of(tables.barriers)},
         {"collective_tuning", rows_of(tables.collectives)}});
}

void print_paragraph(const std::string& text, std::size_t width) {
  std::printf("%s\n", shmem_info::wrapped(text, 0, 0, width).c_str());
}

/// Columns of the name and of what follows.
struct Columns {
  std::size_t name;
  std::size_t width;  // of the terminal
};

void print_named(const char* name, const char* help, const Columns& columns) {
  const std::size_t indent = columns.name + 2;
  std::printf("  %-*s  %s\n", static_cast<int>(columns.name) - 2, name,
              shmem_info::wrapped(help, indent, indent, columns.width).c_str());
}

void print_text(const std::vector<Setting>& settings, const Tables& tables, const Config& config) {
  Columns columns{0, shmem_info::terminal_width()};
  for (const Setting& setting : settings) {
    columns.name = std::max(columns.name, std::string_view(setting.spec->name).size());
  }
  std::printf("libshmem %s, OpenSHMEM 1.6\n", shmem::kVersion);
  for (const Config::File& file : config.files) {
    std::printf("Configuration file %s: %s\n", file.path.c_str(), file.state);
  }
  std::fputs(shmem_info::table_text(settings, columns.width).c_str(), stdout);
  print_paragraph(kOfLibgba, columns.width);
  std::printf("Barrier algorithms in software (SHMEM_BARRIER_ALGORITHM):\n");
  for (const shmem::AlgorithmSpec& spec : shmem::kAlgorithms) {
    print_named(spec.name, spec.help, columns);
  }
  print_paragraph(
      fmt::format("What auto chooses, by {}: on a node the first line that fits the number of PEs, alone on their "
                  "processors or oversubscribed; between nodes, without a GBA, the first that fits the number of nodes",
                  tables.barriers.name()),
      columns.width);
  for (const shmem::TuningRow& row : tables.barriers.rows()) {
    std::printf("  %s\n", to_string(row).c_str());
  }
  std::printf("Ways of collectives:\n");
  for (const shmem::CollectiveWay& way : shmem::kCollectiveWays) {
    print_named(way.name, way.help, columns);
  }
  print_paragraph(
      fmt::format("Which way a collective takes, by {}: the first line that fits", tables.collectives.name()),
      columns.width);
  for (const shmem::CollectiveRow& row : tables.collectives.rows()) {
    std::printf("  %s\n", to_string(row).c_str());
  }
}

/// False, with a message, if the output could not be written.
bool output_written() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return true;
  }
  std::fputs("shmem_info: cannot write to standard output\n", stderr);
  return false;
}

int show_build(bool json) {
  if (json) {
    print({{"schema", shmem::kJsonSchema}, {"build", build_object()}});
  } else {
    print_build();
  }
  return output_written() ? 0 : kWrongValue;
}

/// What the command line asks for.
struct Wanted {
  bool json = false;
  bool build = false;
  bool changed = false;
  std::vector<std::string> names{};
};

/// The variable of this name, which may lack the beginning SHMEM_ or be an old one.
const Setting* find(const std::vector<Setting>& settings, const std::string& name) {
  const auto found = std::ranges::find_if(settings, [&name](const Setting& setting) {
    const std::string_view full(setting.spec->name);
    return name == full || "SHMEM_" + name == full ||
           (setting.spec->old_name != nullptr && name == setting.spec->old_name);
  });
  return found != settings.end() ? &*found : nullptr;
}

/// The variables that are wanted; nothing, with a message, if one does not exist.
std::optional<std::vector<Setting>> choose(const std::vector<Setting>& settings, const Wanted& wanted) {
  std::vector<Setting> chosen;
  for (const std::string& name : wanted.names) {
    const Setting* const found = find(settings, name);
    if (found == nullptr) {
      const std::string meant = shmem::nearest_variable(name);
      std::fprintf(stderr, "shmem_info: %s is not a variable of libshmem%s\n", name.c_str(),
                   meant.empty() ? "; shmem_info lists them" : fmt::format(": is {} meant?", meant).c_str());
      return std::nullopt;
    }
    chosen.push_back(*found);
  }
  if (wanted.names.empty()) {
    chosen = settings;
  }
  if (wanted.changed) {
    std::erase_if(chosen, [](const Setting& setting) { return setting.source == shmem::kFromDefault; });
  }
  return chosen;
}

void print_chosen(const std::vector<Setting>& chosen, const Wanted& wanted) {
  const std::size_t width = shmem_info::terminal_width();
  if (wanted.names.empty()) {
    std::fputs(
        chosen.empty() ? "no variable differs from its default\n" : shmem_info::table_text(chosen, width).c_str(),
        stdout);
    return;
  }
  for (const Setting& setting : chosen) {
    std::fputs(shmem_info::variable_text(setting, width).c_str(), stdout);
  }
}

int show_settings(const Wanted& wanted) {
  const Config config;
  const auto all = shmem::read_settings(shmem::process_environment(), config.values);
  const auto chosen = choose(all, wanted);
  if (!chosen) {
    return kWrongUsage;
  }
  const std::vector<Setting>& settings = *chosen;
  const Tables tables(all);
  if (wanted.json) {
    print_json(settings, tables, config);
  } else if (wanted.changed || !wanted.names.empty()) {
    print_chosen(settings, wanted);
  } else {
    print_text(settings, tables, config);
  }
  for (const std::string& line : shmem::unknown_variables(environ)) {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  int status = 0;
  for (const auto& problems : {config.problems, tables.problems}) {
    for (const std::string& problem : problems) {
      std::fprintf(stderr, "%s\n", problem.c_str());
      status = kWrongValue;
    }
  }
  for (const Setting& setting : settings) {
    if (!setting.problem) {
      continue;
    }
    std::fprintf(stderr, "%s\n", setting.problem->c_str());
    status = kWrongValue;
  }
  return output_written() ? status : kWrongValue;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Prints every environment variable that libshmem reads: its value, where that comes from, and what it does. "
      "Exits with 1 if a value is wrong.",
      "shmem_info");
  app.formatter(std::make_shared<base::OptionHelp>());
  app.failure_message(base::explain_mistake);
  Wanted wanted;
  app.add_option("NAME", wanted.names, "all about these variables only");
  app.add_flag("--json", wanted.json, "print JSON");
  app.add_flag("--changed", wanted.changed, "print only the variables that differ from their defaults");
  app.add_flag("--build", wanted.build, "print how this libshmem was built, and which libraries it finds here");
  app.set_version_flag("--version", std::string("shmem_info ") + shmem::kVersion);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  return wanted.build ? show_build(wanted.json) : show_settings(wanted);
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& error) {
  std::fprintf(stderr, "shmem_info: %s\n", error.what());
  return kWrongValue;
}
