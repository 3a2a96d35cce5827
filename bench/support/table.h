// Text in columns, for people and for a README.
#pragma once

#include <string>
#include <vector>

namespace strata::bench {

class Table {
 public:
  explicit Table(std::vector<std::string> heading);
  // REQUIRES: as many cells as the heading has.
  void Add(std::vector<std::string> row);

  // Markdown that reads well as it is: columns of equal width, the first one to the left, all else
  // to the right.
  std::string Text() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the heading first
};

// With commas between thousands: "12,345.6".
std::string Number(double value, int decimals);

// "3.1", "215", "12,500": three digits that matter.
std::string Digits(double value);

// "3.1 us", "12.5 ms"; with the Greek letter for pages.
std::string Duration(double us, bool greek = false);

// "4.00 ms" is "4 ms" beside an axis.
std::string WithoutZeros(std::string text);

}  // namespace strata::bench
