// SPDX-License-Identifier: Apache-2.0
#include "bench/options.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <type_traits>

#include "base/option_help.hpp"
#include "base/usable_processors.hpp"

namespace bench {
namespace {

void add(CLI::App& app, const Option& option) {
  std::visit(
      [&](auto* value) {
        using Value = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
          app.add_flag(option.name, *value, option.text);
        } else {
          CLI::Option& added = *app.add_option(option.name, *value, option.text);
          if (std::is_same_v<Value, std::string> && option.choices.empty()) {
            added.type_name("FILE");
          }
          if (option.range) {
            added.check(CLI::Range(option.range->least, option.range->most));
          }
          if (!option.choices.empty()) {
            added.check(CLI::IsMember(option.choices));
          }
          if (option.check) {
            added.check(option.check);
          }
          if (added.get_items_expected_max() > 1 && !added.get_positional()) {
            added.delimiter(',')->allow_extra_args(false);
          }
          if (*value != Value{}) {
            added.capture_default_str();
          }
        }
      },
      option.value);
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  CLI::App app(program.description, program.name);
  app.formatter(std::make_shared<base::OptionHelp>());
  app.failure_message(base::explain_mistake);
  for (const Option& option : program.options) {
    add(app, option);
  }
  if (program.version != nullptr) {
    app.set_version_flag("--version", std::string(program.name) + " " + program.version);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (program.needs_two_processors && base::usable_processors() < 2) {
    std::printf("Needs two processors, and this process may use only one.\n");
    return kSkipped;
  }
  try {
    return program.run();
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", program.name, error.what());
    return 1;
  }
}

}  // namespace bench
