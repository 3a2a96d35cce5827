// What tables say of a version.
#pragma once

#include <string>
#include <vector>

#include "clients/cli/render.h"
#include "strata/v1/document.pb.h"

namespace strata::cli {

// Cells: version, kind, time, actor ("ann", or "ann for bob"), reason.
std::vector<std::string> VersionCells(const v1::Version& version);

// "7", or "7.2" for the third entry of commit 7.
std::string PlaceCell(int64_t position, int32_t index);

// Notes for beneath a row. What the version is part of.
std::vector<std::string> TransactionNote(const v1::Version& version);

// What the version changed, and a mark if that is not all.
std::vector<std::string> ChangeNotes(const v1::Version& version, const Palette& palette);

// The content, one indented line each; nothing if the version has none here.
std::vector<std::string> ContentLines(const v1::Version& version);

}  // namespace strata::cli
