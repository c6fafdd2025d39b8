// SPDX-License-Identifier: Apache-2.0
// Plans and operators of kv_shuffle. The Python files check and explain arguments.
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "python/core/library.hpp"

namespace {

using namespace shmem_kv;

using Numbers = py::array_t<std::int64_t, py::array::c_style>;
using Hashes = py::array_t<std::uint64_t, py::array::c_style>;

static_assert(sizeof(shmemx_kv_move_t) == 4 * sizeof(std::int64_t), "a row of four numbers");

class Plan {
 public:
  explicit Plan(shmemx_kv_plan_t* made) : plan_(made, &shmemx_kv_plan_destroy) {}

  static std::shared_ptr<Plan> of_moves(const Numbers& moves, int mode) {
    const auto* rows = reinterpret_cast<const shmemx_kv_move_t*>(moves.data());
    const auto count = static_cast<std::size_t>(moves.shape(0));
    return make([&](shmemx_kv_plan_t** made) { return shmemx_kv_plan_create(rows, count, mode, made); });
  }

  static std::shared_ptr<Plan> of_pairs(int me, const Numbers& table, const Numbers& from, const Numbers& to) {
    return make([&](shmemx_kv_plan_t** made) {
      return shmemx_kv_plan_create_pairs(static_cast<int>(table.shape(0)), me, table.data(), from.data(), to.data(),
                                         from.size(), made);
    });
  }

  static std::shared_ptr<Plan> of_balance(const Numbers& pes, const Numbers& tokens, const std::vector<Numbers>& blocks,
                                          const std::vector<std::optional<Hashes>>& hashes,
                                          const shmemx_kv_planning_t& planning) {
    std::vector<shmemx_kv_sequence_t> sequences;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto& known = hashes.at(i);
      const auto row = static_cast<py::ssize_t>(i);
      sequences.push_back({.pe = pes.at(row),
                           .tokens = tokens.at(row),
                           .blocks = blocks[i].data(),
                           .block_count = blocks[i].size(),
                           .hashes = known ? known->data() : nullptr,
                           .hash_count = known ? known->size() : 0});
    }
    return make([&](shmemx_kv_plan_t** made) {
      return shmemx_kv_plan_balance(sequences.data(), sequences.size(), &planning, made);
    });
  }

  [[nodiscard]] const shmemx_kv_plan_t* get() const { return plan_.get(); }
  [[nodiscard]] std::uint64_t digest() const { return shmemx_kv_plan_digest(get()); }

  /// int64[n][4], the plan's own and read-only.
  static py::array moves(const py::object& self) {
    const shmemx_kv_move_t* rows = nullptr;
    std::size_t count = 0;
    const shmemx_kv_plan_t* plan = self.cast<const Plan&>().get();
    checked([&] { return shmemx_kv_plan_moves(plan, &rows, &count); });
    const std::vector<py::ssize_t> shape{static_cast<py::ssize_t>(count), 4};
    return read_only(shape, reinterpret_cast<const std::int64_t*>(rows), self);
  }

  /// {PE, blocks} of a sequence.
  static std::pair<std::int64_t, py::array> placement(const py::object& self, std::size_t index) {
    shmemx_kv_placement_t placement{};
    const shmemx_kv_plan_t* plan = self.cast<const Plan&>().get();
    checked([&] { return shmemx_kv_plan_placement(plan, index, &placement); });
    return {placement.pe, read_only({placement.block_count}, placement.blocks, self)};
  }

 private:
  template <typename Create>
  static std::shared_ptr<Plan> make(Create create) {
    shmemx_kv_plan_t* made = nullptr;
    checked([&] { return create(&made); });  // the arrays belong to the caller's arguments
    return std::make_shared<Plan>(made);
  }

  static py::array read_only(const std::vector<py::ssize_t>& shape, const std::int64_t* data, const py::object& owner) {
    py::array_t<std::int64_t> view(shape, data, owner);
    view.attr("flags").attr("writeable") = false;
    return view;
  }

  std::unique_ptr<shmemx_kv_plan_t, decltype(&shmemx_kv_plan_destroy)> plan_;
};

/// An operator, and the objects that a started shuffle needs.
class Operator : public Collective {
 public:
  static std::shared_ptr<Operator> create(int number, int cores, int path, std::size_t staging) {
    Library::instance().require("Operator");
    const shmem_team_t team = shmemx_team_by_number(number);
    if (team != SHMEM_TEAM_INVALID && shmem_team_my_pe(team) < 0) {
      throw py::value_error("Operator: this PE is not in team " + std::to_string(number));
    }
    auto made = std::make_shared<Operator>();
    const shmemx_kv_options_t options{.cores = cores, .path = path, .staging_bytes = staging};
    Library::instance().wait("Operator", [&] { return shmemx_kv_op_create(team, &options, &made->op_); });
    Library::instance().add(made);
    return made;
  }

  [[nodiscard]] bool closed() const { return op_ == nullptr; }

  void answer_metrics(const std::string& address) {
    use("metrics", [&] { return shmemx_kv_op_metrics(op_, address.c_str()); });
  }

  /// The members of shmemx_kv_stats_t, in their order.
  py::tuple stats() {
    if (!closed()) {
      shmemx_kv_op_stats(op_, &stats_);
    }
    return py::make_tuple(stats_.shuffles, stats_.sent_blocks, stats_.sent_bytes, stats_.time_ns, stats_.failed_invalid,
                          stats_.failed_aborted, stats_.failed_dead, stats_.failed_timeout, stats_.failed_other,
                          stats_.metrics_port);
  }

  void shuffle(const std::shared_ptr<Plan>& plan, const shmemx_kv_cache_t& cache) {
    use("shuffle", [&] { return shmemx_kv_shuffle(op_, plan->get(), &cache); });
  }

  /// `arrays` are kept until the shuffle has ended.
  void start(const std::shared_ptr<Plan>& plan, const shmemx_kv_cache_t& cache, const py::object& arrays) {
    use("start", [&] { return shmemx_kv_shuffle_start(op_, plan->get(), &cache); });
    plan_ = plan;
    arrays_ = arrays;
  }

  /// True if the shuffle has ended; raises if it has failed.
  bool test() {
    require_started("test");
    int done = 0;
    const Ending ending(*this, done);
    use("test", [&] {
      const int error = shmemx_kv_shuffle_test(op_, &done);
      done = error < 0 ? 1 : done;
      return error;
    });
    return done != 0;
  }

  void wait() {
    require_started("wait");
    const int done = 1;
    const Ending ending(*this, done);
    use("wait", [&] { return shmemx_kv_shuffle_wait(op_); });
  }

  /// Collective.
  void close() {
    if (!closed() && Library::instance().runs()) {
      end();
      Library::instance().remove(*this);
    }
  }

  void end() override {
    if (closed()) {
      return;
    }
    const int done = 1;
    const Ending ending(*this, done);
    use("close", [this] {
      if (plan_ != nullptr) {
        shmemx_kv_shuffle_wait(op_);  // its result is no longer needed
      }
      shmemx_kv_op_stats(op_, &stats_);
      return shmemx_kv_op_destroy(std::exchange(op_, nullptr));
    });
  }

 private:
  /// Releases the objects of a shuffle when its scope ends, if the shuffle has ended (`done` is not 0 then).
  class Ending {
   public:
    Ending(Operator& of, const int& done) : of_(of), done_(done) {}
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    ~Ending() {
      if (done_ != 0) {
        of_.plan_ = nullptr;
        of_.arrays_ = py::none();
      }
    }

   private:
    Operator& of_;
    const int& done_;
  };

  void require_free(const char* name) const {
    if (closed()) {
      throw std::runtime_error(std::string(name) + ": the operator is closed");
    }
    if (in_use_) {
      throw std::runtime_error(std::string(name) + ": another thread uses the operator");
    }
  }

  void require_started(const char* name) const {
    require_free(name);
    if (plan_ == nullptr) {
      throw py::value_error(std::string(name) + ": no shuffle was started");
    }
  }

  template <typename Call>
  void use(const char* name, Call call) {
    Library::instance().require(name);
    require_free(name);
    in_use_ = true;
    try {
      Library::instance().wait(name, call);
    } catch (...) {
      in_use_ = false;
      throw;
    }
    in_use_ = false;
  }

  shmemx_kv_op_t* op_ = nullptr;
  shmemx_kv_stats_t stats_{};  // the last
  bool in_use_ = false;
  std::shared_ptr<Plan> plan_;  // of a started shuffle
  py::object arrays_ = py::none();
};

shmemx_kv_cache_t cache_of(std::uintptr_t k, std::uintptr_t v, int format, int element_size,
                           const std::array<std::int64_t, 5>& shape) {
  // NOLINTBEGIN(performance-no-int-to-ptr): addresses come from NumPy
  return {.k = reinterpret_cast<void*>(k),
          .v = reinterpret_cast<void*>(v),
          .format = format,
          .element_size = element_size,
          .layers = shape[0],
          .blocks = shape[1],
          .kv_heads = shape[2],
          .page_size = shape[3],
          .head_dim = shape[4]};
  // NOLINTEND(performance-no-int-to-ptr)
}

}  // namespace

void shmem_kv::bind_kv(py::module_& module) {
  py::class_<Plan, std::shared_ptr<Plan>>(module, "Plan")
      .def_static("of_moves", &Plan::of_moves)
      .def_static("of_pairs", &Plan::of_pairs)
      .def_static("of_balance",
                  [](const Numbers& pes, const Numbers& tokens, const std::vector<Numbers>& blocks,
                     const std::vector<std::optional<Hashes>>& hashes, int planner, int mode, int n_pes,
                     std::int64_t cache_blocks, std::int64_t page_size, double tolerance) {
                    return Plan::of_balance(pes, tokens, blocks, hashes,
                                            {.planner = planner,
                                             .mode = mode,
                                             .n_pes = n_pes,
                                             .reserved = 0,
                                             .blocks = cache_blocks,
                                             .page_size = page_size,
                                             .tolerance = tolerance});
                  })
      .def_property_readonly("digest", &Plan::digest)
      .def_static("moves", &Plan::moves)
      .def_static("placement", &Plan::placement);
  py::class_<shmemx_kv_cache_t>(module, "Cache").def(py::init(&cache_of));
  py::class_<Operator, std::shared_ptr<Operator>>(module, "Operator")
      .def(py::init(&Operator::create))
      .def_property_readonly("closed", &Operator::closed)
      .def("answer_metrics", &Operator::answer_metrics)
      .def("stats", &Operator::stats)
      .def("shuffle", &Operator::shuffle)
      .def("start", &Operator::start)
      .def("test", &Operator::test)
      .def("wait", &Operator::wait)
      .def("close", &Operator::close);
}
