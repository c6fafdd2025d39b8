// SPDX-License-Identifier: Apache-2.0
// oshrun at a terminal: the PEs are in the background there.
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/pe.hpp"

namespace {

using namespace test_support;
using namespace testing;
using test_support::TempDir;  // not the function of GoogleTest

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLimit{120};

/// A program in the foreground of its own terminal. It ends with the object.
class Terminal {
 public:
  explicit Terminal(std::vector<std::string> arguments) {
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) {
      pointers.push_back(argument.data());
    }
    pointers.push_back(nullptr);
    pid_ = ::forkpty(&master_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::execv(pointers[0], pointers.data());
      ::_exit(127);
    }
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(master_);
    ::kill(pid_, SIGKILL);
    if (!waited_) {
      ::waitpid(pid_, nullptr, 0);
    }
  }

  void type(const std::string& text) const {
    EXPECT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Everything shown, until it contains `text` or the program ends.
  std::string show_until(const std::string& text) {
    const auto deadline = Clock::now() + kLimit;
    while (shown_.find(text) == std::string::npos && Clock::now() < deadline) {
      pollfd poll{master_, POLLIN, 0};
      if (::poll(&poll, 1, 100) <= 0) {
        continue;
      }
      char buffer[512];
      const ssize_t got = ::read(master_, buffer, sizeof(buffer));
      if (got <= 0) {
        break;
      }
      shown_.append(buffer, static_cast<std::size_t>(got));
    }
    return shown_;
  }
  /// Waits for the end of the program. Returns its status, or minus the signal.
  int exit_status() {
    show_until("a text that is never shown");
    int status = 0;
    for (const auto deadline = Clock::now() + kLimit; Clock::now() < deadline; ::usleep(10000)) {
      if (::waitpid(pid_, &status, WNOHANG) != pid_) {
        continue;
      }
      waited_ = true;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    ADD_FAILURE() << "does not end; shown: " << shown_;
    return -1;
  }

 private:
  pid_t pid_ = -1;
  int master_ = -1;
  bool waited_ = false;
  std::string shown_;
};

std::string oshrun() {
  return program("oshrun");
}

TEST(OshrunAtATerminal, GivesTypedInputToPeZero) {
  Terminal terminal({oshrun(), "-n", "2", "/bin/sh", "-c", "while read line; do echo \"heard $line\"; done; echo end"});
  terminal.type("one\n");
  EXPECT_THAT(terminal.show_until("heard one"), HasSubstr("heard one"));
  terminal.type("two\n");
  EXPECT_THAT(terminal.show_until("heard two"), HasSubstr("heard two"));
  terminal.type("\x04");  // Ctrl-D
  EXPECT_EQ(terminal.exit_status(), 0);
}

TEST(OshrunAtATerminal, AcceptsAPeThatReadsNothing) {
  const TempDir dir;
  Terminal terminal({oshrun(), "-n", "2", "/bin/sh", "-c",
                     "exec <&-; echo started; until [ -e " + dir.file("typed") + " ]; do sleep 0.05; done; sleep 0.5"});
  terminal.show_until("started");
  terminal.type("into the void\n");
  std::ofstream(dir.file("typed")).flush();
  EXPECT_EQ(terminal.exit_status(), 0);
}

TEST(OshrunAtATerminal, EndsTheJobAtCtrlC) {
  Terminal terminal({oshrun(), "-n", "2", "/bin/sh", "-c", "echo up; exec sleep 60"});
  terminal.show_until("up");
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_status(), 128 + SIGINT);
  EXPECT_THAT(terminal.show_until("signal 2"), HasSubstr("oshrun: ending the job: signal 2 (Interrupt)"));
}

TEST(OshrunAtATerminal, ShowsAPromptWithoutANewline) {
  Terminal terminal({oshrun(), "-n", "2", "/bin/sh", "-c",
                     "[ $OSHRUN_RANK = 1 ] || { printf 'name? '; read line; echo \"hello $line\"; }"});
  EXPECT_THAT(terminal.show_until("name? "), HasSubstr("name? "));
  terminal.type("you\n");
  EXPECT_THAT(terminal.show_until("hello you"), HasSubstr("hello you"));
  EXPECT_EQ(terminal.exit_status(), 0);
}

TEST(OshrunAtATerminal, SaysWhichPesAJobWaitsForAtItsStart) {
  const std::string pe = test_program("oshrun_pe");
  Terminal terminal(
      {oshrun(), "-n", "3", "/bin/sh", "-c", "[ $OSHRUN_RANK != 1 ] || exec sleep 60; exec " + pe + " barriers 1"});
  const auto shown = terminal.show_until("waiting for PE 1");
  EXPECT_THAT(shown, ContainsRegex("oshrun: 2 of 3 PEs have called shmem_init after [0-9]+ s; waiting for PE 1"));
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_status(), 128 + SIGINT);
}

TEST(OshrunAtATerminal, ShowsLinesThatProgramsDoNotFlush) {
  Terminal terminal({oshrun(), "-n", "2", test_program("oshrun_pe"), "print", "so far"});
  EXPECT_THAT(terminal.show_until("so far"), HasSubstr("so far"));
  terminal.type("\x03");
  EXPECT_EQ(terminal.exit_status(), 128 + SIGINT);
}

TEST(OshrunAtATerminal, TellsPesThatTheirErrorsAreShownOnIt) {
  const std::string print = "echo \"terminal=$OSHRUN_STDERR_TERMINAL.\"";
  Terminal terminal({oshrun(), "-n", "2", "/bin/sh", "-c", print});
  EXPECT_THAT(terminal.show_until("terminal="), HasSubstr("terminal=1."));
  Terminal piped({"/bin/sh", "-c", oshrun() + " -n 2 /bin/sh -c '" + print + "' 2>&1 | cat; echo"});
  EXPECT_THAT(piped.show_until("terminal="), HasSubstr("terminal=."));
}

TEST(OshrunAtATerminal, ShowsTheProgressOfKvShuffle) {
  const std::string kv_shuffle = program("kv_shuffle");
  Terminal terminal({oshrun(), "-n", "2", "--gba", "off", kv_shuffle, "--rounds", "1000", "--repeats", "1"});
  EXPECT_THAT(terminal.show_until("%  round "), HasSubstr("\r\033[K["));
}

TEST(OshrunAtATerminal, LeavesItToASinglePe) {
  const std::vector<std::string> look = {"/bin/sh", "-c", "[ -t 1 ] && echo at a terminal; echo looked"};
  const auto shown = [&](std::vector<std::string> command) {
    command.insert(command.end(), look.begin(), look.end());
    Terminal terminal(std::move(command));
    return terminal.show_until("looked");
  };
  EXPECT_THAT(shown({oshrun()}), HasSubstr("at a terminal"));
  EXPECT_THAT(shown({oshrun(), "-n", "2", "--direct-output"}), HasSubstr("at a terminal"));
  EXPECT_THAT(shown({oshrun(), "-n", "2"}), ::testing::Not(HasSubstr("at a terminal")));
}

TEST(OshrunAtATerminal, StopsAndContinuesWithItsPes) {
  const TempDir dir;
  const std::string end = dir.file("end");
  Terminal terminal({"/bin/bash", "--norc", "-i", "-m"});
  terminal.type("PS1=; " + oshrun() + " sh -c 'echo u''p; until [ -e " + end +
                " ]; do sleep 0.05; done; echo over''all'\n");
  EXPECT_THAT(terminal.show_until("up"), HasSubstr("up"));
  terminal.type("\x1a");  // Ctrl-Z
  EXPECT_THAT(terminal.show_until("Stopped"), HasSubstr("Stopped"));
  terminal.type("fg\n");
  std::ofstream(end).flush();
  EXPECT_THAT(terminal.show_until("overall"), HasSubstr("overall"));
}

}  // namespace
