// tests/nn_backend/page_rows.h - the rows of tables of pages for users of other libraries, against what these give:
// tests/data/make_pytorch_rows.py, make_keras_rows.py.
#pragma once
#include <kassette/backend.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/results.h"
#include "tests/sources.h"

namespace kassette::test {

/// As `input` of the scripts.
inline Tensor input(const std::vector<std::int64_t>& shape, int seed = 0) {
  std::int64_t n = 1;
  for (std::int64_t size : shape) n *= size;
  std::vector<double> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<double>((i * 7 + seed) % 11 - 5) / 4);
  return f64(v, shape);
}

struct PageResult {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

/// What a script has written: the results of each left cell.
inline std::map<std::string, std::vector<PageResult>> results_of_rows(const char* file) {
  std::map<std::string, std::vector<PageResult>> rows;
  std::istringstream lines(text_of(kSourceTree / file));
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t shape = line.find('\t'), numbers = line.find('\t', shape + 1);
    PageResult result;
    std::string sizes = line.substr(shape + 1, numbers - shape - 1);
    for (char& c : sizes)
      if (c == ',') c = ' ';
    std::istringstream in(sizes), values(line.substr(numbers + 1));
    for (std::int64_t size; in >> size;) result.shape.push_back(size);
    for (double value; values >> value;) result.values.push_back(value);
    rows[line.substr(0, shape)].push_back(result);
  }
  return rows;
}

/// The left cells of a page's tables, whose heads are `head`.
inline std::vector<std::string> left_cells(const char* page, const std::string& head) {
  std::vector<std::string> cells;
  std::istringstream lines(text_of(kSourceTree / page));
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("| ", 0) == 0 && line != head) cells.push_back(line.substr(2, line.find(" |", 2) - 2));
  return cells;
}

/// Our results of the rows, by left cells.
using PageRows = std::map<std::string, std::function<Tensors()>>;

/// Checks each row of the file, and that the page has no other rows but `without_number`.
inline void check_page(const char* page, const char* head, const char* file, const PageRows& ours,
                       const std::set<std::string>& without_number) {
  const auto expected = results_of_rows(file);
  const std::vector<std::string> cells = left_cells(page, head);
  for (const auto& [row, wanted] : expected) {
    INFO(row);
    REQUIRE(ours.count(row) == 1);
    CHECK(std::count(cells.begin(), cells.end(), row) == 1);
    const Tensors got = ours.at(row)();
    REQUIRE(got.size() == static_cast<std::int64_t>(wanted.size()));
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      const Tensor y = backend::cast(got[static_cast<std::int64_t>(k)], "float64");
      const auto shape = y.shape();
      REQUIRE(std::vector<std::int64_t>(shape.begin(), shape.end()) == wanted[k].shape);
      const std::vector<double> v = values(y);
      for (std::size_t i = 0; i < v.size(); ++i) CHECK(std::fabs(v[i] - wanted[k].values[i]) <= 2e-7);
    }
  }
  for (const std::string& cell : cells)
    if (!without_number.count(cell) && !expected.count(cell)) FAIL_CHECK("no numbers for the row " << cell);
}

}  // namespace kassette::test
