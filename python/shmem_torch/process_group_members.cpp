// SPDX-License-Identifier: Apache-2.0
// Groups of some of the members of a process group, of others too, or of those that are left.
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "python/core/without_python.hpp"
#include "python/shmem_torch/process_group.hpp"

namespace shmem_torch {
namespace {

constexpr int kAbortBefore = 1;  // torch's SHRINK_ABORT
constexpr const char* kHandle = "shmem:";

c10::intrusive_ptr<c10d::Store> part_of(const c10::intrusive_ptr<c10d::Store>& store, const std::string& name) {
  return c10::make_intrusive<c10d::PrefixStore>("shmem_torch/" + name, store);
}

template <typename Numbers>
std::string joined(const Numbers& numbers) {
  std::string text;
  for (const auto number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}

/// One for each rank, in the order of the ranks; those of a set are sorted by the ranks in the default group.
std::vector<ReconfigureHandle> handles_of(const ReconfigureOptions& options) {
  constexpr const char* kName = "shmem:reconfigure";
  std::vector<ReconfigureHandle> handles;
  std::visit([&](const auto& given) { handles.assign(given.begin(), given.end()); }, options.handles);
  if (handles.empty()) {
    refuse(kName, "got no handles");
  }
  std::vector<ReconfigureHandle> sorted = handles;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    refuse(kName, "got the handle " + *twice + " twice");
  }
  for (const ReconfigureHandle& handle : handles) {
    if (handle.rfind(kHandle, 0) != 0) {
      refuse(kName, "\"" + handle + "\" is not a handle of get_reconfigure_handle() of the backend shmem");
    }
  }
  return std::holds_alternative<std::vector<ReconfigureHandle>>(options.handles) ? handles : sorted;
}

}  // namespace

c10::intrusive_ptr<TorchBackend> ProcessGroupShmem::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                          const std::vector<int>& ranks,
                                                          const c10::intrusive_ptr<BackendOptions>& options) {
  const auto mine = std::find(ranks.begin(), ranks.end(), rank_);
  if (mine == ranks.end()) {
    return {};
  }
  const shmem_python::WithoutPython released;
  GroupPlace place{static_cast<int>(mine - ranks.begin()), static_cast<int>(ranks.size()),
                   options ? options->timeout : options_->timeout, options ? name_in(*options) : ""};
  for (const int rank : ranks) {
    place.ranks.push_back(stable_rank(rank));
  }
  return c10::make_intrusive<ProcessGroupShmem>(part_of(store, "split/" + joined(ranks)), place);
}

c10::intrusive_ptr<TorchBackend> ProcessGroupShmem::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                                          const c10::intrusive_ptr<BackendOptions>& options,
                                                          const int& rank, const int& size) {
  const shmem_python::WithoutPython released;
  return c10::make_intrusive<ProcessGroupShmem>(
      part_of(store, "merge"),
      GroupPlace{rank, size, options ? options->timeout : options_->timeout, options ? name_in(*options) : ""});
}

c10::intrusive_ptr<TorchBackend> ProcessGroupShmem::shrink(const std::vector<std::int64_t>& excluded, int flags,
                                                           const c10::intrusive_ptr<BackendOptions>& options) {
  constexpr const char* kName = "shmem:shrink";
  const auto is_excluded = [&](int rank) { return std::count(excluded.begin(), excluded.end(), rank) != 0; };
  for (const std::int64_t rank : excluded) {
    if (rank < 0 || rank >= size_) {
      refuse(kName, "there is no rank " + std::to_string(rank) + " in this group of " + std::to_string(size_));
    }
  }
  if (is_excluded(rank_)) {
    refuse(kName, "rank " + std::to_string(rank_) + " is one of those to exclude, which do not make this call");
  }
  if ((flags & kAbortBefore) != 0) {
    abort();
  }
  const shmem_python::WithoutPython released;
  GroupPlace place{0, 0, options ? options->timeout : options_->timeout, options ? name_in(*options) : ""};
  for (int rank = 0; rank < size_; ++rank) {
    if (!is_excluded(rank)) {
      place.rank += rank < rank_ ? 1 : 0;
      ++place.size;
      place.ranks.push_back(stable_rank(rank));
    }
  }
  const std::string name = "shrink/" + std::to_string(++shrunk_) + "/" + joined(place.ranks);
  return c10::make_intrusive<ProcessGroupShmem>(part_of(store_, name), place);
}

/// Another one after each reconfigure(), so that all members know of the same.
ReconfigureHandle ProcessGroupShmem::get_reconfigure_handle() const {
  constexpr std::size_t kDigits = 10;  // so that handles can be sorted
  const std::string rank = std::to_string(stable_rank_);
  return kHandle + std::string(kDigits - std::min(kDigits, rank.size()), '0') + rank + ":" +
         std::to_string(reconfigured_) + ":" + token_;
}

WorkPointer ProcessGroupShmem::reconfigure(const ReconfigureOptions& options) {
  constexpr const char* kName = "shmem:reconfigure";
  const shmem_python::WithoutPython released;
  const std::vector<ReconfigureHandle> handles = handles_of(options);
  const ReconfigureHandle mine = get_reconfigure_handle();
  const auto found = std::find(handles.begin(), handles.end(), mine);
  if (found == handles.end()) {
    refuse(kName, "the handle of this process, " + mine + ", is not one of the " + std::to_string(handles.size()) +
                      " handles; get_reconfigure_handle() gives another one after each reconfigure()");
  }
  const auto rank = static_cast<int>(found - handles.begin());
  const auto size = static_cast<int>(handles.size());
  // The keys of a group that has had this number before would be taken for those of this one.
  const auto store = part_of(store_, "reconfigure/" + std::to_string(options.uuid));
  const std::vector<std::uint8_t> claim(mine.begin(), mine.end());
  if (store->compareSet("claim/" + std::to_string(rank), std::vector<std::uint8_t>{}, claim) != claim) {
    refuse(kName, "the uuid " + std::to_string(options.uuid) + " was already used; give each reconfigure() a new one");
  }
  leave("the last reconfigure() has failed");
  Store found_by = store_of(store);
  found_by.timeout = at_least_one(options.timeout.value_or(tracker_->timeout()));
  std::shared_ptr<Engine> engine;
  try {
    engine = std::make_shared<Engine>(tracker_, found_by, rank, size);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(kName) + ": " + error.what());
  }
  ++reconfigured_;
  tracker_->begin_again();
  become(rank, size);
  members_.clear();
  for (const ReconfigureHandle& handle : handles) {
    members_.push_back(std::stoull(handle.substr(std::string_view(kHandle).size())));
  }
  const std::scoped_lock lock(engine_mutex_);
  engine_ = std::move(engine);
  return work_that_is_over();
}

/// Before another group takes its place. Calls that are under way cannot be completed: some members do not make them.
void ProcessGroupShmem::leave(const std::string& why) {
  const auto engine = take_engine(why);
  if (engine && tracker_->has_pending()) {
    engine->group.abort("this rank has begun to reconfigure the group");
  }
}

/// In the default group.
std::uint64_t ProcessGroupShmem::stable_rank(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  return index < members_.size() ? members_[index] : index;
}

}  // namespace shmem_torch
