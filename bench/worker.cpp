// SPDX-License-Identifier: Apache-2.0
// bench_worker, the processes of the jobs that benchmarks and tuners start: with libshmem or, built by Open MPI's
// compilers with BENCH_OPENMPI_SHMEM or BENCH_OPENMPI_MPI, with Open MPI. Process 0 prints points (measure.hpp).
//
//   bench_worker FILE PART NUMBER [ARGUMENT...]      FILE: for the Worker; NUMBER: of measurements of each figure
#include "bench/worker.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "bench/library.hpp"

namespace bench {

enum class Worker::Step : std::uint32_t { kRaw, kPrepare, kFigure, kBase, kEnd };

struct Worker::ControlBlock {
  PingPong lines;
  alignas(128) std::atomic<std::uint64_t> number;  // of the current step
  Step step;  // what to do, how often, and for which item; written before the number
  int count;
  std::size_t item;
  alignas(128) std::atomic<std::uint64_t> done;  // steps that the other processes have done, summed up
  PingPong barrier;
  PingPong yielding_barrier;
  Words words;
};

namespace {

constexpr std::chrono::microseconds kSleep{200};
constexpr std::chrono::seconds kAnswerLimit{60};
constexpr std::uint64_t kWarmUp = 1'000;

/// The first bytes of the file, which it gets if it has fewer.
void* map_file(const char* file, std::size_t size) {
  const int fd = ::open(file, O_RDWR | O_CLOEXEC);
  const bool grown = fd >= 0 && ::ftruncate(fd, static_cast<off_t>(size)) == 0;
  void* memory = grown ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
  const int error = errno;
  ::close(fd);
  if (memory == MAP_FAILED) {
    throw std::system_error(error, std::generic_category(), file);
  }
  return memory;
}

template <typename Done, typename Pause>
void wait_until(Done done, Pause pause) {
  const auto end = std::chrono::steady_clock::now() + kAnswerLimit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) {
      throw std::runtime_error("timed out: the other processes of the job have not answered for a minute");
    }
    pause();
  }
}

/// Sleeps between two checks, so that a waiting process does not disturb the measurement.
template <typename Done>
void sleep_until_done(Done done) {
  wait_until(done, [] { std::this_thread::sleep_for(kSleep); });
}

}  // namespace

Worker::Worker(const char* file, int me, int size)
    : control_(static_cast<ControlBlock*>(map_file(file, sizeof(ControlBlock)))), me_(me), size_(size) {
  run_on({cpus_[static_cast<std::size_t>(me) % cpus_.size()]});
}

Worker::~Worker() {
  ::munmap(control_, sizeof *control_);
}

Words& Worker::words() const {
  return control_->words;
}

void Worker::synchronise() {
  if (me_ == 0) {
    ping(control_->barrier, 1);
  } else {
    echo(control_->barrier, 1);
  }
}

void Worker::synchronise_yielding() {
  auto& mine = me_ == 0 ? control_->yielding_barrier.request : control_->yielding_barrier.reply;
  auto& other = me_ == 0 ? control_->yielding_barrier.reply : control_->yielding_barrier.request;
  const auto calls = mine.fetch_add(1, std::memory_order_acq_rel) + 1;  // pairs with the other's load
  wait_until([&] { return other.load(std::memory_order_acquire) >= calls; }, [] { ::sched_yield(); });
}

/// Called by all in kRaw; process 0 gets the raw round trip to process 1.
double Worker::raw() {
  if (me_ == 0) {
    ping(control_->lines, kWarmUp);
    return ping(control_->lines);
  }
  if (me_ == 1) {
    echo(control_->lines, kWarmUp);
    echo(control_->lines);
  }
  return 0;
}

double Worker::take_part(Step step, int count) {
  const Item& item = items_[item_];
  switch (step) {
    case Step::kRaw:
      return raw();
    case Step::kPrepare:
      item.prepare();
      return 0;
    case Step::kFigure:
      return item.figure(count);
    case Step::kBase:
      return item.base(count);
    case Step::kEnd:
      return 0;
  }
  return 0;
}

/// On process 0: has all do a step.
double Worker::step(Step step, int count) {
  control_->step = step;
  control_->count = count;
  control_->item = item_;
  control_->number.store(++number_, std::memory_order_release);  // pairs with follow()
  const double time = take_part(step, count);
  const auto all = number_ * (static_cast<std::uint64_t>(size_) - 1);
  sleep_until_done([&] { return control_->done.load(std::memory_order_acquire) == all; });
  return time;
}

/// On the others: the steps that process 0 begins.
void Worker::follow() {
  for (Step step{}; step != Step::kEnd;) {
    ++number_;
    sleep_until_done([&] { return control_->number.load(std::memory_order_acquire) == number_; });
    step = control_->step;
    item_ = control_->item;
    take_part(step, control_->count);
    control_->done.fetch_add(1, std::memory_order_release);  // pairs with step()
  }
}

int Worker::count_for(Step which) {
  const Item& item = items_[item_];
  const int least = std::min(item.most, item.least);
  return static_cast<int>(std::clamp(item.nanoseconds / step(which, least), double{1} * least, double{1} * item.most));
}

std::vector<Point> Worker::measure_item(int repeats) {
  const Item& item = items_[item_];
  if (item.prepare) {
    step(Step::kPrepare);
  }
  const int figures = count_for(Step::kFigure);
  const int bases = item.base ? count_for(Step::kBase) : 0;
  std::vector<Point> points;
  for (int i = 0; i < repeats; ++i) {
    Point point;
    point.raw_before = step(Step::kRaw);
    point.base = item.base ? step(Step::kBase, bases) : 0;
    point.figure = step(Step::kFigure, figures);
    point.raw_after = step(Step::kRaw);
    point.base = item.base ? point.base : point.raw();
    points.push_back(point);
  }
  return points;
}

void Worker::measure(const std::vector<Item>& items, int repeats) {
  items_ = items.data();
  if (me_ != 0) {
    follow();
    return;
  }
  for (item_ = 0; item_ < items.size(); ++item_) {
    write_series(std::cout, {items_[item_].name, measure_item(repeats)});
  }
  item_ = 0;
  step(Step::kEnd);
}

std::vector<const Part*>& Part::all() {
  static std::vector<const Part*> parts;
  return parts;
}

const Part& Part::named(const std::string& name) {
  for (const Part* part : all()) {
    if (part->name_ == name) {
      return *part;
    }
  }
  throw std::runtime_error("no part " + name);
}

void Part::measure(const char* file, int number, const Arguments& arguments) const {
  const Library library;
  if (run_ != nullptr) {
    run_(number);
    return;
  }
  Worker worker(file, Library::me(), Library::size());
  const Items items = items_(worker, arguments);
  Library::barrier();
  worker.measure(items, number);
}

}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "Usage: " << argv[0] << " FILE PART NUMBER [ARGUMENT...]\n";
    return 2;
  }
  try {
    bench::Part::named(argv[2]).measure(argv[1], std::atoi(argv[3]), {argv + 4, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}
