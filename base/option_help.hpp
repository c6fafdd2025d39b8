// SPDX-License-Identifier: Apache-2.0
// How the programs describe their options. Only for the files that include CLI11.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace base {

/// Shows the words or the kind of value that an option takes, and says in its text what else is true of it, in the
/// place of CLI11's names of types and checks. Lines look alike with all versions of CLI11, and are not broken:
/// completions and documents have them. Set it before subcommands are added, which inherit it.
class OptionHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const std::string footer = app->get_footer();
    return app->get_description() + "\n" + make_usage(app, std::move(name)) + make_positionals(app) +
           make_groups(app, mode) + make_subcommands(app, mode) + "\n" + footer + (footer.empty() ? "" : "\n");
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string text = "Usage: " + name;
    text +=
        app->get_options([](const CLI::Option* option) { return option->nonpositional(); }).empty() ? "" : " [OPTIONS]";
    for (const CLI::Option* option : app->get_options([](const CLI::Option* one) { return one->get_positional(); })) {
      text += " " + make_option_usage(option);
    }
    const bool has_commands = !app->get_subcommands([](const CLI::App*) { return true; }).empty();
    const bool needs_one = app->get_require_subcommand_min() != 0;
    return text + (!has_commands ? "\n" : needs_one ? " SUBCOMMAND\n" : " [SUBCOMMAND]\n");
  }

  std::string make_group(std::string group, bool positional, std::vector<const CLI::Option*> options) const override {
    std::string text = "\n" + title_of(std::move(group)) + ":\n";
    for (const CLI::Option* option : options) {
      text += make_option(option, positional);
    }
    return text;
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode /*mode*/) const override {
    std::string text;
    for (const CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; })) {
      text += (text.empty() ? "\nSubcommands:\n" : "") + line("  " + command->get_name(), command->get_description());
    }
    return text;
  }

  std::string make_option(const CLI::Option* option, bool positional) const override {
    return line("  " + make_option_name(option, positional) + make_option_opts(option), make_option_desc(option));
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) {
      return {};
    }
    std::string value = value_of(option->get_type_name());
    if (option->get_positional() && option->get_type_name().starts_with(kText)) {
      value.clear();  // its name says what it is
    }
    const bool several = option->get_expected_max() == CLI::detail::expected_max_vector_size;
    const char* const more = !several ? "" : option->get_delimiter() == '\0' ? " ..." : ",...";
    return (value.empty() ? "" : " " + value) + more;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    const std::string range = between(option->get_type_name(), " in [", "]");
    const auto dash = range.find(" - ");
    // A bound of many digits is there to refuse what makes no sense.
    if (dash != std::string::npos && range.size() - dash < kManyDigits && range.find('e') == std::string::npos) {
      text += "; " + range.substr(0, dash) + " to " + range.substr(dash + 3);
    }
    std::string usual = option->get_default_str();
    if (usual.starts_with('[') && usual.ends_with(']')) {
      usual = usual.substr(1, usual.size() - 2);
    }
    text += usual.empty() ? "" : "; default " + usual;
    text += option->get_required() && !option->get_positional() ? "; required" : "";
    std::string others;
    for (const CLI::Option* other : option->get_excludes()) {
      others += (others.empty() ? "; not with " : ", ") + other->get_name();
    }
    return text + others;
  }

 private:
  static constexpr std::size_t kColumn = 30;  // where texts begin

  static std::string line(std::string name, const std::string& text) {
    if (!text.empty()) {
      name += name.size() >= kColumn ? "\n" + std::string(kColumn, ' ') : std::string(kColumn - name.size(), ' ');
    }
    return name + text + "\n";
  }

  /// Newer versions of CLI11 write its own names in capitals.
  static std::string title_of(std::string group) {
    return group == "OPTIONS" ? "Options" : group == "POSITIONALS" ? "Positionals" : group;
  }

  static constexpr const char* kText = "TEXT";
  static constexpr std::size_t kManyDigits = 11;

  static std::string between(const std::string& text, const std::string& begin, const std::string& end) {
    const auto at = text.find(begin);
    const auto from = at == std::string::npos ? text.size() : at + begin.size();
    return text.substr(from, text.find(end, from) - from);
  }

  /// "INT:INT in [1 - 8]" is N, "TEXT:{a,b}" is a|b; a name that the option was given stays.
  static std::string value_of(const std::string& type) {
    std::string words = between(type, "{", "}");
    if (!words.empty()) {
      std::replace(words.begin(), words.end(), ',', '|');
      return words;
    }
    const bool is_size = type.find(":SIZE ") != std::string::npos;
    std::string name = type;
    for (const char* check : {":SIZE ", ":INT in ", ":UINT in ", ":FLOAT in "}) {
      name = name.substr(0, name.find(check));
    }
    return name != "INT" && name != "UINT" && name != "FLOAT" ? name : is_size ? "BYTES" : "N";
  }
};

/// What is wrong with a command line, after the name of the program; if a command is missing or not known, also the
/// list of commands.
inline std::string explain_mistake(const CLI::App* app, const CLI::Error& error) {
  if (error.get_name() == "RequiredError" && app->get_subcommands().empty()) {
    const auto others = app->remaining();
    const std::string mistake = others.empty()                    ? "a command is missing"
                                : others.front().starts_with('-') ? others.front() + " is not an option"
                                                                  : others.front() + " is not a command";
    return app->get_name() + ": " + mistake + "\n\n" + app->help();
  }
  return app->get_name() + ": " + CLI::FailureMessage::simple(app, error);
}

}  // namespace base
