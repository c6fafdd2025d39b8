// SPDX-License-Identifier: Apache-2.0
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
namespace {

constexpr std::chrono::microseconds kSleep{200};
constexpr std::chrono::seconds kAnswerLimit{60};
constexpr std::uint64_t kWarmUp = 1'000;

ControlBlock* map_control_block(const char* file) {
  const int fd = ::open(file, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    throw std::system_error(errno, std::generic_category(), file);
  }
  void* memory = ::mmap(nullptr, sizeof(ControlBlock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), std::string("mmap of ") + file);
  }
  return static_cast<ControlBlock*>(memory);
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

/// Returns the processors that this process may use.
cpu_set_t pin_to_own_processor(int me) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  const int processors = CPU_COUNT(&allowed);
  int wanted = me % processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && wanted-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ::sched_setaffinity(0, sizeof one, &one);
      break;
    }
  }
  return allowed;
}

}  // namespace

Worker::Worker(const char* file, int me, int size)
    : control_(map_control_block(file)), me_(me), size_(size), allowed_(pin_to_own_processor(me)) {}

Worker::~Worker() {
  ::munmap(control_, sizeof *control_);
}

void Worker::begin(Step step, std::uint32_t count, std::uint32_t item) {
  control_->step = step;
  control_->count = count;
  control_->item = item;
  control_->number.store(++number_, std::memory_order_release);  // pairs with next()
}

void Worker::finish() {
  const auto all = number_ * (static_cast<std::uint64_t>(size_) - 1);
  sleep_until_done([&] { return control_->done.load(std::memory_order_acquire) == all; });
}

Step Worker::next(std::uint32_t& count, std::uint32_t& item) {
  ++number_;
  sleep_until_done([&] { return control_->number.load(std::memory_order_acquire) == number_; });
  count = control_->count;
  item = control_->item;
  return control_->step;
}

void Worker::step_done() {
  control_->done.fetch_add(1, std::memory_order_release);
}

void Worker::unpin() const {
  ::sched_setaffinity(0, sizeof allowed_, &allowed_);
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

namespace {

double take_part(Worker& worker, Step step, std::uint32_t count, const Item& item) {
  switch (step) {
    case Step::kRaw:
      return worker.raw();
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

/// The steps of process 0.
class Coordinator {
 public:
  Coordinator(Worker& worker, const std::vector<Item>& items) : worker_(worker), items_(items) {}

  void measure_all(int repeats) {
    for (index_ = 0; index_ < items_.size(); ++index_) {
      write_series(std::cout, {items_[index_].name, measure(items_[index_], repeats)});
      std::cout.flush();
    }
    index_ = 0;
    step(Step::kEnd, 0);
  }

 private:
  double step(Step step, std::uint32_t count) {
    worker_.begin(step, count, index_);
    const double time = take_part(worker_, step, count, items_[index_]);
    worker_.finish();
    return time;
  }

  std::uint32_t count_for(Step which, const Item& item) {
    const std::uint32_t least = std::min(item.most, item.least);
    return static_cast<std::uint32_t>(
        std::clamp(item.nanoseconds / step(which, least), double{1} * least, double{1} * item.most));
  }

  std::vector<Point> measure(const Item& item, int repeats) {
    if (item.prepare) {
      step(Step::kPrepare, 0);
    }
    const std::uint32_t figures = count_for(Step::kFigure, item);
    const std::uint32_t bases = item.base ? count_for(Step::kBase, item) : 0;
    std::vector<Point> points;
    for (int i = 0; i < repeats; ++i) {
      Point point;
      point.raw_before = step(Step::kRaw, 0);
      point.base = item.base ? step(Step::kBase, bases) : 0;
      point.figure = step(Step::kFigure, figures);
      point.raw_after = step(Step::kRaw, 0);
      point.base = item.base ? point.base : point.raw();
      points.push_back(point);
    }
    return points;
  }

  Worker& worker_;
  const std::vector<Item>& items_;
  std::uint32_t index_ = 0;
};

void run(const char* file, int repeats, const std::vector<std::string>& parts, const ItemsOf& items_of) {
  const Library library;
  Worker worker(file, Library::me(), Library::size());
  const auto items = items_of(worker, parts);
  Library::barrier();
  if (Library::me() == 0) {
    Coordinator(worker, items).measure_all(repeats);
    return;
  }
  for (Step step{}; step != Step::kEnd;) {
    std::uint32_t count = 0;
    std::uint32_t item = 0;
    step = worker.next(count, item);
    take_part(worker, step, count, items[item]);
    worker.step_done();
  }
}

}  // namespace

int measure_items(int argc, char** argv, const ItemsOf& items_of) {
  if (argc < 4) {
    std::cerr << "Usage: " << argv[0] << " FILE REPEATS PART...\n";
    return 2;
  }
  try {
    run(argv[1], std::atoi(argv[2]), {argv + 3, argv + argc}, items_of);
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace bench
