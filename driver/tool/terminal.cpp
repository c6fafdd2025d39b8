// SPDX-License-Identifier: Apache-2.0
#include "driver/tool/terminal.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace tool {
namespace {

/// Of Terminal: signal handlers have no other way to it.
termios saved_mode{};
volatile sig_atomic_t mode_is_saved = 0;

constexpr std::string_view kOwnScreen = "\033[?1049h\033[?25l";
constexpr std::string_view kOldScreen = "\033[?25h\033[?1049l";
constexpr std::array kBugs{SIGSEGV, SIGABRT, SIGFPE, SIGILL};

/// Also for signal handlers. A terminal that is gone needs no text.
void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void restore() {
  put(kOldScreen);
  if (mode_is_saved != 0) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &saved_mode);
  }
}

/// It was installed with SA_RESETHAND, so the signal that is raised again ends the process.
void restore_and_end(int signal) {
  restore();
  ::raise(signal);
}

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kBold:
      return "\033[1m";
    case Colour::kFaint:
      return "\033[2m";
    case Colour::kRed:
      return "\033[31m";
    case Colour::kGreen:
      return "\033[32m";
    case Colour::kYellow:
      return "\033[33m";
  }
  return "";
}

}  // namespace

Signals::Signals(bool of_terminal) {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    ::sigaddset(&set, signal);
  }
  if (of_terminal) {
    ::sigaddset(&set, SIGTSTP);
    ::sigaddset(&set, SIGWINCH);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

Signals::Event Signals::wait(double seconds, bool keys) {
  std::array<pollfd, 2> events{
      {{.fd = fd_.get(), .events = POLLIN, .revents = 0}, {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}}};
  // The sum of the nanoseconds is below a second, whatever the rounding.
  const auto whole = static_cast<time_t>(seconds);
  const timespec time{.tv_sec = whole,
                      .tv_nsec = static_cast<long>((seconds - static_cast<double>(whole)) * 999999999)};
  if (::ppoll(events.data(), keys ? 2 : 1, &time, nullptr) <= 0) {
    return {};
  }
  signalfd_siginfo info{};
  if ((events[0].revents & POLLIN) != 0 && ::read(fd_.get(), &info, sizeof info) == sizeof info) {
    return {.signal = static_cast<int>(info.ssi_signo), .key = 0};
  }
  char key = 0;
  if (events[1].revents != 0 && ::read(STDIN_FILENO, &key, 1) != 1) {
    return {.signal = SIGHUP, .key = 0};  // the terminal is gone
  }
  return {.signal = 0, .key = key};
}

Terminal::Terminal() : keys_(::isatty(STDIN_FILENO) != 0) {
  const char* const no_colour = std::getenv("NO_COLOR");
  colours_ = no_colour == nullptr || *no_colour == '\0';
  enter();
}

Terminal::~Terminal() {
  leave();
}

void Terminal::enter() {
  if (keys_ && ::tcgetattr(STDIN_FILENO, &saved_mode) == 0) {
    mode_is_saved = 1;
  }
  struct sigaction action {};
  action.sa_handler = restore_and_end;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : kBugs) {
    ::sigaction(signal, &action, nullptr);
  }
  if (mode_is_saved != 0) {
    termios mode = saved_mode;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSANOW, &mode);
  }
  put(kOwnScreen);
}

void Terminal::leave() {
  restore();
  mode_is_saved = 0;
  for (const int signal : kBugs) {
    ::signal(signal, SIG_DFL);
  }
}

void Terminal::stop() {
  leave();
  ::raise(SIGSTOP);
  enter();
}

void Terminal::show(const std::vector<Line>& lines) const {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
  const std::size_t rows = known ? size.ws_row : 24;
  const std::size_t columns = known ? size.ws_col : 80;
  std::string screen = "\033[H";
  for (std::size_t i = 0; i < std::min(rows, lines.size()); ++i) {
    const std::string_view code = colours_ ? code_of(lines[i].colour) : "";
    screen += code;
    screen += lines[i].text.substr(0, columns);
    screen += code.empty() ? "" : "\033[0m";
    // Clears the rest of the line. Without a line break after the last one, nothing scrolls.
    screen += i + 1 < std::min(rows, lines.size()) ? "\033[K\r\n" : "\033[K";
  }
  put(screen + "\033[J");
}

}  // namespace tool
