// SPDX-License-Identifier: Apache-2.0
// A trace in a file, in either of the formats that trace_formats.hpp knows.
#pragma once

#include <cstdio>
#include <memory>

#include "shmem/kv/trace.hpp"

namespace shmem::kv {

/// Reads a line at a time. A line that cannot be understood is an Error, and so is a file without a request: a trace is
/// either all there or of no use.
class TraceFile : public Trace {
 public:
  /// The format is told by the first line: JSON, or the header of an Azure trace.
  static Result<std::unique_ptr<Trace>> open(const std::string& path);

  Result<std::optional<Request>> next() override;
  Result<void> rewind() override;
  [[nodiscard]] std::string name() const override { return path_; }

 private:
  enum class Format { kMooncake, kAzure };

  explicit TraceFile(std::string path) : path_(std::move(path)) {}

  Result<void> start();
  /// False at the end of the file.
  Result<bool> read_line();
  [[nodiscard]] tl::unexpected<Error> at_line(std::errc code, const std::string& what) const;

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  Format format_ = Format::kMooncake;
  std::string line_;
  std::size_t line_number_ = 0;
  std::int64_t last_arrival_ms_ = 0;
  bool line_is_request_ = false;  // line_ holds a request that next() has not given yet
};

}  // namespace shmem::kv
