// SPDX-License-Identifier: Apache-2.0
#include "tools/kv_shuffle/trace.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "base/regular_file.hpp"

namespace kv_program {

/// The same numbers on all machines; the standard library's distributions differ.
std::uint64_t BuiltinTrace::random() {
  state_ += base::kGoldenRatio;
  return base::mix(state_);
}

Result<std::optional<Request>> BuiltinTrace::next() {
  if (given_ == kRequests) {
    return std::optional<Request>{};
  }
  ++given_;
  now_ms_ += static_cast<std::int64_t>(random() % 500);
  // Uniform within an octave, and the octave uniform: 64 to 16383 tokens.
  const std::uint64_t octave = std::uint64_t{64} << (random() % 8);
  const auto input = static_cast<std::int64_t>(octave + random() % octave);
  const auto output = static_cast<std::int64_t>(1 + random() % 500);
  return std::optional(Request{now_ms_, input, output, {}});
}

Result<void> BuiltinTrace::rewind() {
  state_ = 0;
  given_ = 0;
  now_ms_ = 0;
  return {};
}

namespace {

std::string seconds(std::int64_t ms) {
  return fmt::format("{:.15g} s", static_cast<double>(ms) / 1000);
}

}  // namespace

Result<std::unique_ptr<Trace>> TraceSlice::create(std::unique_ptr<Trace> trace, std::int64_t from_ms,
                                                  std::optional<std::int64_t> to_ms) {
  std::unique_ptr<TraceSlice> slice{new TraceSlice(std::move(trace), from_ms, to_ms)};
  if (from_ms < 0 || (to_ms && *to_ms <= from_ms)) {
    return fail(std::errc::invalid_argument, "no request can be in the trace " + slice->name());
  }
  return slice;
}

Result<std::optional<Request>> TraceSlice::next() {
  for (;;) {
    auto request = trace_->next();
    if (!request || !*request) {
      return request;
    }
    first_ms_ = first_ms_.value_or((*request)->arrival_ms);
    const std::int64_t time = (*request)->arrival_ms - *first_ms_;
    if (to_ms_ && time >= *to_ms_) {
      return std::optional<Request>{};
    }
    if (time >= from_ms_) {
      return request;
    }
  }
}

Result<void> TraceSlice::rewind() {
  first_ms_.reset();
  return trace_->rewind();
}

std::string TraceSlice::name() const {
  return fmt::format("{} from {}{}", trace_->name(), seconds(from_ms_), to_ms_ ? " to " + seconds(*to_ms_) : " on");
}

namespace {

/// More than any request needs: 128 Ki ids of 8 characters.
constexpr std::size_t kLongestLine = std::size_t{1} << 20;

Error cannot_read(const std::string& path, int error) {
  return fail_errno(error, "cannot read the trace " + path);
}

}  // namespace

Result<std::unique_ptr<Trace>> TraceFile::open(const std::string& path) {
  auto file = base::open_regular_file(path);
  if (!file) {
    return fail(file.error().code, fmt::format("cannot read the trace {}: {}", path, file.error().text));
  }
  std::unique_ptr<TraceFile> trace{new TraceFile{path}};
  trace->file_.reset(::fdopen(file->get(), "rb"));  // NOLINT(cppcoreguidelines-owning-memory): file_ owns it
  if (trace->file_ == nullptr) {
    return cannot_read(path, errno);
  }
  static_cast<void>(file->release());
  if (auto ok = trace->start(); !ok) {
    return ok.error();
  }
  return trace;
}

Error TraceFile::at_line(std::errc code, const std::string& what) const {
  return fail(code, fmt::format("{}:{}: {}", path_, line_number_, what));
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
      return at_line(std::errc::bad_message, fmt::format("the line is longer than {} characters", kLongestLine));
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
    return more.error();
  }
  if (!*more) {
    return fail(std::errc::bad_message, path_ + ": the trace is empty");
  }
  format_ = line_ == kAzureHeader ? Format::kAzure : Format::kMooncake;
  line_is_request_ = format_ == Format::kMooncake;
  if (line_is_request_ && !line_.starts_with('{')) {
    return at_line(std::errc::bad_message,
                   fmt::format("neither a JSON object (a Mooncake trace) nor \"{}\" (an Azure trace)", kAzureHeader));
  }
  if (format_ == Format::kMooncake) {
    return {};
  }
  more = read_line();
  if (!more) {
    return more.error();
  }
  line_is_request_ = *more;
  return *more ? Result<void>{} : fail(std::errc::bad_message, path_ + ": the trace has a header and no request");
}

Result<std::optional<Request>> TraceFile::next() {
  if (!line_is_request_) {
    const auto more = read_line();
    if (!more) {
      return more.error();
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
    return at_line(std::errc::bad_message,
                   fmt::format("arrives at {} ms, before the request of the line before, at {} ms", request->arrival_ms,
                               last_arrival_ms_));
  }
  last_arrival_ms_ = request->arrival_ms;
  return std::optional(*std::move(request));
}

Result<void> TraceFile::rewind() {
  std::rewind(file_.get());
  return start();
}

}  // namespace kv_program
