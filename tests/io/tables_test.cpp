// tests/io/tables_test.cpp - CSV as other programs write it: names, text, missing values, quotes, line ends. The values
// are those that pandas.read_csv gives.
#include <kassette/io.h>

#include <cmath>
#include <limits>

#include "core/log.h"
#include "core/text.h"
#include "tests/io/folder.h"
#include "tests/stderr_of.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

namespace {

Tensor table(const std::string& bytes, const LoadCsvOptions& options = {}) {
  Folder folder;
  write_file(folder / "x", bytes);
  return load_csv(folder / "x", options);
}
/// Rows of numbers with "nan" for NaN: "1 nan; 2 3".
std::string rows(const Tensor& x) {
  std::string s;
  const std::vector<double> v = values(x);
  for (std::size_t i = 0; i < v.size(); ++i)
    s += (i == 0 ? "" : i % static_cast<std::size_t>(x.shape()[1]) ? " " : "; ") + text(v[i]);
  return s;
}
std::string refused(const std::string& bytes, const LoadCsvOptions& options = {}) {
  return refusal("load_csv", bytes, [&](const std::string& path) { load_csv(path, options); });
}

const std::string kPassengers =
    "id,name,sex,age,fare\n"
    "1,\"Braund, Mr. Owen\",male,22,7.25\n"
    "2,\"Cumings, \"\"Florence\"\"\",female,,71.2833\n"
    "3,\"O'Dwyer,\nMiss. Ellen\",female,NA,7.8792\r\n"
    "4,5\" nail,male,35,N/A\n";

}  // namespace

TEST_CASE("columns of a table are chosen by name or number, in any order", "[io]") {
  CHECK(rows(table(kPassengers, {.columns = {"fare", "id"}})) == "7.25 1; 71.2833 2; 7.8792 3; nan 4");
  CHECK(rows(table(kPassengers, {.skip_rows = 1, .columns = {"age"}})) == "22; nan; nan; 35");
  CHECK(rows(table(kPassengers, {.skip_rows = 1, .columns = {-1, 0}})) == "7.25 1; 71.2833 2; 7.8792 3; nan 4");
  CHECK(rows(table("made by hand\na;b;c\n1;x;3\n", {.delimiter = ';', .skip_rows = 2, .columns = {"c", "a"}})) ==
        "3 1");
  // Names that numpy.savetxt writes as a comment, and with blanks around them.
  CHECK(rows(table("# a, b ,\"c d\"\n1,2,3\n", {.columns = {"c d", "b"}})) == "3 2");
  CHECK(rows(table("id,# of rooms\n1,5\n", {.columns = {"# of rooms"}})) == "5");
  const std::vector<std::string> names = {"id"};
  const std::vector<int> numbers = {0};
  CHECK(rows(table(kPassengers, {.columns = names})) == "1; 2; 3; 4");
  CHECK(rows(table(kPassengers, {.skip_rows = 1, .columns = numbers})) == "1; 2; 3; 4");
  CHECK(table("a,b\n", {.columns = {"b"}}).shape() == Shape{0, 1});
  CHECK(table(kPassengers, {.dtype = int32, .columns = {"id"}}).dtype() == int32);

  LoadCsvOptions kept;  // options own what they hold
  {
    std::string name = "a name that is longer than a std::string keeps inside";
    kept.columns = {name};
    kept.missing = std::vector<std::string>{"-"};
  }
  CHECK(rows(table("a name that is longer than a std::string keeps inside,b\n-,2\n", kept)) == "nan");

  CHECK(refused(kPassengers, {.columns = {"Age"}}) ==
        "no column is called 'Age'; there are 'id', 'name', 'sex', 'age', 'fare'");
  CHECK(refused("a,a\n1,2\n", {.columns = {"a"}}) == "two columns are called 'a'; give their numbers");
  CHECK(refused("1,2\n", {.columns = {2}}) == "there is no column 2; there are 2, from 0 on");
  CHECK(refused("1,2\n", {.columns = {-3}}) == "there is no column -3; there are 2, from 0 on");
  CHECK(refused("1,2\n", {.columns = {1, -1}}) == "load_csv: columns has column 2 twice");
  CHECK(refused("a,b\n1,2,3\n", {.columns = {"a"}}) == "line 2: 3 columns; there must be 2, as there are names");
  CHECK(refused("a,b\n1,2,x\n", {.skip_rows = 1}) != "no error");  // text where no name is
  CHECK(refused("a,b\n1,2\n3,4,x\n", {.skip_rows = 1}) != "no error");
  CHECK(refused("1,2\n3\n", {.columns = {0}}) == "line 2: 1 columns; there must be 2");
}

TEST_CASE("columns of text are refused by name, or left out", "[io]") {
  CHECK(refused(kPassengers, {.skip_rows = 1}) ==
        "line 2, column 2 ('name'): 'Braund, Mr. Owen' is not a number; {.columns = ...} chooses columns, "
        "{.skip_text = true} leaves out those with text");
  CHECK(rows(table(kPassengers, {.skip_rows = 1, .skip_text = true})) ==
        "1 22 7.25; 2 nan 71.2833; 3 nan 7.8792; 4 35 nan");
  // Text in the last row, and in no column that is asked for.
  CHECK(rows(table("1,2,3\n4,5,x\n", {.skip_text = true})) == "1 2; 4 5");
  CHECK(rows(table("a,b,c\n1,x,3\n", {.columns = {"c", "b"}, .skip_text = true})) == "3");
  CHECK(rows(table("1,x\n", {.dtype = int32, .skip_text = true})) == "1");
  CHECK(refused("x,y\n", {.skip_text = true}) == "every column has text in it");
  CHECK(table("", {.skip_text = true}).shape() == Shape{0, 0});
  const LogLevel before = log_level();
  set_log_level(LogLevel::info);
  const std::string log = stderr_of([&] { table(kPassengers, {.skip_rows = 1, .skip_text = true}); });
  set_log_level(before);
  CHECK_THAT(log, Catch::Contains("leaves out the columns with text: 2 ('name'), 3 ('sex')"));
}

TEST_CASE("missing values are NaN in floats and an error in integers", "[io]") {
  CHECK(rows(table("NA,null,N/A\nNULL,None,n/a\n#N/A,<NA>,\n1.#IND,-1.#QNAN,nan\n", {.comment = '\0'})) ==
        "nan nan nan; nan nan nan; nan nan nan; nan nan nan");
  CHECK(rows(table("-999,1\n2,?\n\"\",4\n", {.missing = {"-999", "?"}})) == "nan 1; 2 nan; nan 4");
  CHECK(refused("NA\n", {.missing = {"?"}}).rfind("line 1, column 1: 'NA' is not a number", 0) == 0);
  CHECK(refused("1\nNA\n", {.dtype = int32}) == "line 2, column 1: 'NA' is missing, and int32 has no NaN");
  // Words with a mark in them that begins comments elsewhere.
  CHECK(rows(table("#N/A,2\n3,4#four\n 5 , #NA\n")) == "nan 2; 3 4; 5 nan");
  CHECK(rows(table("2,-1.#IND\n")) == "2 nan");
  CHECK(refused("2,1.#INF\n").rfind("line 1, column 2: '1.#INF' is not a number", 0) == 0);
  CHECK(refused("2,3\n#DIV/0!,1\n").rfind("line 2, column 1: '#DIV/0!' is not a number", 0) == 0);
}

TEST_CASE("csv with tabs keeps empty fields", "[io]") {
  CHECK(rows(table("\t\"1\"\t2\n\t\"3\"\t4\n", {.delimiter = '\t'})) == "nan 1 2; nan 3 4");
  CHECK(rows(table("1\t2\n\t\n5\t6\n", {.delimiter = '\t'})) == "1 2; nan nan; 5 6");
  CHECK(rows(table("1\t\t\n\t\t2\n", {.delimiter = '\t'})) == "1 nan nan; nan nan 2");
  CHECK(rows(table(" 1 \t\" 2 \" \n", {.delimiter = '\t'})) == "1 2");
  CHECK(rows(table("1,2\n,\n5,6\n")) == "1 2; nan nan; 5 6");
}

TEST_CASE("csv ends its lines with CR, LF or both, and may be aligned by blanks", "[io]") {
  CHECK(rows(table("1,2\r3,4\r")) == "1 2; 3 4");
  CHECK(rows(table("a,b\r1,2\r3,4", {.skip_rows = 1})) == "1 2; 3 4");
  CHECK(rows(table("1,2\r\n3,4\r\n\r\n5,6\n\r7,8")) == "1 2; 3 4; 5 6; 7 8");
  CHECK(refused("1,2\r3\r") == "line 2: 1 columns; there must be 2");
  CHECK(refused("1,2\r\n3\r\n") == "line 2: 1 columns; there must be 2");
  // Line ends of two bytes at every place of what is read at a time.
  for (int shift = 0; shift < 4; ++shift) {
    std::string text(static_cast<std::size_t>(shift), ' ');
    while (text.size() < 600000) text += "1\r\n";
    CHECK(table(text).shape() ==
          Shape{static_cast<std::int64_t>((text.size() - static_cast<std::size_t>(shift)) / 3), 1});
  }
  CHECK(rows(table(" 1  2\n 3\t 4 \n\n", {.delimiter = ' '})) == "1 2; 3 4");
  CHECK(rows(table("\"1\" 2\n3 \"4\"", {.delimiter = ' '})) == "1 2; 3 4");
  CHECK(rows(table("  a   b\n 10  20\n", {.delimiter = ' ', .columns = {"b"}})) == "20");
}

TEST_CASE("comments of csv begin outside of quotes, with a character of choice or none", "[io]") {
  CHECK(rows(table("1,\"2\"#3,\"\n4,5\n")) == "1 2; 4 5");
  CHECK(rows(table("a,b\n\"x#y\",2\n", {.columns = {"b"}})) == "2");
  CHECK(rows(table("#N/A,2\n3,4\n", {.comment = '\0'})) == "nan 2; 3 4");
  CHECK(rows(table("% from MATLAB\n1,2 % two\n", {.comment = '%'})) == "1 2");
  CHECK(refused("1\n", {.delimiter = ';', .comment = ';'}) ==
        "load_csv: delimiter is ';', which begins comments; {.comment = '\\0'} switches them off");
  CHECK(refused("1\n", {.comment = 'x'}) == "load_csv: comment is 'x'; it must not occur in numbers or end lines");
  CHECK(refused("1\n2,\"3\n4\n") == "line 2: a quote is not closed");
}

TEST_CASE("a number that is too large for an integer dtype is said to be so", "[io]") {
  CHECK(refused("9223372036854775808\n", {.dtype = int64}) ==
        "line 1, column 1: '9223372036854775808' does not fit int64");
  CHECK(refused("-99999999999999999999\n", {.dtype = int8}) ==
        "line 1, column 1: '-99999999999999999999' does not fit int8");
  CHECK(table("9223372036854775807\n", {.dtype = int64}).item<std::int64_t>() ==
        std::numeric_limits<std::int64_t>::max());
  CHECK(values<std::uint64_t>(table("18446744073709551615,-0,+7\n", {.dtype = uint64})) ==
        std::vector<std::uint64_t>{UINT64_MAX, 0, 7});
  CHECK(refused("18446744073709551616\n", {.dtype = uint64}) ==
        "line 1, column 1: '18446744073709551616' does not fit uint64");
  CHECK(refused("-1\n", {.dtype = uint64}) == "line 1, column 1: '-1' does not fit uint64");
  CHECK(refused("1\n--1\n", {.dtype = uint64}) == "line 2, column 1: '--1' is not an integer");
  CHECK(refused("-1\n", {.dtype = uint32}) == "line 1, column 1: -1 does not fit uint32");
}

TEST_CASE("a delimiter that occurs in numbers is refused by reader and writer", "[io]") {
  Folder folder;
  for (char c : std::string("eEinfatyINFxX0123456789+-.()\"")) {
    std::string said = "delimiter is '";
    said.append(1, c).append("'; it must not occur in numbers or end lines");
    CHECK(refused("1\n", {.delimiter = c}) == "load_csv: " + said);
    CHECK(error_of<ValueError>([&] {
            save_csv(folder / "x", K::ones({2, 2}), {.delimiter = c});
          }) == "save_csv: " + said);
  }
  for (char c : std::string(",;|\t :/&_~")) {
    save_csv(folder / "x", K::constant({{1e20, -1.5}, {INFINITY, 1e-7}}, "float64"), {.delimiter = c});
    CHECK(rows(load_csv(folder / "x", {.delimiter = c})) == "1e+20 -1.5; inf 1e-07");
  }
}

TEST_CASE("text in another encoding than one with ASCII in it is named", "[io]") {
  CHECK(refused(std::string("\xff\xfe"
                            "1\0,\0002\0",
                            8)) == "is UTF-16; it must be UTF-8 or another encoding that has ASCII in it");
}
