// strata_render [FILE …] [--html FILE]: reads the lines of figures that measuring programs gave
// (bench/README.md), from files or from standard input, and prints them as tables; and writes them
// as a page with plots.
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "bench/render/document.h"
#include "bench/render/figures.h"
#include "bench/render/sections.h"

namespace strata::bench {
namespace {

absl::Status ReadAll(const std::vector<std::string>& files, Figures& figures) {
  if (files.empty()) return figures.Read(std::cin, "standard input");
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in.is_open()) return absl::NotFoundError("cannot read " + file);
    const absl::Status status = figures.Read(in, file);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::vector<std::string> files;
  std::string html;
  CLI::App app{"strata_render: makes tables, and a page with plots, of measured figures"};
  app.add_option("FILE", files, "lines of figures; standard input if none is named");
  app.add_option("--html", html, "file for a page with plots");
  CLI11_PARSE(app, argc, argv);
  Figures figures;
  const absl::Status status = ReadAll(files, figures);
  if (!status.ok()) {
    std::cerr << "strata_render: " << status.message() << std::endl;
    return 1;
  }
  const Document document = MakeDocument(figures);
  std::cout << ToText(document) << std::flush;
  if (html.empty()) return 0;
  std::ofstream page(html, std::ios::binary);
  page << ToHtml(document);
  if (page.flush()) return 0;
  std::cerr << "strata_render: cannot write " << html << std::endl;
  return 1;
}

}  // namespace
}  // namespace strata::bench

int main(int argc, char** argv) { return strata::bench::Main(argc, argv); }
