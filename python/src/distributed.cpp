// python/src/distributed.cpp - collectives for Python: on tensors they are recorded, on arrays they run at once.
#include <kassette/distributed.h>

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "convert.h"

namespace kassette {
namespace python {
namespace {

using nb::arg;
namespace D = distributed;
using MaybeWorld = std::optional<D::World>;

D::World world_of(const MaybeWorld& world) {
  if (world) return *world;
  Computing now;  // the first call starts MPI, and waits for the other ranks
  return D::World();
}

constexpr const char* kReductions[] = {"sum", "mean", "max", "min", "prod"};  // in the order of D::Reduction

D::Reduction reduction_of(const char* function, const Label& how) {
  for (int i = 0; i < 5; ++i)
    if (how.text() == kReductions[i]) return static_cast<D::Reduction>(i);
  throw ValueError(function, "how", ("is '" + std::string(how.text()) + "'").c_str(),
                   "it must be sum, mean, max, min or prod");
}

/// The value of an array, a number or a list of numbers, in its own dtype: numbers are NumPy's.
Tensor value_of(const char* function, nb::handle x) {
  if (x.is_none()) throw TypeError(function, "x", "is None", "it must be a tensor, a number or an array");
  try {
    return from_numpy(nb::module_::import_("numpy").attr("asarray")(x));
  } catch (const TypeError& e) {
    throw TypeError(function, e.argument(), e.given(), e.expected(), e.remedy());
  } catch (const ValueError& e) {
    throw ValueError(function, e.argument(), e.given(), e.expected(), e.remedy());
  }
}

/// Calls exchange() eagerly, without the GIL.
template <class F>
auto at_once(F exchange) {
  K::Scope eager(K::Scope::kEager);
  Computing now;
  return exchange();
}

/// Applies f. Of a tensor the result is recorded; of an array it is computed, and an array.
template <class F>
nb::object of_one(const char* function, nb::handle x, F f) {
  if (const Tensor* t = tensor_of(x)) {
    Recorded on;
    return to_python(f(*t));
  }
  const Tensor value = value_of(function, x);
  return to_numpy(at_once([&] { return K::eval(f(value)); }));
}

bool is_list(nb::handle x) { return PyList_Check(x.ptr()) || PyTuple_Check(x.ptr()); }

/// The same of each in a list: f takes and returns Tensors.
template <class F>
nb::object of_list(const char* function, nb::handle list, F f) {
  for (nb::handle x : nb::iter(list))
    if (tensor_of(x)) {
      const Tensors all = to_tensors(list, function);
      Recorded on;
      return to_list(f(all));
    }
  Tensors values;
  for (nb::handle x : nb::iter(list)) values.push_back(value_of(function, x));
  const Tensors results = at_once([&] { return f(values); });
  nb::list arrays;
  for (const Tensor& t : results) arrays.append(to_numpy(t));
  return arrays;
}

template <class F>
nb::object of_any(const char* function, nb::handle x, F f) {
  if (is_list(x)) return of_list(function, x, f);
  return of_one(function, x, [&](const Tensor& t) { return f(Tensors{t})[0]; });
}

// ---- broadcast: variables take the value at once --------------------------------------------------------------------

/// The variables that were given; throws where they are mixed with others.
Tensors variables_of(nb::handle x) {
  Tensors variables;
  std::size_t others = 0;
  auto look = [&](nb::handle item) {
    const Tensor* t = tensor_of(item);
    if (t && K::is_variable(*t)) variables.push_back(*t);
    else ++others;
  };
  if (!is_list(x)) look(x);
  else
    for (nb::handle item : nb::iter(x)) look(item);
  if (!variables.empty() && others)
    throw ValueError("broadcast", "", "variables, which take the value at once, and others in one list");
  return variables;
}

nb::object broadcast(nb::handle x, int root, const MaybeWorld& world) {
  const D::World w = world_of(world);
  const Tensors variables = variables_of(x);
  if (variables.empty()) return of_any("broadcast", x, [&](const Tensors& xs) { return D::broadcast(xs, root, w); });
  at_once([&] { return D::broadcast(variables, root, w); });
  return nb::borrow(x);
}

// ---- messages, rows, files ------------------------------------------------------------------------------------------

nb::object send(nb::handle x, int to, const MaybeWorld& world) {
  const D::World w = world_of(world);
  if (const Tensor* t = tensor_of(x)) {
    Recorded on;
    return to_python(D::send(*t, to, w));
  }
  const Tensor value = value_of("send", x);
  at_once([&] { return D::send(value, to, w); });
  return nb::none();
}

nb::object shard(nb::handle x, const MaybeWorld& world) {
  const D::World w = world_of(world);
  if (const Tensor* t = tensor_of(x)) {
    Recorded on;
    return to_python(D::shard(*t, w));
  }
  // Sliced by its own class: of an array that is mapped only these rows are read.
  if (nb::hasattr(x, "ndim") && nb::cast<int>(x.attr("ndim")) == 0)
    throw ValueError("shard", "x", "is a scalar, which has no rows");
  if (!nb::hasattr(x, "__len__") || !nb::hasattr(x, "__getitem__"))
    throw TypeError("shard", "x", ("is " + type_of(x)).c_str(), "it must be a tensor, an array or a list");
  const auto n = static_cast<std::int64_t>(nb::len(x));
  const std::int64_t ranks = w.size(), rank = w.rank(), rows = n / ranks, rest = n % ranks;
  const std::int64_t begin = rank * rows + std::min(rank, rest), end = begin + rows + (rank < rest);
  return x[nb::slice(nb::int_(begin), nb::int_(end), nb::none())];
}

NamedTensors named(const char* function, nb::handle values) {
  NamedTensors list;
  if (values.is_none()) return list;
  if (!PyDict_Check(values.ptr()))
    throw TypeError(function, "", type_of(values).c_str(), "it must be a dict of names and tensors");
  for (auto [name, value] : nb::borrow<nb::dict>(values)) {
    Label label;
    label.set(name);
    const Tensor* t = tensor_of(value);
    list.set(label.name(), t ? K::eval(*t) : value_of(function, value));
  }
  return list;
}

std::string path_of(nb::handle path) {
  Label text;
  text.set(nb::module_::import_("os").attr("fspath")(path));
  return text.text();
}

}  // namespace

void bind_distributed(nb::module_& parent) {
  nb::module_ m = parent.def_submodule("distributed");
  nb::class_<D::World>(m, "World",
                       "A group of ranks: processes that run the same program. World() is all ranks of the job.")
      .def(nb::new_([] { return world_of(std::nullopt); }))
      .def_prop_ro("rank", &D::World::rank, "This process among them, from 0 on.")
      .def_prop_ro("size", &D::World::size, "How many ranks there are.")
      .def_prop_ro("local_rank", &D::World::local_rank,
                   "This process among the ranks of its machine: which GPU is its own.")
      .def(
          "split",
          [](const D::World& w, int colour, int key) {
            Computing now;
            return w.split(colour, key);
          },
          arg("colour"), arg("key") = 0,
          "The World of the ranks that give the same colour, ordered by key, then by rank. All ranks of this world call it.\n"
          "ValueError for a colour below 0.")
      .def(
          "barrier",
          [](const D::World& w) {
            Computing now;
            w.barrier();
          },
          "Returns when all ranks have called it.")
      .def(nb::self == nb::self)
      .def("__repr__", [](const D::World& w) {
        std::ostringstream os;
        os << w;
        return nb::str(os.str().c_str());
      });

  m.def(
      "init", [] { return world_of(std::nullopt); },
      "All ranks of the job, a World: those that mpirun started, or this process alone. The first call starts MPI, which ends with the\n"
      "program. RuntimeError where several ranks were started and MPI is not there.");
  m.def(
      "all_reduce",
      [](nb::handle x, const Label& how, const MaybeWorld& world) {
        const D::World w = world_of(world);
        const D::Reduction r = reduction_of("all_reduce", how);
        return of_any("all_reduce", x, [&](const Tensors& xs) { return D::all_reduce(xs, r, w); });
      },
      arg("x"), arg("how") = "sum", arg("world") = nb::none(),
      "The sum, mean, max, min or prod of every rank's x, which has one shape and dtype everywhere; the same bits on all ranks. A list or\n"
      "tuple gives a list, exchanged in few messages. Differentiable: the loss is the sum of all ranks' losses. RuntimeError on all ranks\n"
      "where their calls differ, TypeError for the mean of integers and the sum of bool.");
  m.def(
      "broadcast", &broadcast, arg("x"), arg("root") = 0, arg("world") = nb::none(),
      "Rank root's x, on all ranks; of a list or tuple a list. Variables take that value at once, as by K.set_value, and what was given is\n"
      "returned; ValueError for a list of variables and others. Of other tensors it is differentiable: the gradient arrives at root.");
  m.def(
      "all_gather",
      [](nb::handle x, const MaybeWorld& world) {
        const D::World w = world_of(world);
        return of_one("all_gather", x, [&](const Tensor& t) { return D::all_gather(t, w); });
      },
      arg("x"), arg("world") = nb::none(),
      "The rows of all ranks, in the order of ranks, along the first axis; how many rows a rank gives is its own affair. Scalars make a\n"
      "vector. Differentiable.");
  m.def(
      "reduce_scatter",
      [](nb::handle x, const Label& how, const MaybeWorld& world) {
        const D::World w = world_of(world);
        const D::Reduction r = reduction_of("reduce_scatter", how);
        return of_one("reduce_scatter", x, [&](const Tensor& t) { return D::reduce_scatter(t, r, w); });
      },
      arg("x"), arg("how") = "sum", arg("world") = nb::none(),
      "shard(all_reduce(x, how)), without the whole of it on any rank. Differentiable.");
  m.def(
      "all_to_all",
      [](nb::handle x, const MaybeWorld& world) {
        const D::World w = world_of(world);
        return of_one("all_to_all", x, [&](const Tensor& t) { return D::all_to_all(t, w); });
      },
      arg("x"), arg("world") = nb::none(),
      "The first axis cut into one part for each rank: this rank gets its part of everybody's x, in the order of ranks. ValueError where\n"
      "the ranks do not divide the rows. Differentiable.");
  m.def(
      "send", &send, arg("x"), arg("to"), arg("world") = nb::none(),
      "Sends x to a rank, and returns at once: None for an array. Of a tensor it gives a scalar that stands for the message, which leaves\n"
      "when that is computed: it must be among the outputs of a function. Its gradient with respect to x is what rank `to` sends back.");
  m.def(
      "recv",
      [](nb::handle like, int from, const MaybeWorld& world) {
        const D::World w = world_of(world);
        return of_one("recv", like, [&](const Tensor& t) { return D::recv(t, from, w); });
      },
      arg("like"), arg("from_"), arg("world") = nb::none(),
      "Waits for what rank from_ sends, which has the shape and dtype of `like`; ValueError where it has not. Where the tensor `like` is\n"
      "among the variables of a gradient, the gradient with respect to what was received is sent back, and that of `like` is zeros.");
  m.def(
      "shard", &shard, arg("x"), arg("world") = nb::none(),
      "This rank's rows of x: each rank has the same number, the first ones one more where a remainder is to be spread. Arrays, lists and\n"
      "whatever else has a length are sliced: of an array in a file, numpy.load(path, mmap_mode=\"r\"), only these rows are read. Of tensors\n"
      "it is differentiable. ValueError for a scalar.");
  m.def(
      "gradients",
      [](const Tensors& losses, const Tensors& variables, const Label& how, std::int64_t bucket_bytes, bool overlap,
         const MaybeWorld& world) {
        const D::World w = world_of(world);
        const D::Reduction r = reduction_of("gradients", how);
        if (losses.empty()) throw ValueError("gradients", "loss", "is an empty list");
        Recorded on;
        Tensor total = losses[0];
        if (losses.size() > 1) {
          total = K::sum(losses[0]);
          for (std::int64_t i = 1; i < losses.size(); ++i) total = total + K::sum(losses[i]);
        }
        D::GradientOptions options;
        options.bucket_bytes = bucket_bytes;
        options.overlap = overlap;
        return D::gradients(total, variables, r, options, w);
      },
      arg("loss"), arg("variables"), arg("how") = "sum", arg("bucket_bytes") = 1 << 20, arg("overlap") = true,
      arg("world") = nb::none(),
      "K.gradients(loss, variables), each added up or, with how=\"mean\", averaged over the ranks: a list, with None for a variable that the\n"
      "loss does not depend on. Gradients travel in messages of bucket_bytes; with overlap, while the backward pass goes on. The bits are\n"
      "the same without.");
  m.def(
      "save",
      [](nb::handle path, nb::handle tensors, nb::handle shards, const MaybeWorld& world) {
        const D::World w = world_of(world);
        const std::string file = path_of(path);
        const NamedTensors whole = named("save: tensors", tensors), parts = named("save: shards", shards);
        at_once([&] { return D::save(file, whole, parts, w), 0; });
      },
      arg("path"), arg("tensors"), arg("shards") = nb::none(), arg("world") = nb::none(),
      "Writes a checkpoint in the format of safetensors, of dicts of names and tensors or arrays: of `tensors` those of rank 0, of `shards`,\n"
      "whose rows are spread over the ranks, every rank's to a file of its own beside it (\"model-00001-of-00004.safetensors\"). All ranks\n"
      "call it; what fails on one of them is an error on all. ValueError for a scalar among the shards and a name given twice.");
  m.def(
      "load",
      [](nb::handle path, const MaybeWorld& world) {
        const D::World w = world_of(world);
        const std::string file = path_of(path);
        const NamedTensors loaded = at_once([&] { return D::load(file, {}, w); });
        nb::dict arrays;
        for (const NamedTensor& t : loaded) arrays[t.name] = to_numpy(t.tensor);
        return arrays;
      },
      arg("path"), arg("world") = nb::none(),
      "The tensors and the shards of a checkpoint, a dict of names and arrays; bfloat16 comes as float32. All ranks call it. Of a shard each\n"
      "rank gets the rows that it saved or, where the number of ranks has changed, those that shard gives of the whole. ValueError where a\n"
      "file of shards is missing or belongs to another checkpoint.");
  m.def(
      "set_timeout", &D::set_timeout, arg("seconds"),
      "How many seconds a rank waits for others before it ends the job with a line that says where it waits; 0: for ever. At the start\n"
      "what KASSETTE_RANKS_TIMEOUT says, else 600.");
  explain_arguments(m);
}

}  // namespace python
}  // namespace kassette
