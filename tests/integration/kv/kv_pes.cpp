// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/kv/kv_pes.hpp"

#include <map>
#include <string>

int main(int argc, char** argv) {
  const std::map<std::string, int (*)(int, char**)> parts{
      {"bad_calls", kv_bad_calls::run}, {"calls", kv_calls::run},     {"fork", kv_fork::run},
      {"killed", kv_killed::run},       {"private", kv_private::run}, {"property", kv_property::run}};
  return argc < 2 ? 2 : parts.at(argv[1])(argc - 1, argv + 1);
}
