// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/outputs.hpp"

#include <cerrno>
#include <iostream>

#include "shmem/kv/program/json.hpp"
#include "shmem/kv/program/report.hpp"

namespace kv_program {
namespace {

using shmem::Result;

Result<void> open_file(std::ofstream& file, const std::string& path) {
  errno = 0;
  file.open(path, std::ios::trunc);
  return file ? Result<void>{} : shmem::fail_errno(errno, "cannot write " + path);
}

Result<void> put(std::ostream& file, const std::string& path, const std::string& content) {
  errno = 0;
  file << content << std::flush;
  return file ? Result<void>{} : shmem::fail_errno(errno, "cannot write " + path);
}

}  // namespace

Result<void> Outputs::open(const Options& options) {
  if (options.json && !options.json_only()) {
    if (auto ok = open_file(json_, *options.json); !ok) {
      return ok;
    }
  }
  return options.report.empty() ? Result<void>{} : open_file(report_, options.report);
}

Result<void> Outputs::write(const Options& options, const Results& results) {
  if (options.json) {
    std::ostream& out = options.json_only() ? std::cout : json_;
    const std::string name = options.json_only() ? "standard output" : *options.json;
    if (auto ok = put(out, name, to_json(options, results)); !ok) {
      return ok;
    }
  }
  return options.report.empty() ? Result<void>{} : put(report_, options.report, to_svg(options, results));
}

}  // namespace kv_program
