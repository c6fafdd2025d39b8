// SPDX-License-Identifier: Apache-2.0
#include "shmem/kv/program/world.hpp"

#include <cstdio>
#include <cstring>

namespace kv_program {

Agreement::Agreement() : word_(sizeof(std::int64_t)) {}

bool Agreement::all(bool mine) {
  const std::int64_t word = mine ? 1 : 0;
  std::memcpy(word_.get(), &word, sizeof word);
  shmem_barrier_all();
  bool everybody = true;
  for (int pe = 0; pe < shmem_n_pes(); ++pe) {
    std::int64_t theirs = 0;
    shmem_getmem(&theirs, word_.get(), sizeof theirs, pe);
    everybody = everybody && theirs == 1;
  }
  shmem_barrier_all();  // nobody changes his word before all have read it
  return everybody;
}

Outcome agree(Agreement& agreement, const shmem::Result<void>& mine) {
  if (agreement.all(mine.has_value())) {
    return std::nullopt;
  }
  return mine ? "" : mine.error().text;
}

Outcome failure_of_all(const std::string& text) {
  return shmem_my_pe() == 0 ? text : "";
}

void say(const std::string& line) {
  if (shmem_my_pe() == 0) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
}

void complain(const std::string& line) {
  std::fprintf(stderr, "%s\n", line.c_str());
}

}  // namespace kv_program
