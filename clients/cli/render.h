// Tables, changes and colours on a terminal.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "strata/v1/document.pb.h"

namespace strata::cli {

// Wraps text in terminal colours, or leaves it as it is.
class Palette {
 public:
  explicit Palette(bool on) : on_(on) {}
  std::string Bold(std::string_view text) const { return Wrap("1", text); }
  std::string Dim(std::string_view text) const { return Wrap("2", text); }
  std::string Red(std::string_view text) const { return Wrap("31", text); }
  std::string Green(std::string_view text) const { return Wrap("32", text); }
  std::string Yellow(std::string_view text) const { return Wrap("33", text); }

 private:
  std::string Wrap(std::string_view code, std::string_view text) const;
  bool on_;
};

// What a cell says where there is nothing to say: "-".
inline std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

// Aligned columns that are printed page by page: memory is that of one page. Columns grow with the
// widest cell so far and never shrink, so later pages stay readable beneath the first.
class Table {
 public:
  Table(std::vector<std::string> header, Palette palette);

  // Cells are made printable. Columns of numbers are better aligned right: see AlignRight.
  void AddRow(const std::vector<std::string>& cells);
  // Lines beneath the last row, indented, printed as they are.
  void AddNote(std::vector<std::string> lines);
  void AlignRight(size_t column) { right_[column] = true; }

  // Prints what was added since the last time; the header only before the first row.
  void Flush(std::ostream& out);

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<std::string> notes;
  };
  std::string Line(const std::vector<std::string>& cells) const;

  std::vector<std::string> header_;
  std::vector<size_t> widths_;
  std::vector<bool> right_;
  std::vector<Row> rows_;
  Palette palette_;
  bool header_printed_ = false;
};

// "+ /path value", "- /path value" or "~ /path old -> new"; "(too large)" for values that the
// server leaves out.
std::string ChangeLine(const v1::FieldChange& change, const Palette& palette);
std::vector<std::string> ChangeLines(
    const google::protobuf::RepeatedPtrField<v1::FieldChange>& changes, const Palette& palette);

// "12,206".
std::string WithCommas(int64_t number);

// "2026-01-31 12:00:07.250000", as --at takes it; or "-" if unset.
std::string CommitTimeCell(bool is_set, const google::protobuf::Timestamp& time);

// "2026-01-31 12:00:07", or "-" if unset.
std::string TimeCell(bool is_set, const google::protobuf::Timestamp& time);

}  // namespace strata::cli
