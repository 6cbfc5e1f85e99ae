// tests/ranks/checkpoint_test.cpp - checkpoints of several ranks.
#include <kassette/io.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/ranks/ranks.h"

namespace kassette::test {
namespace {

/// A path that all ranks share; rank 0 creates its folder and removes it.
class SharedFolder {
 public:
  SharedFolder() {
    const D::World world;
    if (world.rank() == 0) {
      std::string made = (std::filesystem::temp_directory_path() / "kassette-ranks-XXXXXX").string();
      REQUIRE(mkdtemp(made.data()) != nullptr);
      path_ = made;
    }
    const Tensor length = D::broadcast(K::constant(static_cast<double>(path_.size()), int32));
    std::vector<double> letters(static_cast<std::size_t>(length.item<int>()), 0.0);
    for (std::size_t i = 0; world.rank() == 0 && i < letters.size(); ++i) letters[i] = path_[i];
    path_.clear();
    for (double c : numbers(D::broadcast(K::constant(letters, float64)))) path_ += static_cast<char>(c);
  }
  ~SharedFolder() {
    if (D::World().rank() == 0) std::filesystem::remove_all(path_);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("a checkpoint is rank 0's tensors and every rank's rows", "[ranks][checkpoint]") {
  const D::World world;
  const SharedFolder folder;
  const std::string path = folder / "model.v2.safetensors";
  const Tensor whole = K::reshape(K::arange(7 * 3, None, 1, "float32"), {7, 3}),
               halves = K::cast(K::arange(9), "bfloat16");
  const Tensor bias = K::constant({1. + world.rank(), 2.});
  D::save(path, {{"bias", bias}, {"step", K::constant(3, int64)}}, {{"w", D::shard(whole)}, {"h", D::shard(halves)}});
  if (world.rank() == 0) {
    char name[64];
    std::snprintf(name, sizeof name, "model.v2-00001-of-%05d.safetensors", world.size());
    CHECK(std::filesystem::exists(folder / name));
    CHECK(numbers(load_safetensors(path)["bias"]) == std::vector<double>{1, 2});
  }
  for (const bool mmap : {false, true}) {
    const NamedTensors loaded = D::load(path, {.mmap = mmap});
    CHECK(numbers(loaded["bias"]) == std::vector<double>{1, 2});  // of rank 0
    CHECK(loaded["step"].item<std::int64_t>() == 3);
    CHECK(loaded["w"].dtype() == float32);
    CHECK(numbers(loaded["w"]) == numbers(D::shard(whole)));
    CHECK(loaded["h"].dtype() == bfloat16);
    CHECK(numbers(loaded["h"]) == numbers(D::shard(halves)));
  }
  // A world of another size: the ranks with even and with odd numbers apart, and each alone.
  for (const int colour : {world.rank() % 2, world.rank()}) {
    const D::World part = world.split(colour);
    const NamedTensors loaded = D::load(path, {}, part);
    CHECK(loaded["w"].shape()[1] == 3);
    CHECK(numbers(loaded["w"]) == numbers(D::shard(whole, part)));
    CHECK(numbers(loaded["h"]) == numbers(D::shard(halves, part)));
  }
  world.barrier();
  // More ranks than there were: all of them read what the first alone has saved.
  const D::World alone = world.split(world.rank());
  const std::string own = folder / "own";
  if (world.rank() == 0) D::save(own, None, {{"w", whole}}, alone);
  world.barrier();
  CHECK(numbers(D::load(own)["w"]) == numbers(D::shard(whole)));
  CHECK(numbers(D::load(own, {}, alone)["w"]) == numbers(whole));
  world.barrier();
}

TEST_CASE("a checkpoint without shards, and rows in another number on each rank", "[ranks][checkpoint]") {
  const D::World world;
  const SharedFolder folder;
  D::save(folder / "plain", {{"x", K::constant({1., 2.})}});
  CHECK(numbers(D::load(folder / "plain")["x"]) == std::vector<double>{1, 2});
  D::save(folder / "ragged", None, {{"x", tensor_of(world.rank(), {world.rank(), 2}, int32)}});  // rank 0 has none
  CHECK(numbers(D::load(folder / "ragged")["x"]) == numbers(tensor_of(world.rank(), {world.rank(), 2}, int32)));
  const Tensor all = D::all_gather(tensor_of(world.rank(), {world.rank(), 2}, int32));
  world.barrier();
  const D::World alone = world.split(world.rank());
  if (world.size() > 1) CHECK(numbers(D::load(folder / "ragged", {}, alone)["x"]) == numbers(all));
  world.barrier();
}

TEST_CASE("what fails on one rank of a checkpoint fails on all", "[ranks][checkpoint][bad]") {
  const D::World world;
  const SharedFolder folder;
  const std::string path = folder / "model";
  const Tensor x = K::ones({4, 2});
  CHECK(message_of([&] {
          D::save(path, None, {{"x", K::constant(1)}});
        }).find("save: shards holds 'x', a scalar, which has no rows") != std::string::npos);
  CHECK(message_of([&] {
          D::save(path, {{"x", x}}, {{"x", x}});
        }).find("save: shards holds 'x', which is among the tensors too") != std::string::npos);
  CHECK(message_of([&] { D::load(path); }).find("model") != std::string::npos);
  CHECK(message_of([&] { D::save(folder / "none/model", {{"x", x}}); }) != "");
  CHECK(message_of([&] { D::save(folder / (world.rank() == 0 ? "none/model" : "model"), None, {{"x", x}}); }) != "");
  CHECK_FALSE(std::filesystem::exists(path));
  D::save(path, None, {{"x", x}});
  D::save(folder / "other", None, {{"x", x}});
  world.barrier();
  char name[48];
  std::snprintf(name, sizeof name, "-00001-of-%05d", world.size());
  if (world.rank() == 0)
    std::filesystem::copy_file((folder / "other") + name, path + name,
                               std::filesystem::copy_options::overwrite_existing);
  world.barrier();
  CHECK(message_of([&] { D::load(path); }).find("is of another checkpoint") != std::string::npos);
  if (world.rank() == 0) std::filesystem::remove((folder / "other") + name);
  world.barrier();
  CHECK(message_of([&] { D::load(folder / "other"); }) != "");
  CHECK(numbers(D::all_reduce(K::constant(1, int32)))[0] == world.size());
  world.barrier();
}

}  // namespace kassette::test
