// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_exchange/options.hpp"

#include <CLI/CLI.hpp>
#include <cctype>
#include <memory>
#include <sstream>
#include <utility>

#include "base/option_help.hpp"
#include "gba/version.h"

namespace kv_exchange {
namespace {

constexpr std::size_t kMostRoom = std::size_t{1} << 40;
constexpr std::size_t kLeastHeld = std::size_t{1} << 20;
constexpr std::size_t kMostHeld = std::size_t{1} << 44;
constexpr std::size_t kMostBlock = std::size_t{64} << 20;

CLI::App& add_command(CLI::App& app, const char* name, const char* text, Options& options, Command command) {
  CLI::App& added = *app.add_subcommand(name, text);
  added.callback([&options, command] { options.command = command; });
  return added;
}

void add_directory(CLI::App& command, Options& options) {
  command.add_option("--directory", options.directory, "the folder in which members meet, as SHMEM_EXCHANGE_DIR")
      ->type_name("FOLDER");
}

/// "NAME=SIZE". Returns what is wrong, or "".
std::string add_tenant(Options& options, const std::string& text) {
  const auto equal = text.find('=');
  std::string size = equal == std::string::npos ? "" : text.substr(equal + 1);
  std::uint64_t bytes = 0;
  if (size.empty() || !std::isdigit(static_cast<unsigned char>(size.front())) ||
      !CLI::AsSizeValue(false)(size).empty() || !CLI::detail::lexical_cast(size, bytes)) {
    return "it is to be NAME=SIZE";
  }
  options.tenants.emplace_back(text.substr(0, equal), bytes);
  return "";
}

void add_limit(CLI::App& command, Options& options, const char* text) {
  command.add_option("--limit", options.limit, text)
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
}

void add_holder_commands(CLI::App& app, Options& options);

void add_exchange(CLI::App& command, Options& options, bool required = true) {
  add_directory(command, options);
  command.add_option("EXCHANGE", options.exchange, "the name of the exchange")->required(required);
  command
      .add_option("--listen", options.listen, "the ip:port of this node at which members of other nodes reach this one")
      ->type_name("ADDRESS");
  command.add_option("--member", options.members, "the ip:port of a member on another node; any number of times")
      ->type_name("ADDRESS")
      ->allow_extra_args(false);
}

void add_commands(CLI::App& app, Options& options) {
  CLI::App& serve = add_command(app, "serve", "publish files, and hold what others put", options, Command::kServe);
  add_exchange(serve, options);
  serve.add_option("FILE", options.files, "files to publish, each under its name as given");
  serve.add_option("--room", options.room, "bytes of memory for blocks")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::size_t{4096}, kMostRoom))
      ->capture_default_str();
  serve.add_option("--lease", options.lease_ms, "milliseconds that a reader may keep a block leased")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  serve.add_option("--metrics", options.metrics, "PORT of 127.0.0.1, or ADDRESS:PORT, for OpenMetrics over HTTP")
      ->type_name("ADDRESS");

  add_holder_commands(app, options);

  CLI::App& put =
      add_command(app, "put", "hand a block over to the holder, or to a serving member", options, Command::kPut);
  CLI::App& get = add_command(app, "get", "pull a block", options, Command::kGet);
  for (CLI::App* const command : {&put, &get}) {
    add_exchange(*command, options);
    command->add_option("KEY", options.key, "the key of the block")->required();
    command->add_option("FILE", options.file, "- is standard input or output")->capture_default_str();
  }
  get.add_option("--most", options.most, "the most bytes of a block to pull, whatever its owner says")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::size_t{1}, kMostRoom))
      ->capture_default_str();
  put.add_option("--tenant", options.tenant, "as one of the holder's engines of this name")->type_name("NAME");
  add_limit(put, options, "seconds to wait for the holder, or for a serving member");

  add_exchange(add_command(app, "list", "list the blocks of all members", options, Command::kList), options);
  add_exchange(add_command(app, "stats", "describe the members", options, Command::kStats), options);

  CLI::App& top = add_command(app, "top", "show what the members do, again and again", options, Command::kTop);
  add_exchange(top, options);
  top.add_option("--interval", options.interval, "seconds between two looks")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.05, 3600.0))
      ->capture_default_str();
  top.add_option("--rounds", options.rounds, "end after this number of looks; 0: go on")->capture_default_str();

  add_directory(add_command(app, "exchanges", "list the exchanges of this node", options, Command::kExchanges),
                options);
  add_exchange(add_command(app, "ping", "tell whether members answer, and how fast", options, Command::kPing), options);

  CLI::App& bench = add_command(
      app, "bench", "compare pulls from another process with memcpy, or with --member pull from another node", options,
      Command::kBench);
  add_exchange(bench, options, false);
  bench.add_option("--sizes", options.sizes, "bytes of a block")
      ->delimiter(',')
      ->check(CLI::Range(std::size_t{1}, kMostBlock))
      ->capture_default_str();
  bench.add_option("--repeats", options.repeats, "measurements of each size, of which the median is printed")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  bench.add_flag("--json", options.json, "print JSON");
}

void add_holder_commands(CLI::App& app, Options& options) {
  CLI::App& hold =
      add_command(app, "hold", "own memory for the blocks of all engines of this node", options, Command::kHold);
  add_exchange(hold, options);
  hold.add_option("--bytes", options.bytes, "memory for blocks")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(kLeastHeld, kMostHeld))
      ->required();
  hold.add_option(
          "--tenant-bytes",
          [&options](const CLI::results_t& given) {
            for (const std::string& text : given) {
              if (std::string error = add_tenant(options, text); !error.empty()) {
                throw CLI::ValidationError("--tenant-bytes", text + ": " + error);
              }
            }
            return true;
          },
          "the most that blocks of a tenant take; any number of times")
      ->type_name("NAME=SIZE")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  hold.add_option("--blocks", options.blocks, "the most blocks; 0: one for each 16 KiB, at least 65536")
      ->check(CLI::Range(std::uint32_t{0}, std::uint32_t{1} << 24))
      ->capture_default_str();
  hold.add_option("--lease", options.lease_ms, "milliseconds that a reader may keep a block leased")
      ->check(CLI::Range(1, 60'000))
      ->capture_default_str();
  hold.add_option("--metrics", options.metrics, "PORT of 127.0.0.1, or ADDRESS:PORT, for OpenMetrics over HTTP")
      ->type_name("ADDRESS");
  hold.add_option("--events", options.events, "PORT of 127.0.0.1, or ADDRESS:PORT, for events as lines over TCP")
      ->type_name("ADDRESS");

  CLI::App& pin = add_command(app, "pin", "keep a block of the holder from being evicted", options, Command::kPin);
  CLI::App& unpin = add_command(app, "unpin", "end that", options, Command::kUnpin);
  for (CLI::App* const command : {&pin, &unpin}) {
    add_exchange(*command, options);
    command->add_option("KEY", options.key, "the key of the block")->required();
    add_limit(*command, options, "seconds to wait for the holder");
  }
  add_exchange(add_command(app, "events", "print what the holder has, stores and removes", options, Command::kEvents),
               options);
}

}  // namespace

CommandLine read_command_line(int argc, const char* const* argv) {
  CLI::App app{"Shares blocks by key between processes that start and end independently.", "kv_exchange"};
  app.set_version_flag("--version", std::string("kv_exchange ") + GBA_LIBRARY_VERSION);
  app.formatter(std::make_shared<base::OptionHelp>());
  app.failure_message(base::explain_mistake);
  app.require_subcommand(1);
  CommandLine line;
  add_commands(app, line.options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const bool is_failure = app.exit(error, text, text) != 0;
    return {.go_on = false, .options = {}, .exit_code = is_failure ? 2 : 0, .text = text.str()};
  }
  if (line.options.command == Command::kBench && line.options.exchange.empty()) {
    line.options.exchange = "bench";
  }
  line.go_on = true;
  return line;
}

}  // namespace kv_exchange
