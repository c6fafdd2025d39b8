// SPDX-License-Identifier: Apache-2.0
#include "shmem/bootstrap/end_reports.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "base/memfd.hpp"
#include "base/number.hpp"
#include "base/process_activity.hpp"

namespace shmem {
namespace {

constexpr std::uint32_t kEndMagic = 0x444e4552;  // "REND"

struct EndHeader {
  // Written by the launcher before the first PE starts.
  std::uint32_t magic;
  std::uint32_t version;
  std::int32_t pes;
  // Written by all PEs.
  std::atomic<std::uint32_t> reports;
  // Written by the launcher, read by PEs: 1 while they wait in shmem_init.
  std::atomic<std::uint32_t> held;
};
constexpr std::uint32_t kEndVersion = 2;

std::size_t size_of_reports(int pes) {
  return sizeof(EndReport) * (static_cast<std::size_t>(pes) + 1);  // the header has the first place
}

EndHeader& header_of(const base::Mapping& memory) {
  return *reinterpret_cast<EndHeader*>(memory.data());
}

EndReport& report_of(const base::Mapping& memory, int place) {
  return reinterpret_cast<EndReport*>(memory.data())[place + 1];
}

/// How often a PE looks whether it is still held.
constexpr std::chrono::milliseconds kHeldLook{10};

/// This process's report: constant once it is set, and never unmapped, for signal handlers and exit handlers.
constinit std::atomic<EndReport*> own_report{nullptr};
constinit EndHeader* own_header = nullptr;  // set before own_report
constinit std::atomic<bool> has_reported{false};

/// The numbers of "FD:PLACE".
bool read_place(int& fd, int& place) {
  const char* variable = std::getenv(kEndReportsVariable);
  std::string_view text = variable != nullptr ? variable : "";
  fd = base::take_number<int>(text).value_or(-1);
  place = base::take(text, ':') ? base::number<int>(text).value_or(-1) : -1;
  return fd >= 0 && place >= 0;
}

/// A program that a PE has started has the PE's environment, and the PE has the place. False: the place is another's.
bool take_place(EndReport& report) {
  std::int32_t owner = 0;
  const pid_t self = ::getpid();
  // Acquire and release: a process that finds an owner does not find the start of the one before.
  if (!report.owner.compare_exchange_strong(owner, self, std::memory_order_acq_rel) && owner != self) {
    if (!base::has_ended(owner, report.start.load(std::memory_order_relaxed))) {
      return false;
    }
    report.start.store(0, std::memory_order_relaxed);
    if (!report.owner.compare_exchange_strong(owner, self, std::memory_order_acq_rel)) {
      return false;
    }
  }
  report.start.store(base::start_of(self), std::memory_order_relaxed);
  return true;
}

void attach_once() {
  int fd = -1;
  int place = -1;
  if (!read_place(fd, place) || !base::check_memfd(fd, size_of_reports(place + 1))) {
    return;
  }
  auto memory = base::Mapping::share(fd, size_of_reports(place + 1));
  if (!memory || header_of(*memory).magic != kEndMagic || header_of(*memory).version != kEndVersion ||
      place >= header_of(*memory).pes || !take_place(report_of(*memory, place))) {
    return;
  }
  static const auto* const kept = new base::Mapping(std::move(*memory));  // never unmapped
  own_header = &header_of(*kept);
  own_report.store(&report_of(*kept, place), std::memory_order_release);  // pairs with claim_end_report()
}

template <std::size_t Size>
void copy_text(std::string_view text, std::array<char, Size>& room) {
  room[text.copy(room.data(), Size - 1)] = '\0';
}

template <std::size_t Size>
std::string text_in(const std::array<char, Size>& room) {
  return std::string(room.data(), ::strnlen(room.data(), Size));
}

}  // namespace

Result<EndReports> EndReports::create(int pes, bool held) {
  const std::size_t size = size_of_reports(pes);
  auto fd = base::create_memfd("oshrun-ends", size);
  if (!fd) {
    return fd.error();
  }
  auto memory = base::Mapping::share(fd->get(), size);
  if (!memory) {
    return memory.error();
  }
  header_of(*memory).magic = kEndMagic;
  header_of(*memory).version = kEndVersion;
  header_of(*memory).pes = pes;
  header_of(*memory).held.store(held ? 1 : 0, std::memory_order_relaxed);  // the PEs start later
  return EndReports(*std::move(fd), *std::move(memory));
}

std::uint32_t EndReports::count() const {
  return header_of(memory_).reports.load(std::memory_order_relaxed);  // of() reads the rest
}

PeEnd EndReports::of(int place) const {
  const EndReport& report = report_of(memory_, place);
  const EndKind kind = report.kind.load(std::memory_order_acquire);  // pairs with publish_end_report()
  if (kind == EndKind::kNone) {
    return {};
  }
  return {kind, report.order, report.signal, report.address, text_in(report.text), text_in(report.frames)};
}

void EndReports::clear(int place) const {
  EndReport& report = report_of(memory_, place);
  // Relaxed: the process that had the place has ended, and the next one starts later.
  report.kind.store(EndKind::kNone, std::memory_order_relaxed);
  report.owner.store(0, std::memory_order_relaxed);
  report.start.store(0, std::memory_order_relaxed);
  report.text[0] = report.frames[0] = '\0';
}

void EndReports::release() const {
  header_of(memory_).held.store(0, std::memory_order_relaxed);  // wait_while_held() reads nothing else
}

void attach_end_report() {
  static std::once_flag once;
  std::call_once(once, attach_once);
}

void wait_while_held() {
  if (own_report.load(std::memory_order_acquire) == nullptr) {
    return;
  }
  while (own_header->held.load(std::memory_order_relaxed) != 0) {  // pairs with EndReports::release()
    std::this_thread::sleep_for(kHeldLook);
  }
}

EndReport* own_end_report() {
  EndReport* const report = own_report.load(std::memory_order_acquire);
  // A forked child is not the PE.
  const bool is_own = report != nullptr && report->owner.load(std::memory_order_relaxed) == ::getpid();
  return is_own && !has_reported.load(std::memory_order_relaxed) ? report : nullptr;
}

EndReport* claim_end_report() {
  EndReport* const report = own_end_report();
  return report != nullptr && !has_reported.exchange(true, std::memory_order_relaxed) ? report : nullptr;
}

void publish_end_report(EndReport& report, EndKind kind) {
  report.order = own_header->reports.fetch_add(1, std::memory_order_relaxed) + 1;
  report.kind.store(kind, std::memory_order_release);  // pairs with EndReports::of()
}

bool report_end(EndKind kind, std::string_view text) {
  attach_end_report();
  EndReport* const own = own_report.load(std::memory_order_acquire);
  if (own == nullptr || text.size() >= own->text.size() || own->owner.load(std::memory_order_relaxed) != ::getpid()) {
    return false;
  }
  // A later report is of another thread that has met the same end.
  if (EndReport* const report = claim_end_report(); report != nullptr) {
    copy_text(text, report->text);
    publish_end_report(*report, kind);
  }
  return true;
}

}  // namespace shmem
