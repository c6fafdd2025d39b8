// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/trace.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "base/size_text.hpp"
#include "shmem/config/log.hpp"

namespace shmem {
namespace {

constexpr std::size_t kMostKept = std::size_t{64} << 10;
constexpr std::chrono::seconds kLongestKept{1};

/// The file has microseconds. With integers, because floating-point output depends on the locale.
std::string microseconds(std::uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string metadata(const char* name, int pe, int thread, const std::string& value) {
  return fmt::format(R"({{"name":"{}","ph":"M","pid":{},"tid":{},"args":{{"name":"{}"}}}})", name, pe, thread, value);
}

constexpr std::string_view kTail = "\n]\n";
/// Longer than hundreds of PEs need for one write each.
constexpr std::chrono::seconds kLockLimit{5};

/// The lock that serialises writers; the kernel releases it if its holder is killed.
class Lock {
 public:
  explicit Lock(int fd) : fd_(fd) {
    const auto end = std::chrono::steady_clock::now() + kLockLimit;
    while (!(held_ = ::flock(fd, LOCK_EX | LOCK_NB) == 0) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    if (held_) {
      ::flock(fd_, LOCK_UN);
    }
  }
  explicit operator bool() const { return held_; }

 private:
  int fd_;
  bool held_ = false;
};

std::int64_t size_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 ? status.st_size : 0;
}

std::string read_at(int fd, std::int64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  const ssize_t got = ::pread(fd, text.data(), bytes, offset);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

}  // namespace

TraceFile::TraceFile(std::string path, const std::string& job, base::UniqueFd fd)
    : path_(std::move(path)), head_("[\n" + metadata("job", 0, 0, job)), fd_(std::move(fd)) {}

Result<TraceFile> TraceFile::open(const std::string& path, const std::string& job) {
  // O_NONBLOCK: a FIFO would wait for its reader.
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  TraceFile file(path, job, std::move(fd));
  if (!file.fd_) {
    return file.failed("cannot be opened");
  }
  struct stat status {};
  if (::fstat(file.fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(std::errc::invalid_argument, fmt::format("SHMEM_TRACE={} is not a regular file", path));
  }
  auto ok = file.begin();
  return ok ? Result<TraceFile>(std::move(file)) : ok.error();
}

Result<void> TraceFile::begin() {
  const Lock lock(fd_.get());
  if (!lock) {
    errno = EWOULDBLOCK;
    return failed("cannot be locked");
  }
  if (is_ours()) {
    return {};
  }
  if (::ftruncate(fd_.get(), 0) != 0) {
    return failed("cannot be emptied");
  }
  return put(head_ + std::string(kTail), 0);
}

bool TraceFile::is_ours() const {
  return read_at(fd_.get(), 0, head_.size()) == head_;
}

std::int64_t TraceFile::end_of_elements() const {
  const std::int64_t size = size_of(fd_.get());
  const auto tail = static_cast<std::int64_t>(kTail.size());
  if (read_at(fd_.get(), size - tail, kTail.size()) == kTail) {
    return size - tail;
  }
  // A writer was killed during a write. Elements are on lines of their own.
  constexpr std::int64_t kLookBack = std::int64_t{1} << 20;
  const std::int64_t from = std::max(size - kLookBack, std::int64_t{0});
  const std::string text = read_at(fd_.get(), from, static_cast<std::size_t>(size - from));
  // npos + 1 is 0: none found.
  const std::size_t end = std::max(text.rfind("},\n") + 1, text.rfind("}\n") + 1);
  return end != 0 ? from + static_cast<std::int64_t>(end) : static_cast<std::int64_t>(head_.size());
}

Result<void> TraceFile::append(std::string_view elements) {
  const Lock lock(fd_.get());
  if (!lock) {
    errno = EWOULDBLOCK;
    return failed("cannot be locked");
  }
  if (!is_ours()) {
    return fail(std::errc::file_exists, fmt::format("{} belongs to another job now", path_));
  }
  const std::int64_t end = end_of_elements();
  std::string text = ",\n";
  text.append(elements).append(kTail);
  if (auto ok = put(text, end); !ok) {
    // No partial elements: the earlier contents are complete.
    static_cast<void>(put(kTail, end));
    static_cast<void>(::ftruncate(fd_.get(), end + static_cast<std::int64_t>(kTail.size())));
    return ok;
  }
  const std::int64_t whole = end + static_cast<std::int64_t>(text.size());
  if (size_of(fd_.get()) > whole && ::ftruncate(fd_.get(), whole) != 0) {
    return failed("cannot be cut");
  }
  return {};
}

Result<void> TraceFile::put(std::string_view text, std::int64_t offset) const {
  while (!text.empty()) {
    const ssize_t written = ::pwrite(fd_.get(), text.data(), text.size(), offset);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return failed("cannot be written");
    }
    text.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

Error TraceFile::failed(const char* doing) const {
  const std::error_code code(errno, std::generic_category());
  return fail(std::errc{code.value()}, fmt::format("SHMEM_TRACE={} {}: {}", path_, doing, code.message()));
}

Trace::Trace(TraceFile file, int pe, std::uint64_t zero)
    : file_(std::move(file)), pe_(pe), zero_(zero), written_(std::chrono::steady_clock::now()) {
  keep(metadata("process_name", pe, 0, fmt::format("PE {} (pid {})", pe, ::getpid())));
}

void Trace::name_team(int team, int size) {
  const std::scoped_lock lock(mutex_);
  keep(metadata("thread_name", pe_, team, fmt::format("team {} ({})", team, base::count(size, "PE"))));
}

void Trace::add(const BarrierEvent& event) {
  const std::string args = fmt::format(R"("team":{},"number":{},"path":"{}","last":{},"skew_us":{})", event.team,
                                       event.number, event.path, event.last, microseconds(event.skew));
  const std::string text =
      fmt::format(R"({{"name":"barrier","cat":"barrier","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{{}}}}})",
                  microseconds(event.arrived - zero_), microseconds(event.left - event.arrived), pe_, event.team, args);
  const std::scoped_lock lock(mutex_);
  keep(text);
}

void Trace::flush() {
  const std::scoped_lock lock(mutex_);
  write();
}

void Trace::keep(const std::string& text) {
  if (failed_) {
    return;
  }
  events_ += (events_.empty() ? "" : ",\n") + text;
  if (events_.size() >= kMostKept || std::chrono::steady_clock::now() - written_ >= kLongestKept) {
    write();
  }
}

void Trace::write() {
  written_ = std::chrono::steady_clock::now();
  if (events_.empty() || failed_) {
    return;
  }
  if (auto ok = file_.append(events_); !ok) {
    failed_ = true;
    log(LogLevel::kWarn, "shmem: PE %d writes no more into its trace: %s", pe_, ok.error().text.c_str());
  }
  events_.clear();
}

}  // namespace shmem
