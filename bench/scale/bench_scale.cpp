// SPDX-License-Identifier: Apache-2.0
// Barriers of 2 to 100,000 members, by a model: what docs/scaling.md shows, and how far the model is from what can be
// measured here.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include "bench/scale/measure.hpp"
#include "bench/scale/tables.hpp"

namespace scale {
namespace {

using Path = std::filesystem::path;

void write_file(const Path& file, const std::string& text) {
  std::ofstream out(file);
  out << text << std::flush;
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

struct Options {
  std::string parameters = BENCH_SCALE_FOLDER "/parameters.txt";
  std::string measured = BENCH_SCALE_FOLDER "/measured.txt";
  std::string write;
  std::string check;
  bool measure = false;
  std::vector<int> sizes{2, 4, 8, 16, 64};
};

/// All files of a folder of documents, as they should be.
std::map<Path, std::string> files_for(const Path& folder, const Document& document) {
  std::map<Path, std::string> files;
  const Path page = folder / "scaling.md";
  files[page] = filled(contents_of(page.string()), document.tables);
  for (const auto& [name, picture] : document.pictures) files[folder / "scaling" / name] = picture;
  return files;
}

void write_files(const Path& folder, const Document& document) {
  std::filesystem::create_directories(folder / "scaling");
  for (const auto& [file, text] : files_for(folder, document)) write_file(file, text);
}

int check_files(const Path& folder, const Document& document) {
  int stale = 0;
  for (const auto& [file, text] : files_for(folder, document)) {
    if (contents_of(file.string()) == text) continue;
    std::fprintf(stderr,
                 "%s is not what bench_scale makes of its parameters: bench_scale --write %s, and read it again\n",
                 file.c_str(), folder.c_str());
    ++stale;
  }
  return stale > 0 ? 1 : 0;
}

int run(int argc, char** argv) {
  CLI::App app("Plays barriers of 2 to 100,000 members by a model and prints what docs/scaling.md shows.",
               "bench_scale");
  Options options;
  app.add_option("--parameters", options.parameters, "what the model is told")->capture_default_str();
  app.add_option("--measured", options.measured, "what it is held against")->capture_default_str();
  app.add_option("--write", options.write, "write the tables into DIR/scaling.md, and the pictures beside it");
  app.add_option("--check", options.check, "fail if the files of DIR are not what would be written");
  app.add_flag("--measure", options.measure, "measure barriers here, and write the file of --measured anew");
  app.add_option("--pes", options.sizes, "with --measure: numbers of PEs")->check(CLI::Range(2, 1024));
  CLI11_PARSE(app, argc, argv);
  const ParameterFile parameters = read_parameters(options.parameters, contents_of(options.parameters));
  if (options.measure) write_file(options.measured, text_of(measure(options.sizes)));
  const Document document = make_document(parameters, read_measured(options.measured, contents_of(options.measured)));
  if (!options.write.empty()) write_files(options.write, document);
  if (!options.check.empty()) return check_files(options.check, document);
  if (options.write.empty()) {
    for (const auto& [name, table] : document.tables) std::printf("%s\n\n%s\n", name.c_str(), table.c_str());
  }
  return 0;
}

}  // namespace
}  // namespace scale

int main(int argc, char** argv) try { return scale::run(argc, argv); } catch (const std::exception& error) {
  std::fprintf(stderr, "bench_scale: %s\n", error.what());
  return 1;
}
