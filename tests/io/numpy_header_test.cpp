// tests/io/numpy_header_test.cpp - headers of npy files, as the specification of the format demands them and as Python
// reads them.
#include <kassette/backend.h>
#include <kassette/io.h>

#include <string>

#include "tests/catch.h"
#include "tests/io/folder.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

TEST_CASE("an npy header of any length ends in a newline, at a multiple of 64 bytes") {
  Folder folder;
  std::int64_t dim = 1;
  for (int digits = 1; digits <= 16; ++digits, dim *= 10) {
    for (int ones = 0; ones < 6; ++ones) {
      std::vector<std::int64_t> dims{0, dim};
      for (int i = 0; i < ones; ++i) dims.push_back(1);
      std::string path = folder / "x.npy";
      Tensor none = K::zeros(dims, int8);
      save_npy(path, none);
      std::string bytes = text_of(path);
      REQUIRE(bytes.size() >= 64);
      std::size_t length = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
      INFO(bytes.substr(10));
      CHECK((10 + length) % 64 == 0);
      CHECK(bytes.size() == 10 + length);
      CHECK(bytes[9 + length] == '\n');
      CHECK(bytes.find('}') < 9 + length);
      CHECK(load_npy(path).ndim() == 2 + ones);
    }
  }
}

TEST_CASE("an npy header may have spaces wherever Python's literals may") {
  Folder folder;
  for (const char* dict : {"{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
                           "{ 'descr' : '<f4' , 'fortran_order' : False , 'shape' : ( 2 , 3 , ) , }",
                           "{'shape': (  2,   3), 'fortran_order': False, 'descr': '<f4'}"}) {
    std::string header = dict;
    header.resize(117, ' ');
    header += '\n';
    std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
    const float v[6] = {1, 2, 3, 4, 5, 6};
    bytes.append(reinterpret_cast<const char*>(v), sizeof v);
    std::string path = folder / "x.npy";
    write_file(path, bytes);
    INFO(dict);
    Tensor x = load_npy(path);
    CHECK(x.shape() == Shape{2, 3});
    CHECK(values(x) == std::vector<double>{1, 2, 3, 4, 5, 6});
  }
}
