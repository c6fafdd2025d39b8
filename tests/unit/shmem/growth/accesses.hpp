// SPDX-License-Identifier: Apache-2.0
// Shows a test every access to memory of code compiled with -fsanitize=thread: the compiler calls a function for
// each, and here these report to the test instead of ThreadSanitizer, which is not linked. So the library is counted
// as it is.
#pragma once

#include <cstddef>

namespace accesses {

enum class Kind { kRead, kWrite, kSignal };  // kSignal: an atomic read and write in one

class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  virtual void access(const void* address, std::size_t size, Kind kind) = 0;

 protected:
  ~Observer() = default;
};

/// From now on `observer` is told; nullptr: none is. For programs that have one thread meanwhile.
void report_to(Observer* observer);

}  // namespace accesses
