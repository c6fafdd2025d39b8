// SPDX-License-Identifier: Apache-2.0
// Suppresses messages that the library prints about errors: the exception contains them, and may be expected.
#pragma once

#include <string>
#include <vector>

namespace shmem_kv {

/// Holds back the error messages of calls that this thread makes, until destroyed. One per thread at a time.
class HeldMessages {
 public:
  HeldMessages();
  HeldMessages(const HeldMessages&) = delete;
  HeldMessages& operator=(const HeldMessages&) = delete;
  /// Prints the messages that were not dropped.
  ~HeldMessages();
  /// Drops a message that an exception contains.
  void drop(const std::string& text);

  /// Redirects the library's messages to this class.
  static void begin();

 private:
  static void take(int level, const char* text);

  std::vector<std::string> texts_;
};

}  // namespace shmem_kv
