// SPDX-License-Identifier: Apache-2.0
// Request traces of serving systems, read one request at a time because a trace may be larger than memory, and their
// windows: as many requests as fit into the caches of all PEs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "shmemx.h"
#include "tools/kv_shuffle/world.hpp"

namespace kv_program {

struct Request {
  std::int64_t arrival_ms;  // since a time of the trace's choice
  std::int64_t input_tokens;
  std::int64_t output_tokens;
  // Ids of the prompt's first blocks of kTokensOfPrefixBlock; equal ids are equal prompts up to the block's end.
  std::vector<std::int64_t> prefix_blocks;

  /// The tokens of its sequence in the cache at the end.
  [[nodiscard]] std::int64_t tokens() const { return input_tokens + output_tokens; }
};

constexpr std::int64_t kTokensOfPrefixBlock = 512;
/// More tokens than any request has.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 31;

/// Requests by arrival time. Used by one thread at a time.
class Trace {
 public:
  Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  virtual ~Trace() = default;

  /// The next request, or nothing at the end. An Error about the contents begins with FILE:LINE.
  virtual Result<std::optional<Request>> next() = 0;
  /// Back to the first request.
  virtual Result<void> rewind() = 0;
  /// The name for messages.
  [[nodiscard]] virtual std::string name() const = 0;
};

/// Many short requests and a few long ones, as conversations have; the same ones every time.
class BuiltinTrace : public Trace {
 public:
  static constexpr int kRequests = 4000;

  Result<std::optional<Request>> next() override;
  Result<void> rewind() override;
  [[nodiscard]] std::string name() const override { return "built-in"; }

 private:
  std::uint64_t random();

  std::uint64_t state_ = 0;
  int given_ = 0;
  std::int64_t now_ms_ = 0;
};

/// A trace in a file. Reads a line at a time. A malformed line is an Error, and so is a file without a request.
class TraceFile : public Trace {
 public:
  /// The first line decides on the format: JSON, or the header of an Azure trace.
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
  [[nodiscard]] Error at_line(std::errc code, const std::string& what) const;

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  Format format_ = Format::kMooncake;
  std::string line_;
  std::size_t line_number_ = 0;
  std::int64_t last_arrival_ms_ = 0;
  bool line_is_request_ = false;  // line_ holds a request that next() has not returned yet
};

// A line of each format. Errors describe the line; the caller adds its place.
/// Mooncake: {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}; other members are ignored.
Result<Request> parse_mooncake(std::string_view line);
/// The first line of an Azure LLM inference trace.
constexpr std::string_view kAzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";
/// Azure: 2023-11-16 18:15:46.6805900,374,44
Result<Request> parse_azure(std::string_view line);

/// The requests that arrive in from_ms <= time < to_ms after the trace's first one. Does not read further.
class TraceSlice : public Trace {
 public:
  /// Without `to_ms`, until the trace's end. Error: from_ms is negative, or the time is empty.
  static Result<std::unique_ptr<Trace>> create(std::unique_ptr<Trace> trace, std::int64_t from_ms,
                                               std::optional<std::int64_t> to_ms);

  Result<std::optional<Request>> next() override;
  Result<void> rewind() override;
  [[nodiscard]] std::string name() const override;

 private:
  TraceSlice(std::unique_ptr<Trace> trace, std::int64_t from_ms, std::optional<std::int64_t> to_ms)
      : trace_(std::move(trace)), from_ms_(from_ms), to_ms_(to_ms) {}

  std::unique_ptr<Trace> trace_;
  std::int64_t from_ms_;
  std::optional<std::int64_t> to_ms_;
  std::optional<std::int64_t> first_ms_;  // the time that counts as 0
};

// ---- Windows ----

/// The caches of one PE.
struct Geometry {
  std::int64_t blocks;
  std::int64_t page;  // tokens of a block
};

/// The blocks of a sequence. There is always room for another token: a full page is followed by an empty one.
constexpr std::int64_t blocks_of(std::int64_t tokens, std::int64_t page) {
  return tokens / page + 1;
}

struct DealtSequence {
  std::int64_t tokens;
  std::vector<std::uint64_t> hashes{};  // of its first pages: equal numbers are equal contents
};

/// The sequences of each PE.
using TraceWindow = std::vector<std::vector<DealtSequence>>;

/// Successive windows of a trace. A window deals requests to PEs in turn until the next request does not fit the next
/// PE; that request begins the next window. After the last request the trace begins again. A PE is filled to at most
/// half its cache, so that every plan has room at the receiver.
///
/// All requests are scaled down by one factor, which keeps the proportions of their sizes, until half a cache holds
/// five of the longest: a cache of ten sequences, as in Ascend SHMEM's example. If one sequence filled a PE, there
/// would be nothing to balance.
///
/// A page has a hash if the trace names the blocks of the prompt that it lies in; a page that is not entirely prompt
/// has none. Used by one thread at a time.
class WindowDealer {
 public:
  /// Reads the trace once, so that malformed lines are found here. Errors: those of the trace; a trace without
  /// requests; a cache whose half cannot hold a token; no PEs.
  static Result<WindowDealer> create(std::unique_ptr<Trace> trace, int pes, const Geometry& geometry);

  Result<TraceWindow> next();

  [[nodiscard]] const Trace& trace() const { return *trace_; }
  [[nodiscard]] std::int64_t requests() const { return requests_; }
  /// The number of requests dealt so far; requests() after the whole trace.
  [[nodiscard]] std::int64_t dealt() const { return dealt_; }
  /// Tokens of the trace that one token here stands for.
  [[nodiscard]] std::int64_t scale() const { return scale_; }

 private:
  WindowDealer(std::unique_ptr<Trace> trace, int pes, const Geometry& geometry)
      : trace_(std::move(trace)), pes_(pes), geometry_(geometry) {}

  Result<void> survey();
  [[nodiscard]] DealtSequence scaled(const Request& request) const;
  /// The next request, scaled; after the end, the first one again.
  Result<DealtSequence> next_sequence();

  std::unique_ptr<Trace> trace_;
  int pes_;
  Geometry geometry_;
  std::int64_t scale_ = 1;
  std::int64_t requests_ = 0;
  std::int64_t dealt_ = 0;
  std::optional<DealtSequence> waiting_;  // did not fit into the last window
};

/// A window in caches: the sequences of each PE one after the other, from block 0 on.
class PageTables {
 public:
  PageTables(TraceWindow window, std::int64_t page);
  // sequences() points into the tables.
  PageTables(const PageTables&) = delete;
  PageTables& operator=(const PageTables&) = delete;

  [[nodiscard]] std::span<const shmemx_kv_sequence_t> sequences() const { return sequences_; }
  /// The blocks that the PE's sequences use.
  [[nodiscard]] std::int64_t used(std::size_t pe) const { return used_[pe]; }

 private:
  TraceWindow window_;
  std::vector<std::int64_t> used_;
  std::vector<std::int64_t> blocks_;  // 0, 1, ...: as many as the fullest PE uses
  std::vector<shmemx_kv_sequence_t> sequences_;
};

}  // namespace kv_program
