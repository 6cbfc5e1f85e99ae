// tests/io/written_test.cpp - the files that tests/data/files/make.py --check reads with NumPy, safetensors and Pillow.
#include <kassette/io.h>

#include <cstdlib>

#include "tests/io/folder.h"

namespace K = kassette::backend;
using namespace kassette;
using namespace kassette::test;

// Hidden: tests/scripts/files.sh says where to.
TEST_CASE("files for others to read", "[.write_files]") {
  const char* variable = std::getenv("KASSETTE_FILES");
  REQUIRE(variable);
  std::string folder = std::string(variable) + '/';
  NamedTensors all;
  for (DType dtype : kNumpyDTypes)
    for (const NamedShape& shape : kShapes) {
      Tensor x = array(dtype, shape.dims);
      std::string name = std::string(dtype.name()) + '-' + shape.name;
      all.set(std::string(dtype.name()) + '/' + shape.name, x);
      save_npy(folder + name + "-c.npy", x);
      save_npy(folder + name + "-fortran.npy", x, {.fortran_order = true});
      save_npy(folder + name + "-big.npy", x, {.big_endian = true});
      save_npy(folder + name + "-both.npy", x, {.fortran_order = true, .big_endian = true});
    }
  save_npz(folder + "ours.npz", all);
  save_npz(folder + "ours_deflated.npz", all, {.compress = true});
  save_npy(folder + "bfloat16.npy", array(bfloat16, {2, 3}));
  save_csv(folder + "ours.csv", array(float64, {2, 3}), {.header = "a,b,c"});
  all.set_metadata("format", "kassette");
  all.set_metadata("title", "ÄÖ \"quoted\" \\ \n");
  save_safetensors(folder + "ours.safetensors", all);
  for (int channels : {1, 2, 3, 4}) {
    std::vector<int> v;
    for (int i = 0; i < 35 * channels; ++i)
      v.push_back((i / channels / 7 * 53 + i / channels % 7 * 29 + i % channels * 71) % 256);
    save_png(folder + "ours_" + std::to_string(channels) + ".png", K::constant(v, uint8, {5, 7, channels}));
  }
}
