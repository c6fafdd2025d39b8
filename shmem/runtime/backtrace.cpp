// SPDX-License-Identifier: Apache-2.0
#include "shmem/runtime/backtrace.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <limits.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <span>
#include <string_view>

#include "shmem/bootstrap/end_reports.hpp"

// Everything that on_crash() calls is safe in a signal handler, as far as glibc allows: backtrace() is called once
// before, so that it loads nothing, and from glibc 2.35 on it takes no lock.
namespace shmem {
namespace {

constexpr std::array kSignals{SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int kMostCalls = 48;
/// How long a thread waits that fails while another one reports.
constexpr int kWaitSteps = 100;
constexpr timespec kWaitStep{0, 10'000'000};

/// Text of limited length, without allocations.
class FixedText {
 public:
  explicit FixedText(std::span<char> room) : room_(room) {}

  /// False, and without an effect, if it does not fit.
  bool add(std::string_view text) {
    if (text.size() >= room_.size() - length_) {
      return false;
    }
    std::memcpy(&room_[length_], text.data(), text.size());
    length_ += text.size();
    room_[length_] = '\0';
    return true;
  }
  bool add_number(std::uint64_t number, unsigned base) {
    std::array<char, 24> digits{};
    std::size_t first = digits.size();
    do {
      digits[--first] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    return add({&digits[first], digits.size() - first});
  }
  [[nodiscard]] std::size_t length() const { return length_; }
  void cut(std::size_t length) {
    length_ = length;
    room_[length_] = '\0';
  }
  [[nodiscard]] std::string_view text() const { return {room_.data(), length_}; }

 private:
  std::span<char> room_;
  std::size_t length_ = 0;
};

// What the handler reads: set before it is installed.
constinit std::array<char, PATH_MAX> program{};
constinit std::array<char, HOST_NAME_MAX + 1> host{};
constinit pid_t handled_process = 0;
constinit int own_pe = 0;
constinit std::atomic<bool> is_on{false};
constinit std::array<bool, kSignals.size()> is_handled{};
constinit std::atomic<bool> is_reporting{false};
constinit std::atomic<bool> has_reported_crash{false};
// For a thread that has used up its stack.
alignas(16) constinit std::array<char, 64 << 10> other_stack{};

/// What an address belongs to.
struct CodePlace {
  const link_map* module = nullptr;  // nullptr: unknown
  std::uint64_t offset = 0;
};

CodePlace place_of(const void* address) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 35)
  dl_find_object found{};
  if (::_dl_find_object(const_cast<void*>(address), &found) != 0) {
    return {};
  }
  const link_map* const module = found.dlfo_link_map;
#else
  Dl_info info{};
  link_map* module = nullptr;
  if (::dladdr1(address, &info, reinterpret_cast<void**>(&module), RTLD_DL_LINKMAP) == 0) {
    return {};
  }
#endif
  return {module, reinterpret_cast<std::uintptr_t>(address) - module->l_addr};
}

const char* name_of(const link_map& module) {
  return module.l_name == nullptr || *module.l_name == '\0' ? program.data() : module.l_name;
}

/// One line of EndReport::frames. False if there is no room.
bool add_call(FixedText& text, const CodePlace& place) {
  const std::size_t before = text.length();
  if (text.add_number(place.offset, 16) && text.add(" ") && text.add(name_of(*place.module)) && text.add("\n")) {
    return true;
  }
  text.cut(before);
  return false;
}

/// Where the call was made that jumped to an address without code. nullptr if unknown.
const void* caller_of(void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return *reinterpret_cast<const void* const*>(machine.gregs[REG_RSP]);  // the call has stored it
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(machine.regs[30]);
#else
  static_cast<void>(machine);
  return nullptr;
#endif
}

/// The calls from `pc` on, which the signal has interrupted; nullptr: from the first that is not this library's.
void list_calls(FixedText& text, const void* pc) {
  std::array<void*, kMostCalls> calls{};
  const int count = ::backtrace(calls.data(), kMostCalls);
  const auto all = std::span(calls).first(static_cast<std::size_t>(std::max(count, 0)));
  std::size_t first = 0;
  if (pc != nullptr) {
    first = static_cast<std::size_t>(std::ranges::find(all, pc) - all.begin());
    if (first == all.size()) {
      if (const CodePlace place = place_of(pc); place.module != nullptr) {
        add_call(text, place);
      }
      return;
    }
  } else {
    const link_map* const own = place_of(reinterpret_cast<const void*>(&note_calls)).module;
    while (first < all.size() && place_of(all[first]).module == own) {
      ++first;
    }
    first = first == all.size() ? 0 : first;  // a program with the library in it
  }
  for (std::size_t i = first; i < all.size(); ++i) {
    // The others are addresses to return to, behind the call.
    const bool is_return = pc == nullptr || i > first;
    const CodePlace place = place_of(static_cast<const std::byte*>(all[i]) - (is_return ? 1 : 0));
    if (place.module != nullptr && !add_call(text, place)) {
      return;
    }
  }
}

const void* interrupted(void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(machine.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(machine.pc);
#else
  static_cast<void>(machine);
  return nullptr;
#endif
}

/// An access or an instruction raised it, which is repeated after the handler.
bool is_repeated(const siginfo_t& info) {
  return info.si_code > 0 && !(info.si_signo == SIGBUS && info.si_code == BUS_MCEERR_AO);
}

std::uint64_t address_in(const siginfo_t& info) {
  const bool has_address = is_repeated(info) && (info.si_signo == SIGSEGV || info.si_signo == SIGBUS);
  return has_address ? reinterpret_cast<std::uintptr_t>(info.si_addr) : 0;
}

/// One line, for users of other launchers.
void print(const siginfo_t& info, void* context) {
  std::array<char, 768> room{};
  FixedText line(room);
  line.add("shmem: PE ");
  line.add_number(static_cast<std::uint64_t>(own_pe), 10);
  line.add(" (pid ");
  line.add_number(static_cast<std::uint64_t>(handled_process), 10);
  line.add(" on ");
  line.add(host.data());
  line.add(") got signal ");
  line.add_number(static_cast<std::uint64_t>(info.si_signo), 10);
  if (const std::uint64_t address = address_in(info); address != 0) {
    line.add(" at address 0x");
    line.add_number(address, 16);
  }
  if (const CodePlace place = place_of(interrupted(context)); place.module != nullptr) {
    line.add("; addr2line -Cfe ");
    line.add(name_of(*place.module));
    line.add(" 0x");
    line.add_number(place.offset, 16);
    line.add(" names the line");
  }
  line.add("\n");
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.text().data(), line.length());
}

void report_crash(const siginfo_t& info, void* context) {
  EndReport* const report = claim_end_report();
  if (report == nullptr) {
    print(info, context);
    return;
  }
  report->signal = info.si_signo;
  report->address = address_in(info);
  // What is there counts even if the stack cannot be read.
  FixedText frames(report->frames);
  const void* const pc = interrupted(context);
  if (place_of(pc).module == nullptr) {  // a call by a wrong pointer, of which the stack cannot be read
    const CodePlace caller = place_of(static_cast<const std::byte*>(caller_of(context)) - 1);
    if (caller.module != nullptr) {
      add_call(frames, caller);
    }
  } else {
    list_calls(frames, pc);
  }
  publish_end_report(*report, EndKind::kSignal);
}

void on_crash(int number, siginfo_t* info, void* context) {
  const int error = errno;
  if (::getpid() == handled_process) {  // not in a child that was forked
    if (!is_reporting.exchange(true, std::memory_order_relaxed)) {
      report_crash(*info, context);
      has_reported_crash.store(true, std::memory_order_relaxed);
    }
    for (int i = 0; i < kWaitSteps && !has_reported_crash.load(std::memory_order_relaxed); ++i) {
      ::nanosleep(&kWaitStep, nullptr);
    }
  }
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(number, &usual, nullptr);
  // Ends the process as without this handler: the instruction runs again, or else the signal comes again.
  if (!is_repeated(*info)) {
    ::raise(number);
  }
  errno = error;
}

bool is_ours(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_crash;
}

bool is_default(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
}

void take_other_stack() {
  stack_t now{};
  if (::sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) != 0) {
    stack_t own{};
    own.ss_sp = other_stack.data();
    own.ss_size = other_stack.size();
    ::sigaltstack(&own, nullptr);
  }
}

/// The library may be unloaded.
void leave_other_stack() {
  stack_t now{};
  if (::sigaltstack(nullptr, &now) == 0 && now.ss_sp == other_stack.data() && (now.ss_flags & SS_ONSTACK) == 0) {
    now.ss_flags = SS_DISABLE;
    ::sigaltstack(&now, nullptr);
  }
}

}  // namespace

void report_crashes(int pe) {
  own_pe = pe;
  handled_process = ::getpid();
  if (const ssize_t length = ::readlink("/proc/self/exe", program.data(), program.size() - 1); length > 0) {
    program[static_cast<std::size_t>(length)] = '\0';
  }
  ::gethostname(host.data(), host.size() - 1);
  std::array<void*, 2> calls{};
  ::backtrace(calls.data(), static_cast<int>(calls.size()));  // loads what it needs
  is_on.store(true, std::memory_order_relaxed);
  take_other_stack();
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (!is_default(kSignals[i])) {
      continue;
    }
    is_handled[i] = true;
    struct sigaction action {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(kSignals[i], &action, nullptr);
  }
}

void forget_crashes() {
  is_on.store(false, std::memory_order_relaxed);
  leave_other_stack();
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (is_handled[i] && is_ours(kSignals[i])) {
      ::signal(kSignals[i], SIG_DFL);
      is_handled[i] = false;
    }
  }
}

void note_calls() {
  if (!is_on.load(std::memory_order_relaxed)) {
    return;
  }
  if (EndReport* const report = own_end_report(); report != nullptr) {
    FixedText frames(report->frames);
    list_calls(frames, nullptr);
  }
}

}  // namespace shmem
