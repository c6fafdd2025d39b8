// SPDX-License-Identifier: Apache-2.0
#include "bench/item.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "bench/library.hpp"
#include "bench/points.hpp"

namespace bench {
namespace {

/// Shorter than the machine's moods.
constexpr double kMeasured = 3e6;

double take_part(Player& player, Step step, std::uint32_t count, const Item& item) {
  switch (step) {
    case Step::kRaw:
      return player.raw();
    case Step::kFigure:
      return item.figure(count);
    case Step::kBase:
      return item.base(count);
    case Step::kBarriers:
    case Step::kYields:
    case Step::kAlgorithm:  // of barriers alone
    case Step::kEnd:
      return 0;
  }
  return 0;
}

class Conductor {
 public:
  Conductor(Player& player, const std::vector<Item>& items) : player_(player), items_(items) {}

  void measure_all(int repeats) {
    for (item_ = 0; item_ < items_.size(); ++item_) {
      write_series(std::cout, {items_[item_].name, measure(repeats)});
      std::cout.flush();
    }
    item_ = 0;
    step(Step::kEnd, 0);
  }

 private:
  double step(Step step, std::uint32_t count) {
    player_.begin(step, count, item_);
    const double time = take_part(player_, step, count, items_[item_]);
    player_.finish();
    return time;
  }

  std::vector<Point> measure(int repeats) {
    const std::uint32_t most = items_[item_].most;
    const auto count_for = [&](Step which) {
      const double one = step(which, std::min(most, 5U));
      return static_cast<std::uint32_t>(std::clamp(kMeasured / one, std::min(most, 5U) * 1.0, most * 1.0));
    };
    const std::uint32_t figures = count_for(Step::kFigure);
    const std::uint32_t bases = count_for(Step::kBase);
    std::vector<Point> points;
    for (int i = 0; i < repeats; ++i) {
      Point point;
      point.raw_before = step(Step::kRaw, 0);
      point.base = step(Step::kBase, bases);
      point.figure = step(Step::kFigure, figures);
      point.raw_after = step(Step::kRaw, 0);
      points.push_back(point);
    }
    return points;
  }

  Player& player_;
  const std::vector<Item>& items_;
  std::uint32_t item_ = 0;
};

void run(const char* file, int repeats, const std::string& part, const ItemsOf& items_of) {
  const Library library;
  Player player(file, Library::me(), Library::size());
  const auto items = items_of(player, part);
  Library::barrier();
  if (Library::me() == 0) {
    Conductor(player, items).measure_all(repeats);
    return;
  }
  for (Step step{}; step != Step::kEnd;) {
    std::uint32_t count = 0;
    std::uint32_t item = 0;
    step = player.next(count, &item);
    take_part(player, step, count, items[item]);
    player.step_done();
  }
}

}  // namespace

int measure_items(int argc, char** argv, const ItemsOf& items_of) {
  if (argc != 4) {
    std::cerr << "Usage: " << argv[0] << " FILE REPEATS PART\n";
    return 2;
  }
  try {
    run(argv[1], std::atoi(argv[2]), argv[3], items_of);
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 1;
  }
  return 0;
}

}  // namespace bench
