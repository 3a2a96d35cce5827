// Everything that came from elsewhere goes through Printable before it is aligned or coloured.
#include "clients/cli/render.h"

#include <algorithm>

#include "clients/cli/message_json.h"
#include "clients/cpp/printable.h"
#include "clients/cpp/time_text.h"

namespace strata::cli {

using client::DisplayWidth;
using client::Printable;

std::string Palette::Wrap(std::string_view code, std::string_view text) const {
  if (!on_) return std::string(text);
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

Table::Table(std::vector<std::string> header, Palette palette)
    : header_(std::move(header)), right_(header_.size(), false), palette_(palette) {
  for (const std::string& title : header_) widths_.push_back(DisplayWidth(title));
}

void Table::AddRow(const std::vector<std::string>& cells) {
  Row row;
  for (size_t i = 0; i < header_.size(); ++i) {
    row.cells.push_back(i < cells.size() ? Printable(cells[i]) : "");
    widths_[i] = std::max(widths_[i], DisplayWidth(row.cells.back()));
  }
  rows_.push_back(std::move(row));
}

void Table::AddNote(std::vector<std::string> lines) {
  std::vector<std::string>& notes = rows_.back().notes;
  std::move(lines.begin(), lines.end(), std::back_inserter(notes));
}

std::string Table::Line(const std::vector<std::string>& cells) const {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += "  ";
    const std::string padding(widths_[i] - DisplayWidth(cells[i]), ' ');
    line += right_[i] ? padding + cells[i] : cells[i] + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

void Table::Flush(std::ostream& out) {
  if (!header_printed_ && !rows_.empty()) {
    out << palette_.Bold(Line(header_)) << "\n";
    header_printed_ = true;
  }
  for (const Row& row : rows_) {
    out << Line(row.cells) << "\n";
    for (const std::string& note : row.notes) out << "    " << note << "\n";
  }
  rows_.clear();
}

std::string ChangeLine(const v1::FieldChange& change, const Palette& palette) {
  const std::string path = Printable(change.path());
  const auto text = [&change](const google::protobuf::Value& value) {
    return change.values_omitted() ? "(too large)" : Printable(ValueText(value));
  };
  const std::string before = text(change.before());
  const std::string after = text(change.after());
  switch (change.type()) {
    case v1::CHANGE_TYPE_ADDED:
      return palette.Green("+ " + path + " " + after);
    case v1::CHANGE_TYPE_REMOVED:
      return palette.Red("- " + path + " " + before);
    default:
      return palette.Yellow("~ " + path + " " + before + " -> " + after);
  }
}

std::vector<std::string> ChangeLines(
    const google::protobuf::RepeatedPtrField<v1::FieldChange>& changes, const Palette& palette) {
  std::vector<std::string> lines;
  for (const v1::FieldChange& change : changes) lines.push_back(ChangeLine(change, palette));
  return lines;
}

std::string WithCommas(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string CommitTimeCell(bool is_set, const google::protobuf::Timestamp& time) {
  return is_set ? client::FormatTimeMicros({time.seconds(), time.nanos()}) : "-";
}

std::string TimeCell(bool is_set, const google::protobuf::Timestamp& time) {
  return is_set ? client::FormatTimeShort({time.seconds(), time.nanos()}) : "-";
}

}  // namespace strata::cli
