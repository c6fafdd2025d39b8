// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "base/fd.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/fuzz/targets.hpp"
#include "tools/kv_shuffle/trace.hpp"

namespace fuzz {
namespace {

using namespace kv_program;

constexpr Geometry kGeometry{.blocks = 64, .page = 16};
constexpr int kPes = 3;

void check_request(const Request& request, std::int64_t earliest) {
  check(request.arrival_ms >= earliest, "requests come in the order of their time");
  check(request.input_tokens >= 0 && request.input_tokens <= kMostTokens, "the input is in its range");
  check(request.output_tokens >= 0 && request.output_tokens <= kMostTokens, "the output is in its range");
  check(static_cast<std::int64_t>(request.prefix_blocks.size()) <= request.input_tokens / kTokensOfPrefixBlock + 1,
        "the ids belong to the input");
}

/// Counts the requests up to the end or the first malformed line.
std::size_t read_all(Trace& trace) {
  std::int64_t last = 0;
  for (std::size_t count = 0;; ++count) {
    const auto request = trace.next();
    if (!request) {
      check(!request.error().text.empty(), "a refusal has a reason");
      return count;
    }
    if (!*request) {
      return count;
    }
    check_request(**request, last);
    last = (*request)->arrival_ms;
  }
}

void check_window(TraceWindow window) {
  check(window.size() == kPes, "there is a list for each PE");
  const PageTables tables(std::move(window), kGeometry.page);
  for (std::size_t pe = 0; pe < kPes; ++pe) {
    check(tables.used(pe) <= kGeometry.blocks / 2, "a window fits half a cache");
  }
  for (const auto& sequence : tables.sequences()) {
    check(sequence.hash_count <= sequence.block_count, "a hash has its page");
    check(sequence.blocks[sequence.block_count - 1] < kGeometry.blocks, "blocks are of the cache");
  }
}

}  // namespace

// First byte: the part of the trace that windows are made of. The rest is the file.
void run_trace(std::span<const std::byte> bytes) {
  Input input(bytes);
  const auto from_ms = std::int64_t{input.take<std::uint8_t>()};
  const auto text = input.take_bytes(bytes.size());
  const base::UniqueFd file(::memfd_create("trace", MFD_CLOEXEC));
  check(file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()), "memory");
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  auto trace = TraceFile::open(path);
  if (!trace) {
    check(!trace.error().text.empty(), "a refusal has a reason");
    return;
  }
  const auto count = read_all(**trace);
  check((*trace)->rewind().has_value(), "a trace that was opened can be read again");
  check(read_all(**trace) == count, "a trace is the same each time");
  check((*trace)->rewind().has_value(), "a trace that was opened can be read again");

  auto slice = TraceSlice::create(*std::move(trace), from_ms, std::nullopt);
  check(slice.has_value(), "a part can be chosen");
  auto dealer = WindowDealer::create(*std::move(slice), kPes, kGeometry);
  for (int i = 0; dealer && i < 3; ++i) {
    auto window = dealer->next();
    check(window.has_value(), "a trace that was surveyed can be dealt");
    check_window(*std::move(window));
  }
}

}  // namespace fuzz
