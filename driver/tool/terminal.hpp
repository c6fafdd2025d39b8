// SPDX-License-Identifier: Apache-2.0
// The terminal of gba monitor: a screen of its own, keys without Enter, and everything as before at the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"

namespace tool {

enum class Colour { kNone, kBold, kFaint, kRed, kGreen, kYellow };

struct Line {
  std::string text;
  Colour colour = Colour::kNone;
};

/// Signals as events, for as long as the object lives; they end nothing meanwhile.
class Signals {
 public:
  /// SIGINT, SIGTERM, SIGHUP, SIGQUIT; with `of_terminal` also those that stop and resize.
  explicit Signals(bool of_terminal);

  /// What ended the wait.
  struct Event {
    int signal = 0;
    char key = 0;
  };
  /// Waits for a signal, for a key if `keys`, or for `seconds` to pass: an event without either.
  Event wait(double seconds, bool keys);

 private:
  base::UniqueFd fd_;
};

/// Takes over the terminal that standard output is. Restores it in the destructor, and if a bug ends the process.
/// There is one object at a time.
class Terminal {
 public:
  Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal();

  /// Standard input is a terminal too.
  [[nodiscard]] bool has_keys() const { return keys_; }
  /// Replaces what is shown. Lines and columns that do not fit are not shown.
  void show(const std::vector<Line>& lines) const;
  /// Gives the terminal back, stops the process as the user asked, and takes it over again when it continues.
  void stop();

 private:
  void enter();
  static void leave();

  bool keys_;
  bool colours_;
};

}  // namespace tool
