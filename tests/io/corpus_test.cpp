// tests/io/corpus_test.cpp - the files that the fuzzer found worth keeping, read again by every reader of their format.
#include "tests/fuzz/readers.h"
#include "tests/io/folder.h"

using namespace kassette;
using namespace kassette::test;

TEST_CASE("every file of the fuzzer's corpus is read or refused in one line", "[io][fuzz][serial]") {
  Folder folder;
  const std::string path = folder / "file";
  for (const Reader& reader : kReaders) {
    // Each file is an array of bytes.
    const NamedTensors corpus =
        load_npz((kSourceTree / "tests/data/fuzz" / (std::string(reader.format) + ".npz")).string());
    CHECK(corpus.size() >= 10);
    for (const NamedTensor& file : corpus) {
      INFO(reader.name << ", " << reader.format << ".npz, " << file.name);
      const auto bytes = file.tensor.to_vector<std::uint8_t>();
      write_file(path, std::string(bytes.begin(), bytes.end()));
      CHECK(fault(reader, path, bytes.size()) == "");
    }
  }
}
