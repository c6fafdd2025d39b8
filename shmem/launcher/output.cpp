// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "shmem/launcher/streams.hpp"

namespace shmem::launcher {

namespace {

/// The capacity of a pipe: one read of this size empties it.
constexpr std::size_t kPipeRoom = std::size_t{64} << 10;
constexpr int kMostEvents = 64;
/// How long an unfinished line waits on a terminal before it is shown.
constexpr std::chrono::milliseconds kMoment{100};
/// Descriptors that a launcher has open for other purposes.
constexpr rlim_t kOtherFiles = 64;

struct stat status_of(int fd) {
  struct stat status {};
  ::fstat(fd, &status);
  return status;
}

bool is_same_file(int a, int b) {
  const struct stat first = status_of(a);
  const struct stat second = status_of(b);
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/// Raises the soft limit to at least `count`, for the output of `pes` PEs; returns the previous limit.
Result<rlimit> allow_open_files(rlim_t count, int pes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return fail_errno(errno, "cannot read the limit on open files");
  }
  const rlimit before = limit;
  if (limit.rlim_cur >= count) {
    return before;
  }
  if (limit.rlim_max < count) {
    return fail(std::errc::too_many_files_open,
                fmt::format("{} open files are needed, {} for oshrun itself and {} for the output of {}, and the limit "
                            "is {}: raise it (ulimit -Hn), or give --direct-output",
                            count, kOtherFiles, count - kOtherFiles, pes == 1 ? "a PE" : fmt::format("{} PEs", pes),
                            limit.rlim_max));
  }
  limit.rlim_cur = count;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return fail_errno(errno, "cannot raise the limit on open files");
  }
  return before;
}

bool is_null_device(int fd) {
  const struct stat status = status_of(fd);
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

}  // namespace

OutputStream::OutputStream(base::UniqueFd readable, int target, Lines::Style style, int pes)
    : readable_(std::move(readable)),
      sink_(target),
      lines_(style, pes),
      on_terminal_(style.on_terminal),
      pipes_(static_cast<std::size_t>(pes)),
      buffer_(kPipeRoom) {}

Result<std::unique_ptr<OutputStream>> OutputStream::open(int target, Lines::Style style, int pes) {
  base::UniqueFd readable(::epoll_create1(EPOLL_CLOEXEC));
  if (!readable) {
    return fail_errno(errno, "cannot wait for what PEs print: epoll_create1");
  }
  return std::unique_ptr<OutputStream>(new OutputStream(std::move(readable), target, style, pes));
}

Result<base::UniqueFd> OutputStream::connect(int pe) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail_errno(errno, "cannot make a pipe (see ulimit -n)");
  }
  base::UniqueFd read(ends[0]);
  base::UniqueFd write(ends[1]);
  // Only oshrun's end: the PE gets an ordinary one.
  if (::fcntl(read.get(), F_SETFL, O_NONBLOCK) != 0) {
    return fail_errno(errno, "cannot set up a pipe");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = pe;
  if (::epoll_ctl(readable_.get(), EPOLL_CTL_ADD, read.get(), &event) != 0) {
    return fail_errno(errno, "cannot wait for what PEs print: epoll_ctl");
  }
  pipes_[static_cast<std::size_t>(pe)] = std::move(read);
  return write;
}

pollfd OutputStream::wanted() const {
  return sink_.is_pending() ? sink_.wanted() : pollfd{readable_.get(), POLLIN, 0};
}

bool OutputStream::move() {
  sink_.flush();
  bool moved = false;
  std::array<epoll_event, kMostEvents> events{};
  // One read per ready pipe: a PE that prints all the time does not keep oshrun here.
  for (std::size_t seen = 0; seen < pipes_.size() && !sink_.is_pending() && sink_.error() == 0; seen += kMostEvents) {
    const int ready = ::epoll_wait(readable_.get(), events.data(), kMostEvents, 0);
    bool read = false;
    for (int i = 0; i < ready; ++i) {
      read |= read_from(events[static_cast<std::size_t>(i)].data.fd);
    }
    moved |= read;
    sink_.put(out_);
    out_.clear();
    if (ready < kMostEvents) {
      break;
    }
  }
  if (sink_.error() != 0) {
    give_up();
  }
  return moved;
}

bool OutputStream::read_from(int pe) {
  base::UniqueFd& pipe = pipes_[static_cast<std::size_t>(pe)];
  const ssize_t got = ::read(pipe.get(), buffer_.data(), buffer_.size());
  if (got < 0) {
    return false;
  }
  if (got == 0) {
    lines_.release(pe, out_);
    pipe.reset();
    return true;
  }
  const std::string_view bytes(buffer_.data(), static_cast<std::size_t>(got));
  if (filter_) {
    lines_.add(pe, filter_(pe, bytes), out_);
  } else {
    lines_.add(pe, bytes, out_);
  }
  if (recent_ != nullptr) {
    recent_->add(pe, bytes);
  }
  if (on_terminal_ && !waiting_since_ && lines_.is_waiting(pe)) {
    waiting_since_ = Clock::now();
  }
  return true;
}

void OutputStream::show_waiting(Clock::time_point now) {
  if (!waiting_since_ || now - *waiting_since_ < kMoment) {
    return;
  }
  waiting_since_.reset();
  release_all();
}

void OutputStream::release_all() {
  for (std::size_t pe = 0; pe < pipes_.size(); ++pe) {
    lines_.release(static_cast<int>(pe), out_);
  }
  sink_.put(out_);
  out_.clear();
}

void OutputStream::put_own(std::string_view line) {
  lines_.add_own(line, out_);
  sink_.put(out_);
  out_.clear();
}

/// The reader is gone, or the disk is full: PEs get the error as if they wrote there themselves.
void OutputStream::give_up() {
  if (!readable_) {
    return;
  }
  if (sink_.error() != EPIPE) {
    say(std::string("cannot write what PEs print: ") + std::strerror(sink_.error()));
  }
  pipes_ = std::vector<base::UniqueFd>(pipes_.size());
  readable_.reset();
}

Result<Output> Output::open(bool tags, int pes, int first) {
  auto output = open_streams({.tags = tags, .first = first}, pes, false);
  if (output) {
    output->recent_ = std::make_unique<RecentLines>(pes);
    for (const auto& stream : {output->output_.get(), output->error_.get()}) {
      if (stream != nullptr) {
        stream->remember(*output->recent_);
      }
    }
  }
  return output;
}

Result<Output> Output::open_for_nodes(int nodes) {
  return open_streams({}, nodes, true);
}

Result<Output> Output::open_streams(Lines::Style style, int pes, bool to_null) {
  Output output;
  output.is_one_ = is_same_file(STDOUT_FILENO, STDERR_FILENO);
  const auto before = allow_open_files(static_cast<rlim_t>(pes) * (output.is_one_ ? 1 : 2) + kOtherFiles, pes);
  if (!before) {
    return before.error();
  }
  output.open_files_before_ = *before;
  auto stream = [&, style](int target) mutable -> Result<std::unique_ptr<OutputStream>> {
    if (is_null_device(target) && !to_null) {
      return std::unique_ptr<OutputStream>();
    }
    style.on_terminal = ::isatty(target) != 0;
    return OutputStream::open(target, style, pes);
  };
  auto first = stream(STDOUT_FILENO);
  if (!first) {
    return first.error();
  }
  output.output_ = std::move(*first);
  if (output.is_one_) {
    return output;
  }
  auto second = stream(STDERR_FILENO);
  if (!second) {
    return second.error();
  }
  output.error_ = std::move(*second);
  return output;
}

Result<Output::Ends> Output::connect(int pe) {
  Ends ends;
  if (output_) {
    auto end = output_->connect(pe);
    if (!end) {
      return end.error();
    }
    ends.output = std::move(*end);
  }
  if (output_ && is_one_) {
    ends.error.reset(::fcntl(ends.output.get(), F_DUPFD_CLOEXEC, 0));
    if (!ends.error) {
      return fail_errno(errno, "cannot hand a pipe to a PE");
    }
  }
  if (error_) {
    auto end = error_->connect(pe);
    if (!end) {
      return end.error();
    }
    ends.error = std::move(*end);
  }
  return ends;
}

std::array<pollfd, 2> Output::wanted() const {
  constexpr pollfd kNothing{-1, 0, 0};
  return {output_ ? output_->wanted() : kNothing, error_ ? error_->wanted() : kNothing};
}

bool Output::move() {
  const auto now = OutputStream::Clock::now();
  bool moved = false;
  for (const auto& stream : {output_.get(), error_.get()}) {
    if (stream == nullptr) {
      continue;
    }
    moved |= stream->move();
    stream->show_waiting(now);
  }
  return moved;
}

void Output::say(const std::string& text) {
  move();
  OutputStream* stream = is_one_ ? output_.get() : error_.get();
  if (stream == nullptr) {
    return launcher::say(text);
  }
  stream->put_own("oshrun: " + text + "\n");
}

void Output::release_all() {
  for (const auto& stream : {output_.get(), error_.get()}) {
    if (stream != nullptr) {
      stream->release_all();
    }
  }
}

bool Output::is_pending() const {
  return (output_ && output_->is_pending()) || (error_ && error_->is_pending());
}

bool Output::is_for_terminal() const {
  return output_ && output_->is_on_terminal();
}

bool Output::is_error_for_terminal() const {
  const OutputStream* stream = is_one_ ? output_.get() : error_.get();
  return stream != nullptr && stream->is_on_terminal();
}

}  // namespace shmem::launcher
