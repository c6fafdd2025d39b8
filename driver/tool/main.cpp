// SPDX-License-Identifier: Apache-2.0
// gba: looks at Global Barrier Accelerators, tests, measures and resets them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "base/option_help.hpp"
#include "driver/tool/invocation.hpp"
#include "gba/gba.h"

namespace tool {

Command declare(CLI::App& app, Invocation& invocation, const std::string& name, const std::string& help,
                const std::function<int()>& run) {
  CLI::App* const command = app.add_subcommand(name, help);
  command->add_flag("--json", invocation.json, "print JSON");
  command->callback([&invocation, run] { invocation.run = run; });
  return Command(*command);
}

void take_device(Command& command, Invocation& invocation) {
  command.text("DEVICE", invocation.device,
               "path, PCI address or vfio-user:SOCKET (default: GBA_DEVICE, or else /dev/gba0)");
}

void Command::flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag(name, value, help);
}

void Command::text(const std::string& name, std::string& value, const std::string& help, const std::string& type) {
  auto* const option = app_->add_option(name, value, help);
  if (!type.empty()) {
    option->type_name(type);
  }
}

void Command::optional_text(const std::string& name, std::string& value, bool& given, const std::string& help,
                            const std::string& type) {
  const auto* const option = app_->add_option(name, value, help)->type_name(type)->expected(0, 1);
  app_->parse_complete_callback([&given, option] { given = option->count() > 0; });
}

void Command::number(const std::string& name, double& value, double least, double most, const std::string& help) {
  app_->add_option(name, value, help)->check(CLI::Range(least, most))->capture_default_str();
}

void Command::number(const std::string& name, std::uint64_t& value, std::uint64_t least, std::uint64_t most,
                     const std::string& help) {
  auto* const option = app_->add_option(name, value, help)->check(CLI::Range(least, most));
  if (value >= least) {
    option->capture_default_str();
  }
}

void Command::number(const std::string& name, std::uint64_t& value, const std::string& help) {
  app_->add_option(name, value, help);
}

void Command::list(const std::string& name, std::vector<std::uint32_t>& values, const std::string& help,
                   const std::string& type) {
  app_->add_option(name, values, help)->take_all()->allow_extra_args(false)->type_name(type);
}

void Command::list(const std::string& name, std::vector<std::string>& values, const std::string& help,
                   const std::string& type) {
  app_->add_option(name, values, help)->take_all()->allow_extra_args(false)->type_name(type);
}

void Command::exclude_each_other(const std::vector<std::string>& names) {
  for (std::size_t one = 0; one < names.size(); ++one) {
    for (std::size_t other = one + 1; other < names.size(); ++other) {
      app_->get_option(names[one])->excludes(app_->get_option(names[other]));
    }
  }
}

}  // namespace tool

namespace {

std::string exit_codes() {
  std::string text = "Exit codes:";
  for (const auto& entry : tool::kExitCodes) {
    text += fmt::format("\n  {}  {}", static_cast<int>(entry.code), entry.text);
  }
  return text;
}

/// gba help [COMMAND]: what --help prints. After the other commands, which are the topics.
void declare_help(CLI::App& app, tool::Invocation& invocation, std::string& topic) {
  std::vector<std::string> topics;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    topics.push_back(command->get_name());
  }
  CLI::App* const help = app.add_subcommand("help", "the options of a command");
  help->add_option("COMMAND", topic, "one of these commands (default: prints their list)")
      ->check(CLI::IsMember(topics));
  help->callback([&app, &invocation, &topic] {
    invocation.run = [&app, &topic] {
      // App::help() would print the help of the command that was parsed, which is this one.
      const std::string text = topic.empty()
                                   ? app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal)
                                   : app.get_subcommand(topic)->help(app.get_name());
      std::fputs(text.c_str(), stdout);
      return static_cast<int>(tool::kDone);
    };
  });
}

int run(int argc, char** argv) {
  CLI::App app("Looks at Global Barrier Accelerators, tests, measures and resets them.", "gba");
  app.formatter(std::make_shared<base::OptionHelp>());
  app.failure_message(base::explain_mistake);
  tool::Invocation invocation;
  std::string topic;
  app.require_subcommand(1);
  app.add_flag("--json", invocation.json, "print JSON; also after the command");
  app.set_version_flag("--version", std::string("gba ") + gba_version());
  tool::declare_list(app, invocation);
  tool::declare_info(app, invocation);
  tool::declare_check(app, invocation);
  tool::declare_groups(app, invocation);
  tool::declare_monitor(app, invocation);
  tool::declare_regs(app, invocation);
  tool::declare_selftest(app, invocation);
  tool::declare_bench(app, invocation);
  tool::declare_report(app, invocation);
  tool::declare_limit(app, invocation);
  tool::declare_reset(app, invocation);
  declare_help(app, invocation, topic);
  app.footer(exit_codes());
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? tool::kDone : tool::kUsage;
  }
  const int code = invocation.run();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return code;
  }
  std::fputs("gba: cannot write to standard output\n", stderr);
  return tool::kOther;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& error) {
  std::fprintf(stderr, "gba: error: %s\n", error.what());
  return tool::kOther;
}
