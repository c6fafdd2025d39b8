// SPDX-License-Identifier: Apache-2.0
// The program kv_exchange.
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "base/fd.hpp"
#include "base/unix_address.hpp"
#include "shmemx_exchange.h"
#include "tests/support/json.hpp"
#include "tests/support/manual.hpp"
#include "tests/support/process.hpp"

namespace {

using test_support::Outcome;
using test_support::Process;
using test_support::Seconds;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kLimit{300};  // only against a program that never ends

class KvExchange : public testing::Test {
 protected:
  static std::vector<std::string> command(std::vector<std::string> words) {
    words.insert(words.begin(), test_support::program("kv_exchange"));
    return words;
  }
  static Outcome run(const std::vector<std::string>& words, const std::vector<std::string>& environment = {}) {
    return test_support::run(command(words), environment, kLimit);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.file(name)) << text;
    return dir_.file(name);
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::unique_ptr<Process> serve(std::vector<std::string> files = {}) {
    files.insert(files.begin(), {"serve", name_, "--room", "1MiB"});
    auto server = std::make_unique<Process>(command(files));
    EXPECT_TRUE(server->wait_for_output("kv_exchange: serving", kLimit)) << server->output();
    return server;
  }

  test_support::TempDir dir_;
  const std::string name_ = "program-" + std::to_string(::getpid());
};

TEST_F(KvExchange, ServesFiles) {
  const std::string file = write("a", std::string(100'000, 'a') + "end");
  const auto server = serve({file});
  EXPECT_THAT(server->output(), HasSubstr("serving 1 block on seat 0 of " + name_));
  EXPECT_EQ(run({"get", name_, file, dir_.file("copy")}).exit.code, 0);
  EXPECT_EQ(read(dir_.file("copy")), read(file));
  server->signal(SIGTERM);
  EXPECT_EQ(server->wait(kLimit)->code, 0);
  const auto gone = run({"get", name_, file});
  EXPECT_EQ(gone.exit.code, 1);
  EXPECT_THAT(gone.output, HasSubstr("kv_exchange: exchange " + name_ + " has no members here (user "));
}

TEST_F(KvExchange, PullsNoMoreThanItShall) {
  const std::string file = write("a", std::string(5000, 'a'));
  const auto server = serve({file});
  const auto refused = run({"get", name_, file, dir_.file("copy"), "--most", "4KiB"});
  EXPECT_EQ(refused.exit.code, 1);
  EXPECT_THAT(refused.output, HasSubstr(" has 5000 bytes, more than the 4096 that get pulls; to pull it: --most 5000"));
  EXPECT_FALSE(std::ifstream(dir_.file("copy")).good());
  EXPECT_EQ(run({"get", name_, file, dir_.file("copy"), "--most", "5000"}).exit.code, 0);
  EXPECT_EQ(read(dir_.file("copy")), read(file));
  EXPECT_EQ(run({"get", name_, file, "--most", "0"}).exit.code, 2);
}

TEST_F(KvExchange, ClaimsOfAnOwnerTakeNoMemory) {
  // A block of 2 GiB that takes no memory, and that the default does not pull.
  constexpr std::size_t kClaimed = std::size_t{2} << 30;
  shmemx_exchange_t* owner = nullptr;
  ASSERT_EQ(shmemx_exchange_open(name_.c_str(), nullptr, &owner), 0);
  shmemx_memory_t memory{.address = nullptr, .bytes = kClaimed, .fd = -1, .offset = 0};
  std::uint32_t region = 0;
  ASSERT_EQ(shmemx_exchange_register(owner, &memory, &region), 0);
  shmemx_exchange_entry_t entry{
      .key = {"k", 1}, .region = region, .status = 0, .offset = 0, .bytes = kClaimed, .layout = 1};
  ASSERT_EQ(shmemx_exchange_publish(owner, &entry, 1), 1);
  const auto refused = run({"get", name_, "k", dir_.file("copy")});
  EXPECT_EQ(refused.exit.code, 1);
  EXPECT_THAT(refused.output, HasSubstr(" has 2147483648 bytes, more than the 1073741824 that get pulls"));
  shmemx_exchange_close(owner);
}

TEST_F(KvExchange, PutsBlocksThatOutliveTheirProcess) {
  const auto server = serve();
  const auto first = run({"put", name_, "key 1", write("a", "first"), "--limit", "60"});
  EXPECT_EQ(first.exit.code, 0) << first.output;
  EXPECT_EQ(run({"get", name_, "key 1"}).output, "first");
  EXPECT_EQ(run({"put", name_, "key 1", write("b", "second"), "--limit", "60"}).exit.code, 0)
      << "it replaces the first";
  EXPECT_EQ(run({"get", name_, "key 1"}).output, "second");
  const auto listed = run({"list", name_}).output;
  EXPECT_THAT(listed, HasSubstr(" key\\x201\n"));
  EXPECT_THAT(listed, Not(HasSubstr("put:")));
  EXPECT_THAT(run({"stats", name_}).output, HasSubstr(" " + std::to_string(server->pid()) + "          1 "));
}

TEST_F(KvExchange, PutsWhatComesFromStandardInput) {
  const auto server = serve();
  const std::string program = test_support::program("kv_exchange");
  const std::string text(200'000, 'x');  // more than a pipe holds
  const auto put = [&](const std::string& command) {
    return test_support::run({"/bin/sh", "-c", command + " | " + program + " put " + name_ + " key --limit 60 -"}, {},
                             kLimit);
  };
  const auto done = put("cat " + write("a", text + "end"));
  EXPECT_EQ(done.exit.code, 0) << done.output;
  EXPECT_EQ(run({"get", name_, "key", dir_.file("copy")}).exit.code, 0);
  EXPECT_EQ(read(dir_.file("copy")), text + "end");
  EXPECT_EQ(test_support::run({"/bin/sh", "-c", "echo short | " + program + " put " + name_ + " short --limit 60"}, {},
                              kLimit)
                .exit.code,
            0)
      << "without a file";
  EXPECT_EQ(run({"get", name_, "short"}).output, "short\n");
  const auto empty = put(":");
  EXPECT_EQ(empty.exit.code, 1);
  EXPECT_THAT(empty.output, HasSubstr("- is empty; a block has at least 1 byte"));
}

TEST_F(KvExchange, TakesNoBlockLargerThanItsRoom) {
  const auto server = serve();
  constexpr std::size_t kRoom = std::size_t{1} << 20;
  shmemx_exchange_t* owner = nullptr;
  ASSERT_EQ(shmemx_exchange_open(name_.c_str(), nullptr, &owner), 0);
  shmemx_memory_t memory{.address = nullptr, .bytes = std::size_t{1} << 40, .fd = -1, .offset = 0};
  std::uint32_t region = 0;
  ASSERT_EQ(shmemx_exchange_register(owner, &memory, &region), 0);
  shmemx_exchange_entry_t entry{
      .key = {"put:large", 9}, .region = region, .status = 0, .offset = 0, .bytes = kRoom + 1, .layout = 1};
  ASSERT_EQ(shmemx_exchange_publish(owner, &entry, 1), 1);
  EXPECT_TRUE(server->wait_for_output("there is no room for the 1048577 bytes of large", kLimit)) << server->output();
  entry = {.key = {"put:huge", 8}, .region = region, .status = 0, .offset = 0, .bytes = memory.bytes, .layout = 1};
  ASSERT_EQ(shmemx_exchange_publish(owner, &entry, 1), 1);
  EXPECT_TRUE(server->wait_for_output("there is no room for the 1099511627776 bytes of huge", kLimit))
      << server->output();
  EXPECT_EQ(run({"put", name_, "small", write("a", "goes on"), "--limit", "60"}).exit.code, 0);
  EXPECT_EQ(run({"get", name_, "small"}).output, "goes on");
  shmemx_exchange_close(owner);
}

TEST_F(KvExchange, ReachesMembersOnOtherNodes) {
  if (!KV_WITH_UCX) {
    GTEST_SKIP() << "built without UCX";
  }
  const std::string file = write("a", std::string(300'000, 'a') + "end");
  const auto on_node = [](const std::string& node, const std::string& secret = "a secret") {
    return std::vector<std::string>{"SHMEM_HOST_ID=" + node, "SHMEM_UID_SECRET=" + secret};
  };
  Process server(command({"serve", name_, file, "--listen", "127.0.0.1:0"}), on_node("1"));
  ASSERT_TRUE(server.wait_for_output("\n", kLimit)) << server.output();
  const std::string output = server.output();
  const auto at = output.find(", at ") + 5;
  const std::string address = output.substr(at, output.find('\n') - at);
  EXPECT_THAT(address, testing::StartsWith("127.0.0.1:"));
  const auto here = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--member", address, "--listen", "127.0.0.1:0"});
    return run(words, on_node("2"));
  };
  EXPECT_EQ(here({"get", name_, file, dir_.file("copy")}).exit.code, 0);
  EXPECT_EQ(read(dir_.file("copy")), read(file));
  const auto put = here({"put", name_, "key", write("b", "from another node"), "--limit", "60"});
  EXPECT_EQ(put.exit.code, 0) << put.output;
  EXPECT_EQ(here({"get", name_, "key"}).output, "from another node");
  EXPECT_THAT(here({"list", name_}).output, HasSubstr("  64           17 "));
  EXPECT_THAT(here({"stats", name_}).output, HasSubstr(" " + std::to_string(server.pid()) + " "));
  const auto top = here({"top", name_, "--interval", "0.05", "--rounds", "1"});
  EXPECT_EQ(top.exit.code, 0) << top.output;
  EXPECT_THAT(top.output, HasSubstr(name_ + ": 1 member, 1 of them on other nodes, rates of "));
  const std::string pid = std::to_string(server.pid());
  EXPECT_THAT(top.output,
              HasSubstr("\n  64 " + std::string(8 - pid.size(), ' ') + pid +
                        "         2       0.3          -         -         -         -        -        -        -\n"));
  const auto ping = here({"ping", name_});
  EXPECT_EQ(ping.exit.code, 0) << ping.output;
  EXPECT_THAT(ping.output, HasSubstr(name_ + ": 0 members on this node and 1 on others have answered; joined in "));
  EXPECT_THAT(ping.output, HasSubstr("  seat 64, pid " + pid + ", 2 blocks\n"));
  const auto bench = here({"bench", name_, "--sizes", "100,5000", "--repeats", "2", "--json"});
  ASSERT_EQ(bench.exit.code, 0) << bench.output;
  const auto rows = test_support::Json::parse(bench.output);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1]["block_bytes"], 5000);
  EXPECT_EQ(rows[1]["blocks"], 64);
  EXPECT_GT(rows[1]["pull_bytes_per_second"], 0);
  EXPECT_GT(rows[1]["one_pull_ns"], 0);
  const auto wrong = run({"get", name_, "key", "--member", address, "--listen", "127.0.0.1:0"}, on_node("2", "?"));
  EXPECT_EQ(wrong.exit.code, 1);
  EXPECT_THAT(wrong.output, HasSubstr("does not know the secret of this exchange"));
  EXPECT_THAT(run({"get", name_, "key", "--member", address}, {"SHMEM_HOST_ID=2"}).output,
              HasSubstr("set SHMEM_UID_SECRET"));
}

TEST_F(KvExchange, ShowsTheExchangesOfTheNodeAndWhetherMembersAnswer) {
  EXPECT_THAT(run({"exchanges"}).output, Not(HasSubstr(name_)));
  const auto first = serve();
  const auto second = serve();
  const auto third = serve();  // members have connections with each other, which are not members
  const std::string user = std::to_string(::geteuid());
  const std::string columns = "      3 " + std::string(10 - user.size(), ' ') + user;
  EXPECT_THAT(run({"exchanges"}).output, HasSubstr(columns + " -                " + name_ + "\n"));
  EXPECT_THAT(run({"exchanges"}, {"SHMEM_HOST_ID=other"}).output, HasSubstr(name_ + "\n"));
  const auto ping = run({"ping", name_});
  EXPECT_EQ(ping.exit.code, 0) << ping.output;
  EXPECT_THAT(ping.output, HasSubstr(name_ + ": 3 members on this node and 0 on others have answered; joined in "));
}

TEST_F(KvExchange, TellsWhatIsWrong) {
  const auto nobody = run({"put", name_, "key", write("a", "a"), "--limit", "0"});
  EXPECT_EQ(nobody.exit.code, 1);
  EXPECT_THAT(nobody.output, HasSubstr("start one: kv_exchange serve " + name_));
  EXPECT_THAT(run({"put", name_, "key", write("empty", "")}).output, HasSubstr("a block has at least 1 byte"));
  EXPECT_THAT(run({"put", name_, std::string(125, 'k'), write("a", "a")}).output, HasSubstr("keys have 1 to 124"));
  EXPECT_THAT(run({"put", name_, "key", dir_.file("none")}).output, HasSubstr("cannot read"));
  EXPECT_THAT(run({"serve", name_, "--room", "4096", write("large", std::string(5000, 'x'))}).output,
              HasSubstr("there is no room for the 5000 bytes"));
  EXPECT_THAT(run({"stats", "a/b"}).output, HasSubstr("1 to 48 letters, digits"));
  EXPECT_EQ(run({"get", name_}).exit.code, 2);
  EXPECT_EQ(run({}).exit.code, 2);
}

TEST_F(KvExchange, TellsThatAnExchangeHasNoMembersHere) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"get", name_, "key"}, {"list", name_}, {"stats", name_}, {"ping", name_}}) {
    const auto empty = run(words, {"SHMEM_HOST_ID=elsewhere"});
    EXPECT_EQ(empty.exit.code, 1) << words[0];
    EXPECT_THAT(empty.output, testing::MatchesRegex("kv_exchange: exchange " + name_ +
                                                    " has no members here \\(user [^ ,]+, network namespace [0-9]+, "
                                                    "SHMEM_HOST_ID=elsewhere\\); .*kv_exchange serve " +
                                                    name_ + "\n"));
  }
  EXPECT_THAT(run({"put", name_, "key", write("a", "a"), "--limit", "0.1"}).output,
              HasSubstr("kv_exchange: waiting for up to 0.1 s: exchange " + name_ + " has no members here"));
  const auto top = run({"top", name_, "--interval", "0.05", "--rounds", "2"});
  const auto told = top.output.find("exchange " + name_ + " has no members here");
  ASSERT_NE(told, std::string::npos) << top.output;
  EXPECT_EQ(top.output.find("has no members here", told + name_.size() + 20), std::string::npos) << "told once";
  const auto none = run({"exchanges"}, {"SHMEM_EXCHANGE_DIR=" + dir_.file("")});
  EXPECT_EQ(none.exit.code, 0) << none.output;
  EXPECT_THAT(none.output, HasSubstr("kv_exchange: no exchange has members in this folder\n"));
  if (!KV_WITH_UCX) {
    return;
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"get", name_, "key"}, {"ping", name_}}) {
    auto wrong = words;
    wrong.insert(wrong.end(), {"--member", "127.0.0.1:9", "--listen", "127.0.0.1:0"});
    EXPECT_THAT(run(wrong, {"SHMEM_UID_SECRET=s"}).output, HasSubstr(". None answers at 127.0.0.1:9. ")) << words[0];
  }
}

TEST_F(KvExchange, ServesMetrics) {
  const auto server = serve({"--metrics", "0"});
  if (!server->running() || server->output().find("libmicrohttpd") != std::string::npos) {
    GTEST_SKIP() << server->output();
  }
  EXPECT_TRUE(server->wait_for_output("kv_exchange: metrics: /metrics on port ", kLimit)) << server->output();
  EXPECT_THAT(run({"serve", name_, "--metrics", "127.0.0.1"}).output, HasSubstr("metrics at \"127.0.0.1\""));
}

TEST_F(KvExchange, ShowsWhatMembersDo) {
  const auto server = serve({write("a", "twelve bytes")});
  const auto shown = run({"top", name_, "--interval", "0.05", "--rounds", "2"});
  EXPECT_EQ(shown.exit.code, 0) << shown.output;
  EXPECT_THAT(shown.output, Not(HasSubstr("\033"))) << "not a terminal";
  const std::string pid = std::to_string(server->pid());
  const std::string row = "\n   0 " + std::string(8 - pid.size(), ' ') + pid + "         1 ";
  const auto first = shown.output.find(row);
  ASSERT_NE(first, std::string::npos) << shown.output;
  EXPECT_NE(shown.output.find(row, first + 1), std::string::npos) << "the second round";
  EXPECT_EQ(run({"top", name_, "--interval", "0"}).exit.code, 2);
}

/// The output of `kv_exchange top` on a terminal, which SIGTERM ends.
std::string top_on_terminal(const std::string& exchange) {
  const std::string program = test_support::program("kv_exchange");
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    ::unsetenv("NO_COLOR");
    ::execl(program.c_str(), program.c_str(), "top", exchange.c_str(), "--interval", "0.05", nullptr);
    ::_exit(127);
  }
  const base::UniqueFd owner(terminal);
  std::string shown;
  std::array<char, 4096> part{};
  bool told = false;
  pollfd readable{.fd = terminal, .events = POLLIN, .revents = 0};
  ssize_t got = 0;
  while (::poll(&readable, 1, 300'000) == 1 && (got = ::read(terminal, part.data(), part.size())) > 0) {
    shown.append(part.data(), static_cast<std::size_t>(got));
    if (!told && shown.find(" rates of ") != std::string::npos) {
      told = true;
      ::kill(child, SIGTERM);
    }
  }
  int status = 0;
  if (!told) {
    ::kill(child, SIGKILL);
  }
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? shown : "";
}

TEST_F(KvExchange, UsesColoursAndTheScreenOnATerminalOnly) {
  const auto server = serve();
  const std::string shown = top_on_terminal(name_);
  EXPECT_TRUE(shown.starts_with("\033[?1049h\033[?25l")) << shown;
  EXPECT_THAT(shown, HasSubstr("\033[1mseat"));
  EXPECT_TRUE(shown.ends_with("\033[?25h\033[?1049l")) << shown;
}

TEST_F(KvExchange, ComparesPullsWithMemcpy) {
  const auto bench = run({"bench", "--sizes", "1024,10000", "--repeats", "1", "--json"});
  ASSERT_EQ(bench.exit.code, 0) << bench.output;
  const auto rows = test_support::Json::parse(bench.output);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1]["block_bytes"], 10000);
  EXPECT_GT(rows[1]["ratio"].get<double>(), 0);
  EXPECT_THAT(run({"bench", "--sizes", "1024", "--repeats", "1"}).output, HasSubstr("memcpy GB/s"));
}

TEST_F(KvExchange, HasAPageAndACompletionWithAllOptions) {
  std::set<std::string> options{"--help", "--version"};
  const std::string script = KV_EXCHANGE "/kv_exchange.bash";
  for (const std::string name : {"serve", "hold", "pin", "unpin", "events", "put", "get", "list", "stats", "top",
                                 "exchanges", "ping", "bench"}) {
    const auto own = test_support::options_in_help(run({name, "--help"}).output);
    options.insert(own.begin(), own.end());
    EXPECT_EQ(test_support::completions(script, "_kv_exchange", test_support::program("kv_exchange"), {name, "--"}),
              own);
  }
  EXPECT_EQ(test_support::options_in_manual(test_support::manual(KV_EXCHANGE "/kv_exchange.1")), options);
  EXPECT_EQ(test_support::completions(script, "_kv_exchange", test_support::program("kv_exchange"), {"s"}),
            (std::set<std::string>{"serve", "stats"}));
}

TEST_F(KvExchange, HoldsBlocks) {
  Process holder(command({"hold", name_, "--bytes", "1MiB", "--tenant-bytes", "a=64KiB", "--metrics", "0"}));
  ASSERT_TRUE(holder.wait_for_output("metrics: /metrics on port ", kLimit)) << holder.output();
  EXPECT_THAT(holder.output(), HasSubstr("kv_exchange: holding 1 MiB for exchange " + name_ + " on seat 0\n"));
  Process events(command({"events", name_}));
  ASSERT_TRUE(events.wait_for_output("live 0 ", kLimit)) << events.output();
  const std::string file = write("a", "hello\n");
  EXPECT_EQ(run({"put", name_, "greeting", file, "--limit", "60"}).exit.code, 0);
  EXPECT_EQ(run({"put", name_, "greeting", file, "--limit", "60"}).exit.code, 0) << "it is there already";
  EXPECT_EQ(run({"get", name_, "greeting"}).output, "hello\n");
  EXPECT_TRUE(events.wait_for_output(" 6 greeting\n", kLimit)) << events.output();
  EXPECT_THAT(events.output(), HasSubstr("\nstored 1 "));
  EXPECT_EQ(run({"pin", name_, "greeting", "--limit", "60"}).exit.code, 0);
  EXPECT_EQ(run({"unpin", name_, "greeting", "--limit", "60"}).exit.code, 0);
  const auto missing = run({"pin", name_, "none"});
  EXPECT_EQ(missing.exit.code, 1);
  EXPECT_THAT(missing.output, HasSubstr("the holder of exchange " + name_ + " has no block none"));
  const std::string large = write("b", std::string(65'537, 'b'));
  const auto too_large = run({"put", name_, "large", large, "--tenant", "a", "--limit", "60"});
  EXPECT_EQ(too_large.exit.code, 1);
  EXPECT_THAT(too_large.output, HasSubstr("has not taken large"));
  const auto second = run({"hold", name_, "--bytes", "1MiB"});
  EXPECT_EQ(second.exit.code, 1);
  EXPECT_THAT(second.output, HasSubstr("another process holds it already"));
  events.signal(SIGTERM);
  EXPECT_EQ(events.wait(kLimit)->code, 0);
  holder.signal(SIGTERM);
  EXPECT_EQ(holder.wait(kLimit)->code, 0);
}

TEST_F(KvExchange, HoldsBlocksInAFolder) {
  const std::string folder = dir_.file("exchanges");
  Process holder(command({"hold", name_, "--bytes", "1MiB", "--directory", folder}));
  ASSERT_TRUE(holder.wait_for_output("kv_exchange: holding", kLimit)) << holder.output();
  const auto all = run({"exchanges", "--directory", folder});
  EXPECT_THAT(all.output, HasSubstr("      1 "));
  EXPECT_THAT(all.output, Not(HasSubstr("      2 "))) << "a holder is one member";
  const std::string file = write("a", "hello\n");
  EXPECT_EQ(run({"put", name_, "greeting", file, "--directory", folder, "--limit", "60"}).exit.code, 0);
  EXPECT_EQ(run({"get", name_, "greeting", "--directory", folder}).output, "hello\n");
  EXPECT_EQ(run({"get", name_, "greeting"}).exit.code, 1);
}

TEST_F(KvExchange, WaitsForMembersThatDoNotAnswerAtOnce) {
  const std::string file = write("a", "a");
  const auto server = serve({file});
  server->stop();
  Process stats(command({"stats", name_}));
  std::this_thread::sleep_for(std::chrono::milliseconds(1300));  // longer than open waits without an option
  server->resume();
  EXPECT_TRUE(stats.wait(kLimit)->clean()) << stats.output();
}

TEST_F(KvExchange, PinsWaitForTheHolderUpToTheirLimit) {
  const std::string folder = dir_.file("exchanges");
  shmemx_exchange_options_t options{};
  options.directory = folder.c_str();
  shmemx_exchange_t* owner = nullptr;
  ASSERT_EQ(shmemx_exchange_open(name_.c_str(), &options, &owner), 0);
  shmemx_memory_t memory{.address = nullptr, .bytes = 4096, .fd = -1, .offset = 0};
  std::uint32_t region = 0;
  ASSERT_EQ(shmemx_exchange_register(owner, &memory, &region), 0);
  shmemx_exchange_entry_t entry{.key = {"k", 1}, .region = region, .status = 0, .offset = 0, .bytes = 1, .layout = 1};
  ASSERT_EQ(shmemx_exchange_publish(owner, &entry, 1), 1);
  // A holder that answers nothing.
  const base::UniqueFd holder(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const base::UnixAddress address(folder + "/" + name_ + ".holder");
  ASSERT_EQ(::bind(holder.get(), address.get(), address.size), 0);
  ASSERT_EQ(::listen(holder.get(), 8), 0);
  const auto silent = run({"pin", name_, "k", "--directory", folder, "--limit", "0.2"});
  EXPECT_EQ(silent.exit.code, 1);
  EXPECT_THAT(silent.output, HasSubstr("the holder of exchange " + name_ + ": it has not answered for 200 ms"));
  shmemx_exchange_close(owner);
}

TEST_F(KvExchange, RefusesBadOptionsOfAHolder) {
  for (const auto& [options, text] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{}, "--bytes"},
           {{"--bytes", "4096"}, "--bytes"},
           {{"--bytes", "1MiB", "--tenant-bytes", "a"}, "NAME=SIZE"},
           {{"--bytes", "1MiB", "--tenant-bytes", "a=b"}, "a=b"}}) {
    std::vector<std::string> words{"hold", name_};
    words.insert(words.end(), options.begin(), options.end());
    const auto refused = run(words);
    EXPECT_EQ(refused.exit.code, 2) << text;
    EXPECT_THAT(refused.output, HasSubstr(text));
  }
  const auto large = run({"hold", name_, "--bytes", "4TiB"});
  EXPECT_EQ(large.exit.code, 1);
  EXPECT_THAT(large.output, HasSubstr("cannot hold exchange " + name_ + ": 4096 GiB for blocks is more than the"));
}

}  // namespace
