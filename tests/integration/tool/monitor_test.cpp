// SPDX-License-Identifier: Apache-2.0
// gba monitor: lines and JSON without a terminal; on one a live screen that goes away without a trace.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "tests/integration/driver/barrier_fixture.hpp"
#include "tests/integration/tool/run_gba.hpp"

namespace tool_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

using Monitor = driver_test::BarrierTest;

TEST_F(Monitor, PrintsLinesIfThereIsNoTerminal) {
  const auto device = open();
  const auto handle = alloc(device.get(), 2);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  const auto member = join(device.get(), handle, 0);
  gba_group_arrive(member.get(), 1);
  const auto outcome = gba({"monitor", path(), "--interval", "0.05", "--count", "3"});
  EXPECT_EQ(outcome.exit.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, ContainsRegex("device vfio-user:.* condition ok; arrivals [0-9]+ \\([0-9.]+/s\\), "));
  EXPECT_THAT(outcome.output, ContainsRegex("group 0 waiting joined 1/2 arrived 1 sequence 0 rate 0/s; missing: member "
                                            "1 \\(no port\\)\n"));
  EXPECT_EQ(std::count(outcome.output.begin(), outcome.output.end(), '\n'), 6) << "two lines a look";
  EXPECT_THAT(outcome.output, Not(HasSubstr("\033"))) << "no colours";
}

TEST_F(Monitor, PrintsAnObjectPerLookAsJson) {
  const auto device = open();
  const auto handle = alloc(device.get(), 1);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  const auto member = join(device.get(), handle, 0);
  std::uint64_t k = 0;
  const auto looks_of_running_group = [&](int tenths) {
    test_support::Process monitor({test_support::program("gba"), "monitor", path(), "--interval",
                                   fmt::format("{:.1f}", tenths * 0.1), "--count", "2", "--json"});
    while (!monitor.wait(test_support::Seconds{0})) {
      gba_group_arrive(member.get(), ++k);
      EXPECT_EQ(gba_group_wait(member.get(), k, 60'000'000'000), 0) << gba_error_text();
    }
    std::vector<Json> looks;
    std::istringstream lines(monitor.output());
    for (std::string line; std::getline(lines, line);) {
      looks.push_back(Json::parse(line));
    }
    return looks;
  };
  // This process may have no processor between two looks.
  const auto looks = test_support::with_timeouts(looks_of_running_group, [](const std::vector<Json>& all) {
    return std::ranges::all_of(all, [](const Json& look) { return look.at("groups").at(0).at("state") == "running"; });
  });
  for (const Json& look : looks) {
    EXPECT_EQ(look.at("schema"), 1) << look;
    EXPECT_GT(look.at("counters").at("releases"), 0) << look;
    EXPECT_GT(look.at("counter_rates").at("releases"), 0) << look;
    EXPECT_EQ(look.at("groups").at(0).at("state"), "running") << look;
    EXPECT_EQ(look.at("groups").at(0).at("joined"), 1) << look;
    EXPECT_EQ(look.at("condition"), "ok") << look;
  }
  EXPECT_EQ(looks.size(), 2U);
}

TEST_F(Monitor, ShowsADeviceThatReportsFatal) {
  const test_support::FakeDevice failing({"--fault", "fatal"});
  EXPECT_THAT(gba({"monitor", failing.path(), "--interval", "0.01", "--count", "1"}).output,
              HasSubstr("reports a fatal error (FATAL)"));
}

/// gba monitor on a terminal that the test holds.
class Screen {
 public:
  explicit Screen(const std::string& device) {
    int master = -1;
    int slave = -1;
    winsize size{.ws_row = 40, .ws_col = 120, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::openpty(&master, &slave, nullptr, nullptr, &size), 0);
    master_.reset(master);
    slave_.reset(slave);
    before_ = mode();
    std::string program = test_support::program("gba");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::login_tty(slave);
      ::unsetenv("NO_COLOR");
      ::execl(program.c_str(), program.c_str(), "monitor", device.c_str(), "--interval", "0.05", nullptr);
      ::_exit(127);
    }
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() {
    if (!ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  void type(char key) const { EXPECT_EQ(::write(master_.get(), &key, 1), 1); }
  void signal(int number) const { ::kill(pid_, number); }
  /// Everything shown, until it contains `text`, or nothing has come for a long time.
  const std::string& until(const std::string& text) {
    while (shown_.find(text) == std::string::npos && read_some(30'000)) {
    }
    EXPECT_THAT(shown_, HasSubstr(text));
    return shown_;
  }
  /// The exit code; minus the signal.
  int end() {
    int status = 0;
    for (int waits = 0; waits < 6000; ++waits) {
      read_some(10);
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        ended_ = true;
        while (read_some(0)) {
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
      }
    }
    ADD_FAILURE() << "it does not end; shown: " << shown_;
    return -1;
  }
  /// Is the terminal as it was before?
  [[nodiscard]] bool is_restored() const {
    const auto left = shown_.rfind("\033[?25h\033[?1049l");
    const auto entered = shown_.rfind("\033[?1049h");
    return left != std::string::npos && (entered == std::string::npos || entered < left) && mode() == before_;
  }
  [[nodiscard]] bool has_echo() const { return (mode() & ECHO) != 0; }
  void forget() { shown_.clear(); }
  bool stopped() const {
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }

 private:
  [[nodiscard]] tcflag_t mode() const {
    termios all{};
    EXPECT_EQ(::tcgetattr(slave_.get(), &all), 0);
    return all.c_lflag;
  }
  bool read_some(int limit_ms) {
    pollfd poll{.fd = master_.get(), .events = POLLIN, .revents = 0};
    char text[4096];
    const ssize_t got = ::poll(&poll, 1, limit_ms) == 1 ? ::read(master_.get(), text, sizeof text) : 0;
    shown_.append(text, got > 0 ? static_cast<std::size_t>(got) : 0);
    return got > 0;
  }

  base::UniqueFd master_;
  base::UniqueFd slave_;
  tcflag_t before_ = 0;
  pid_t pid_ = -1;
  bool ended_ = false;
  std::string shown_;
};

TEST_F(Monitor, IsALiveScreenUntilQ) {
  const auto device = open();
  const auto handle = alloc(device.get(), 1);
  ASSERT_EQ(gba_group_enable(device.get(), &handle), 0) << gba_error_text();
  const auto member = join(device.get(), handle, 0);
  Screen screen(path());
  const std::string shown = screen.until("q quit");
  EXPECT_THAT(shown, HasSubstr("COUNTER"));
  EXPECT_THAT(shown, ContainsRegex("\033\\[2m0 +idle")) << "in colour";
  EXPECT_FALSE(screen.has_echo());
  // It looks again and again.
  gba_group_arrive(member.get(), 1);
  ASSERT_EQ(gba_group_wait(member.get(), 1, 60'000'000'000), 0) << gba_error_text();
  screen.until("running");
  screen.type('p');
  screen.until("PAUSED");
  screen.type('-');
  screen.until("every 0.1 s");
  screen.type('+');
  screen.forget();
  screen.until("every 0.05 s");
  screen.type('q');
  EXPECT_EQ(screen.end(), 0);
  EXPECT_TRUE(screen.is_restored());
}

TEST_F(Monitor, RestoresTheTerminalAfterSignals) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Screen screen(path());
    screen.until("q quit");
    screen.signal(signal);
    EXPECT_EQ(screen.end(), 0) << signal;
    EXPECT_TRUE(screen.is_restored()) << signal;
  }
}

TEST_F(Monitor, RestoresTheTerminalIfABugEndsIt) {
  Screen screen(path());
  screen.until("q quit");
  screen.signal(SIGSEGV);
  // A sanitizer would exit.
  EXPECT_NE(screen.end(), 0);
  EXPECT_TRUE(screen.is_restored());
}

TEST_F(Monitor, RestoresTheTerminalIfTheDeviceIsLost) {
  Screen screen(path());
  screen.until("q quit");
  kill_device();
  EXPECT_EQ(screen.end(), 4);
  EXPECT_TRUE(screen.is_restored());
  screen.until("lost");
}

TEST_F(Monitor, GivesTheTerminalBackWhileItIsStopped) {
  Screen screen(path());
  screen.until("q quit");
  screen.signal(SIGTSTP);
  ASSERT_TRUE(screen.stopped());
  screen.until("\033[?1049l");
  EXPECT_TRUE(screen.is_restored());
  screen.forget();
  screen.signal(SIGCONT);
  screen.until("q quit");
  EXPECT_FALSE(screen.has_echo());
  screen.type('q');
  EXPECT_EQ(screen.end(), 0);
  EXPECT_TRUE(screen.is_restored());
}

}  // namespace
}  // namespace tool_test
