// SPDX-License-Identifier: Apache-2.0
// What an application does by MPI or by its own means: it gives each PE its rank and the unique id of the job. Here the
// rank comes from oshrun's variables, as it could from those of any launcher, and the id from a file.
#pragma once

#include <aclshmem.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

namespace ascend {

inline int number(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : 0;
}

/// The first PE makes the id and writes it to `file`; the others read it from there. Returns the library's code.
inline int share(const std::string& file, int rank, aclshmemx_uniqueid_t& uid) {
  if (rank == 0) {
    const int code = aclshmemx_get_uniqueid(&uid);
    std::ofstream(file + ".new", std::ios::binary).write(reinterpret_cast<const char*>(&uid), sizeof uid);
    std::rename((file + ".new").c_str(), file.c_str());
    return code;
  }
  while (!std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&uid), sizeof uid)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return ACLSHMEM_SUCCESS;
}

}  // namespace ascend
