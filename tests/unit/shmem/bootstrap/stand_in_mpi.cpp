// SPDX-License-Identifier: Apache-2.0
// A library that looks like an MPI, of which there may be several in a process.
#include <cstring>

extern "C" {

__attribute__((visibility("default"))) int MPI_Get_library_version(char* version, int* length) {
  std::strcpy(version, STAND_IN_VERSION);  // NOLINT(clang-analyzer-security.insecureAPI.strcpy): MPI gives no size
  *length = static_cast<int>(std::strlen(version));
  return 0;
}

__attribute__((visibility("default"))) int MPI_Initialized(int* flag) {
  *flag = STAND_IN_INITIALISED;
  return 0;
}

}  // extern "C"
