# Writes OUTPUT, a source file with the bytes of every file below FOLDER. Run by the build when one of them changes.
file(GLOB_RECURSE files RELATIVE ${FOLDER} ${FOLDER}/*)
list(SORT files)
set(arrays)
set(rows)
set(number 0)
foreach(file ${files})
  file(READ ${FOLDER}/${file} hex HEX)
  # A byte more, so that an empty file is an array too.
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}00")
  string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
  string(LENGTH "${hex}" digits)
  math(EXPR size "${digits} / 2")
  string(APPEND arrays "// ${file}\nconstexpr unsigned char kFile${number}[] = {\n${bytes}};\n")
  string(APPEND rows "      {\"/${file}\", {reinterpret_cast<const char*>(kFile${number}), ${size}}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[#include "service/http/explorer.h"

namespace strata::http {
namespace {

@arrays@
}  // namespace

const std::vector<ExplorerFile>& ExplorerFiles() {
  static const auto& files = *new std::vector<ExplorerFile>{
@rows@      AdviceFile()};
  return files;
}

}  // namespace strata::http
]] @ONLY)
