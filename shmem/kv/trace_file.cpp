// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/trace_file.hpp"

#include <sys/stat.h>

#include <cerrno>

#include "shmem/kv/trace_formats.hpp"

namespace shmem::kv {
namespace {

/// The longest request that anybody would write: 128 Ki ids of 8 characters.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

tl::unexpected<Error> cannot_read(const std::string& path, int error) {
  return fail_errno(error, "cannot read the trace " + path);
}

}  // namespace

Result<std::unique_ptr<Trace>> TraceFile::open(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return cannot_read(path, errno);
  }
  if (S_ISDIR(status.st_mode)) {
    return cannot_read(path, EISDIR);
  }
  std::unique_ptr<TraceFile> trace{new TraceFile{path}};
  trace->file_.reset(std::fopen(path.c_str(), "rbe"));  // NOLINT(cppcoreguidelines-owning-memory): file_ owns it
  if (trace->file_ == nullptr) {
    return cannot_read(path, errno);
  }
  if (auto ok = trace->start(); !ok) {
    return tl::make_unexpected(ok.error());
  }
  return trace;
}

tl::unexpected<Error> TraceFile::at_line(std::errc code, const std::string& what) const {
  return fail(code, path_ + ":" + std::to_string(line_number_) + ": " + what);
}

Result<bool> TraceFile::read_line() {
  ++line_number_;
  line_.clear();
  for (int c = std::getc(file_.get()); c != '\n'; c = std::getc(file_.get())) {
    if (c == EOF && std::ferror(file_.get()) != 0) {
      return cannot_read(path_, errno);
    }
    if (c == EOF) {
      return !line_.empty();
    }
    if (line_.size() == kLongestLine) {
      return at_line(std::errc::bad_message, "the line is longer than " + std::to_string(kLongestLine) + " characters");
    }
    line_.push_back(static_cast<char>(c));
  }
  if (!line_.empty() && line_.back() == '\r') {
    line_.pop_back();
  }
  return true;
}

Result<void> TraceFile::start() {
  line_number_ = 0;
  last_arrival_ms_ = 0;
  auto more = read_line();
  if (!more) {
    return tl::make_unexpected(more.error());
  }
  if (!*more) {
    return fail(std::errc::bad_message, path_ + ": the trace is empty");
  }
  format_ = line_ == kAzureHeader ? Format::kAzure : Format::kMooncake;
  line_is_request_ = format_ == Format::kMooncake;
  if (line_is_request_ && line_.front() != '{') {
    return at_line(std::errc::bad_message, "neither a JSON object (a Mooncake trace) nor \"" +
                                               std::string(kAzureHeader) + "\" (an Azure trace)");
  }
  if (format_ == Format::kMooncake) {
    return {};
  }
  more = read_line();
  if (!more) {
    return tl::make_unexpected(more.error());
  }
  line_is_request_ = *more;
  return *more ? Result<void>{} : fail(std::errc::bad_message, path_ + ": the trace has a header and no request");
}

Result<std::optional<Request>> TraceFile::next() {
  if (!line_is_request_) {
    const auto more = read_line();
    if (!more) {
      return tl::make_unexpected(more.error());
    }
    if (!*more) {
      return std::optional<Request>{};
    }
  }
  line_is_request_ = false;
  auto request = format_ == Format::kMooncake ? parse_mooncake(line_) : parse_azure(line_);
  if (!request) {
    return at_line(request.error().code, request.error().text);
  }
  if (request->arrival_ms < last_arrival_ms_) {
    return at_line(std::errc::bad_message, "arrives at " + std::to_string(request->arrival_ms) +
                                               " ms, before the request of the line before, at " +
                                               std::to_string(last_arrival_ms_) + " ms");
  }
  last_arrival_ms_ = request->arrival_ms;
  return std::optional(*std::move(request));
}

Result<void> TraceFile::rewind() {
  std::rewind(file_.get());
  return start();
}

}  // namespace shmem::kv
