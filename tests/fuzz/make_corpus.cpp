// SPDX-License-Identifier: Apache-2.0
// Writes the seeds into the corpus: make_fuzz_corpus tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/seeds.hpp"

namespace {

void write_all(const std::filesystem::path& folder, const fuzz::Seeds& seeds) {
  std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : seeds) {
    std::ofstream file(folder / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  write_all(folder / "message", fuzz::message_seeds());
  write_all(folder / "session", fuzz::session_seeds());
  return 0;
}
