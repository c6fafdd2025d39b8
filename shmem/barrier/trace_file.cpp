// SPDX-License-Identifier: Apache-2.0
#include "shmem/barrier/trace_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

namespace shmem {
namespace {

constexpr std::string_view kTail = "\n]\n";
/// Longer than hundreds of PEs need for one write each.
constexpr std::chrono::seconds kLockLimit{5};

/// The lock that keeps writers apart; the kernel takes it from one that is killed.
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
    if (held_) ::flock(fd_, LOCK_UN);
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

TraceFile::TraceFile(std::string path, const std::string& job, UniqueFd fd)
    : path_(std::move(path)),
      head_("[\n{\"name\":\"job\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"" + job + "\"}}"),
      fd_(std::move(fd)) {}

Result<TraceFile> TraceFile::open(const std::string& path, const std::string& job) {
  // O_NONBLOCK: a FIFO would wait for its reader.
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  TraceFile file(path, job, std::move(fd));
  if (!file.fd_) return file.failed("cannot be opened");
  struct stat status {};
  if (::fstat(file.fd_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(std::errc::invalid_argument, "SHMEM_TRACE=" + path + " is no regular file");
  }
  auto ok = file.begin();
  return ok ? Result<TraceFile>(std::move(file)) : tl::make_unexpected(ok.error());
}

Result<void> TraceFile::begin() {
  const Lock lock(fd_.get());
  if (!lock) {
    errno = EWOULDBLOCK;
    return failed("cannot be locked");
  }
  if (is_ours()) return {};
  if (::ftruncate(fd_.get(), 0) != 0) return failed("cannot be emptied");
  return put(head_ + std::string(kTail), 0);
}

bool TraceFile::is_ours() const {
  return read_at(fd_.get(), 0, head_.size()) == head_;
}

std::int64_t TraceFile::end_of_elements() const {
  const std::int64_t size = size_of(fd_.get());
  const auto tail = static_cast<std::int64_t>(kTail.size());
  if (read_at(fd_.get(), size - tail, kTail.size()) == kTail) return size - tail;
  // A writer was killed in the middle. Elements stand on lines of their own.
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
  if (!is_ours()) return fail(std::errc::file_exists, path_ + " is another job's now");
  const std::int64_t end = end_of_elements();
  std::string text = ",\n";
  text.append(elements).append(kTail);
  if (auto ok = put(text, end); !ok) {
    // No half elements: what was there before is whole.
    static_cast<void>(put(kTail, end));
    static_cast<void>(::ftruncate(fd_.get(), end + static_cast<std::int64_t>(kTail.size())));
    return ok;
  }
  const std::int64_t whole = end + static_cast<std::int64_t>(text.size());
  if (size_of(fd_.get()) > whole && ::ftruncate(fd_.get(), whole) != 0) return failed("cannot be cut");
  return {};
}

Result<void> TraceFile::put(std::string_view text, std::int64_t offset) const {
  while (!text.empty()) {
    const ssize_t written = ::pwrite(fd_.get(), text.data(), text.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed("cannot be written");
    text.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

tl::unexpected<Error> TraceFile::failed(const char* doing) const {
  const std::error_code code(errno, std::generic_category());
  return fail(std::errc{code.value()}, "SHMEM_TRACE=" + path_ + " " + doing + ": " + code.message());
}

}  // namespace shmem
