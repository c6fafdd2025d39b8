// SPDX-License-Identifier: Apache-2.0
#include "base/process_activity.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/fd.hpp"
#include "base/number.hpp"
#include "base/valgrind.hpp"

namespace base {
namespace {

// Calls that wait look at other processes, also when there is no memory: nothing here takes any but opendir().

/// A path in /proc.
class ProcPath {
 public:
  template <typename... Parts>
  explicit ProcPath(fmt::format_string<Parts...> form, Parts&&... parts) {
    *fmt::format_to_n(text_.data(), text_.size() - 1, form, std::forward<Parts>(parts)...).out = '\0';
  }
  [[nodiscard]] const char* get() const { return text_.data(); }

 private:
  std::array<char, 64> text_{};
};

/// The beginning of a file, or nothing.
class Beginning {
 public:
  explicit Beginning(const ProcPath& file) {
    const UniqueFd fd(::open(file.get(), O_RDONLY | O_CLOEXEC));
    const ssize_t size = fd ? ::read(fd.get(), text_.data(), text_.size()) : 0;
    size_ = size > 0 ? static_cast<std::size_t>(size) : 0;
  }
  [[nodiscard]] std::string_view view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 1024> text_{};
  std::size_t size_ = 0;
};

/// What is behind the name of a process or thread in its `stat`: the state, and numbers. The name may hold anything.
std::string_view behind_name(std::string_view stat) {
  const auto end = stat.rfind(") ");
  return end == std::string_view::npos ? std::string_view{} : stat.substr(end + 2);
}

/// Field `number` of what is behind the name, where the state is field 3: proc(5). 0: no such field.
std::uint64_t field_of(std::string_view behind, int number) {
  for (int field = 3; field < number && !behind.empty(); ++field) {
    behind.remove_prefix(std::min(behind.find(' '), behind.size() - 1) + 1);
  }
  return take_number<std::uint64_t>(behind).value_or(0);
}

bool is_stopped_state(char state) {
  return state == 'T' || state == 't';
}

struct Threads {
  bool run = false;  // one of them
  std::uint64_t ran = 0;
  std::uint64_t waited = 0;  // without the time that a thread waits now
};

/// The kernel is ending the thread, or has.
bool is_exiting(std::string_view behind) {
  constexpr int kFlags = 9;
  constexpr std::uint64_t kExiting = 0x4;  // PF_EXITING
  return (field_of(behind, kFlags) & kExiting) != 0;
}

bool is_killed(std::string_view behind) {
  constexpr int kPending = 31;
  constexpr std::uint64_t kKill = std::uint64_t{1} << (SIGKILL - 1);
  return (field_of(behind, kPending) & kKill) != 0;
}

/// Also one that has been killed: until the kernel has ended it, it may sleep, but it is neither stopped nor stuck.
bool runs(std::string_view behind) {
  const bool is_ending = is_exiting(behind) || is_killed(behind);
  return !behind.empty() && (behind.front() == 'R' || (is_ending && behind.front() != 'Z'));
}

void add_thread(pid_t process, pid_t thread, Threads& all) {
  const Beginning stat(ProcPath("/proc/{}/task/{}/stat", process, thread));
  // The thread that looks runs, which says nothing of the process if it is this one.
  all.run = all.run || (runs(behind_name(stat.view())) && thread != ::gettid());
  // Nanoseconds on a processor, nanoseconds that it waited for one, and others.
  const Beginning times(ProcPath("/proc/{}/task/{}/schedstat", process, thread));
  std::string_view text = times.view();
  all.ran += take_number<std::uint64_t>(text).value_or(0);
  take(text, ' ');
  all.waited += take_number<std::uint64_t>(text).value_or(0);
}

std::optional<Threads> threads_of(pid_t process) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(ProcPath("/proc/{}/task", process).get()), ::closedir);
  if (entries == nullptr) {
    return std::nullopt;
  }
  Threads all;
  while (const dirent* const entry = ::readdir(entries.get())) {
    if (const auto thread = number<pid_t>(entry->d_name)) {
      add_thread(process, *thread, all);
    }
  }
  return all;
}

/// A process whose parent has not asked for its end. The first thread alone may have ended: then there are others.
bool is_zombie(pid_t process) {
  constexpr int kThreads = 20;
  const Beginning stat(ProcPath("/proc/{}/stat", process));
  const std::string_view state = behind_name(stat.view());
  return !state.empty() && state.front() == 'Z' && field_of(state, kThreads) <= 1;
}

/// 0 also if a thread has ended, with what it had, and if there is nothing to compare with.
std::uint64_t grown(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;
}

}  // namespace

bool has_ended(pid_t process) {
  // valgrind does not know the call, and would say so each time.
  const UniqueFd handle(RUNNING_ON_VALGRIND != 0 ? -1 : static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!handle) {
    // No descriptor to spare, an old kernel, valgrind, or a container that forbids the call.
    return process > 0 && ((::kill(process, 0) != 0 && errno == ESRCH) || is_zombie(process));
  }
  pollfd end{handle.get(), POLLIN, 0};
  return ::poll(&end, 1, 0) == 1;
}

bool is_dying(pid_t process) {
  const Beginning stat(ProcPath("/proc/{}/stat", process));
  const std::string_view behind = behind_name(stat.view());
  return is_exiting(behind) || is_killed(behind);
}

std::uint64_t start_of(pid_t process) {
  constexpr int kStart = 22;
  // That of the first thread: of the file of its own process qemu-user shows other contents than the kernel.
  const Beginning stat(ProcPath("/proc/{}/task/{}/stat", process, process));
  return field_of(behind_name(stat.view()), kStart);
}

bool has_ended(pid_t process, std::uint64_t start) {
  if (has_ended(process)) {
    return true;
  }
  const std::uint64_t now = start_of(process);
  return start != 0 && now != 0 && now != start;
}

bool is_stopped(pid_t process) {
  const Beginning stat(ProcPath("/proc/{}/stat", process));
  const std::string_view state = behind_name(stat.view());
  return !state.empty() && is_stopped_state(state.front());
}

bool ProcessActivity::works() {
  if (process_ <= 0) {
    return true;
  }
  const auto threads = threads_of(process_);
  const auto now = std::chrono::steady_clock::now();
  const bool again = looked_ != std::chrono::steady_clock::time_point{};
  const std::chrono::nanoseconds passed = now - std::exchange(looked_, now);
  starved_ = false;
  if (!threads) {
    return true;
  }
  const std::uint64_t ran_before = std::exchange(ran_, threads->ran);
  const std::uint64_t waited = grown(std::exchange(waited_, threads->waited), threads->waited);
  const auto half = static_cast<std::uint64_t>(passed.count()) / 2;
  // A wait that has not ended is not counted yet: then a thread waits for a processor, and all of them had little.
  starved_ = again && ((threads->run && grown(ran_before, threads->ran) < half) || waited > half);
  return ran_before != threads->ran || threads->run;
}

}  // namespace base
