// SPDX-License-Identifier: Apache-2.0
// What the library prints of errors. An exception says it already, and may be one that a program expects.
#pragma once

#include <string>
#include <vector>

namespace shmem_kv {

/// Holds back the errors that the thread that makes it causes to be printed, until its end. One at a time in a thread.
class HeldMessages {
 public:
  HeldMessages();
  HeldMessages(const HeldMessages&) = delete;
  HeldMessages& operator=(const HeldMessages&) = delete;
  /// Prints what has not been dropped.
  ~HeldMessages();
  /// An exception says this.
  void drop(const std::string& text);

  /// Messages of the library come here from now on.
  static void begin();

 private:
  static void take(int level, const char* text);

  std::vector<std::string> texts_;
};

}  // namespace shmem_kv
