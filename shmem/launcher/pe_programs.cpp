// SPDX-License-Identifier: Apache-2.0
#include "shmem/launcher/pe_programs.hpp"

#include <fmt/format.h>

#include "shmem/bootstrap/end_reports.hpp"
#include "shmem/bootstrap/job_memory.hpp"

namespace shmem::launcher {

namespace {

void set_device(Environment& environment, const std::string& gba, const std::string& device) {
  if (!device.empty()) {
    environment.set("GBA_DEVICE", device);
  } else if (gba == "off" || gba == "require") {
    environment.set("SHMEM_GBA", gba);
  } else if (!gba.empty()) {
    environment.set("GBA_DEVICE", gba);
  }
}

}  // namespace

PePrograms::PePrograms(const Options& options, std::vector<std::string> files, const Binding& binding, Common common)
    : options_(options), files_(std::move(files)), binding_(binding), common_(std::move(common)), pes_(options.pes()) {
  for (const Program& program : options.programs) {
    Environment environment;
    set_device(environment, options.gba, common_.device);
    for (const auto& [name, value] : program.exports) {
      environment.set(name, value);
    }
    if (options.part) {
      environment.set(kJobSizeVariable, std::to_string(options.part->total));
    } else {
      environment.set(kJobFdVariable, std::to_string(common_.job_memory));
      environment.set(kJobSizeVariable, std::to_string(pes_));
    }
    if (common_.profiler != nullptr) {
      environment.set(profile::kFdVariable, std::to_string(common_.profiler->fd()));
      environment.set("LD_PRELOAD", common_.profiler->preloaded(environment.get("LD_PRELOAD")));
    }
    if (common_.lines_to_terminal) {
      environment.set(kJobLinesVariable, "1");
    }
    if (common_.error_to_terminal) {
      environment.set(kJobErrorTerminalVariable, "1");
    }
    environments_.push_back(std::move(environment));
  }
}

std::size_t PePrograms::index_of(int pe) const {
  std::size_t index = 0;
  while (pe >= options_.programs[index].pes) {
    pe -= options_.programs[index++].pes;
  }
  return index;
}

ChildProgram PePrograms::of(int pe) const {
  const std::size_t index = index_of(pe);
  Environment environment = environments_[index];
  environment.set(kJobRankVariable, std::to_string(options_.number(pe)));
  if (options_.part) {
    environment.set("SHMEM_UID_RANK", std::to_string(options_.number(pe)));
  }
  environment.set(kEndReportsVariable, fmt::format("{}:{}", common_.end_reports, pe));
  ChildProgram child;
  child.file = files_[index];
  child.arguments = options_.programs[index].command;
  if (std::vector<std::string> before = common_.tool.before(options_.number(pe)); !before.empty()) {
    child.arguments.front() = child.file;
    child.file = before.front();
    child.arguments.insert(child.arguments.begin(), before.begin(), before.end());
  }
  child.environment = environment.entries();
  child.tag = pe;
  child.group = common_.group;
  child.inherited = {common_.end_reports};
  if (!options_.part) {
    child.inherited.push_back(common_.job_memory);
  }
  if (common_.profiler != nullptr) {
    child.inherited.push_back(common_.profiler->fd());
  }
  if (binding_.is_bound()) {
    child.cpus = binding_.of(pe, pes_).cpus;
  }
  child.folder = options_.programs[index].folder;
  child.open_files = common_.open_files;
  return child;
}

}  // namespace shmem::launcher
