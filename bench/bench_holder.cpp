// SPDX-License-Identifier: Apache-2.0
// Puts into the holder of an exchange by one and by several engines, compared with memcpy of as many blocks in the same
// run.
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/size_text.hpp"
#include "bench/options.hpp"
#include "bench/report.hpp"
#include "shmemx.h"
#include "shmemx_exchange.h"

namespace bench {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kHeld = 512 * kMiB;   // the holder's memory
constexpr std::size_t kSource = 64 * kMiB;  // of each engine, in turn
constexpr std::size_t kMostOfCall = 32;     // blocks
constexpr std::uint32_t kPatientMs = 20'000;

struct Settings {
  int repeats = 5;
  std::vector<std::size_t> sizes{4096, 32'768, 1'048'576};
  std::vector<int> engines{1, 4};
  std::size_t mib = 256;  // that each run puts
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Memory whose pages are there.
char* pages(std::size_t bytes, int letter) {
  void* const made = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) {
    throw std::runtime_error("there is no memory");
  }
  return static_cast<char*>(std::memset(made, letter, bytes));
}

/// A process that says when it is ready, begins when it is told, and says how long it took.
class Runner {
 public:
  explicit Runner(const std::function<double(const std::function<void()>&)>& body) {
    std::array<int, 2> out{};
    std::array<int, 2> in{};
    if (::pipe(out.data()) != 0 || ::pipe(in.data()) != 0 || (process_ = ::fork()) < 0) {
      throw std::runtime_error("cannot start a process");
    }
    if (process_ == 0) {
      ::alarm(600);
      ::close(in[1]);
      const double took = body([&] {
        char go = 0;
        if (::write(out[1], &go, 1) != 1 || ::read(in[0], &go, 1) != 1) {
          ::_exit(1);
        }
      });
      ::_exit(::write(out[1], &took, sizeof took) == ssize_t{sizeof took} ? 0 : 1);
    }
    ::close(out[1]);
    ::close(in[0]);
    out_.reset(out[0]);
    in_.reset(in[1]);
    char ready = 0;
    if (::read(out_.get(), &ready, 1) != 1) {
      throw std::runtime_error("a process has failed");
    }
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() {
    in_.reset();
    ::waitpid(process_, nullptr, 0);
  }
  void begin() { static_cast<void>(::write(in_.get(), "x", 1) == 1); }
  double seconds() {
    double took = 0;
    return ::read(out_.get(), &took, sizeof took) == ssize_t{sizeof took}
               ? took
               : throw std::runtime_error("a process has failed");
  }

 private:
  pid_t process_ = -1;
  base::UniqueFd out_, in_;
};

/// Puts `count` blocks that the holder does not have.
double put_all(shmemx_exchange_t* exchange, const char* source, std::size_t block, std::size_t count,
               std::uint64_t first) {
  std::array<std::uint64_t, kMostOfCall> keys{};
  std::array<shmemx_exchange_put_t, kMostOfCall> puts{};
  const double begin = now();
  for (std::size_t done = 0; done < count;) {
    const std::size_t part = std::min({kMostOfCall, count - done, std::max<std::size_t>(1, 8 * kMiB / block)});
    for (std::size_t i = 0; i < part; ++i) {
      keys.at(i) = first + done + i;
      puts.at(i) = {.key = {&keys.at(i), sizeof keys[0]},
                    .source = source + (done + i) * block % kSource,
                    .bytes = block,
                    .layout = 1,
                    .status = 0,
                    .flags = 0};
    }
    if (shmemx_exchange_put(exchange, puts.data(), part) != static_cast<int>(part)) {
      std::fprintf(stderr, "bench_holder: put: %d %s\n", puts[0].status, shmemx_error_text());
      ::_exit(1);
    }
    done += part;
  }
  return now() - begin;
}

/// Bytes per ns of all engines together.
double measure_puts(const std::string& name, const char* source, std::size_t block, int engines, std::size_t bytes,
                    std::uint64_t run) {
  const std::size_t count = std::max<std::size_t>(1, bytes / block / static_cast<std::size_t>(engines));
  std::vector<std::unique_ptr<Runner>> runners;
  for (int engine = 0; engine < engines; ++engine) {
    const std::uint64_t first = (run * 64 + static_cast<std::uint64_t>(engine)) << 32;
    runners.push_back(std::make_unique<Runner>([&, first](const auto& wait) {
      shmemx_exchange_t* exchange = nullptr;
      if (shmemx_exchange_open(name.c_str(), nullptr, &exchange) != 0 ||
          shmemx_exchange_use_holder(exchange, nullptr, kPatientMs) != 0) {
        ::_exit(1);
      }
      put_all(exchange, source, block, std::max<std::size_t>(1, count / 8), first + count);
      wait();
      return put_all(exchange, source, block, count, first);
    }));
  }
  for (const auto& runner : runners) {
    runner->begin();
  }
  double longest = 0;
  for (const auto& runner : runners) {
    longest = std::max(longest, runner->seconds());
  }
  return static_cast<double>(count * block) * engines / longest / 1e9;
}

double measure_memcpy(const char* source, char* destination, std::size_t block, std::size_t bytes) {
  const double begin = now();
  for (std::size_t at = 0; at < bytes; at += block) {
    std::memcpy(destination + at % kHeld, source + at % kSource, block);
  }
  return static_cast<double>(bytes) / (now() - begin) / 1e9;
}

int run(const Settings& settings) {
  const std::string name = "bench-" + std::to_string(::getpid());
  const char* const source = pages(kSource, 1);
  char* const destination = pages(kHeld, 2);
  const Runner holder([&](const auto& wait) {
    const shmemx_exchange_holding_t holding{.bytes = kHeld, .tenants = nullptr, .tenant_count = 0, .reserved = {}};
    shmemx_exchange_t* exchange = nullptr;
    if (shmemx_exchange_hold(name.c_str(), nullptr, &holding, &exchange) != 0) {
      std::fprintf(stderr, "bench_holder: %s\n", shmemx_error_text());
      ::_exit(1);
    }
    wait();
    shmemx_exchange_close(exchange);
    return 0.0;
  });
  const Table table("-9 8 | 9 9 8");
  table.print({"block", "engines", "put GB/s", "memcpy", "ratio"});
  std::uint64_t runs = 1;
  const std::size_t bytes = settings.mib * kMiB;
  measure_puts(name, source, kMiB, 1, 2 * kHeld, runs++);  // all of the memory is taken, and full
  for (const std::size_t block : settings.sizes) {
    for (const int engines : settings.engines) {
      std::vector<double> puts;
      std::vector<double> copies;
      for (int i = 0; i < settings.repeats; ++i) {
        copies.push_back(measure_memcpy(source, destination, block, bytes));
        puts.push_back(measure_puts(name, source, block, engines, bytes, runs++));
      }
      const double put = middle(puts);
      const double copy = middle(copies);
      table.print({base::size_text(block), std::to_string(engines), number(put, 2), number(copy, 2),
                   fmt::format("{:.0f}%", 100 * put / copy)});
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::Settings settings;
  return bench::run_program(
      {"bench_holder",
       "Puts into the holder of an exchange, compared with memcpy.",
       {{"--repeats", &settings.repeats, "measurements, of which the median is printed", bench::ValueRange{1, 1000}},
        {"--sizes", &settings.sizes, "bytes of a block", bench::ValueRange{64, 64 << 20}},
        {"--engines", &settings.engines, "processes that put at the same time", bench::ValueRange{1, 32}},
        {"--mib", &settings.mib, "MiB that each run puts", bench::ValueRange{1, 65'536}}},
       [&] { return bench::run(settings); }},
      argc, argv);
}
