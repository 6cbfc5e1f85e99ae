// nn_backend/inspect/describe.cpp - describe(): a summary of a tensor in four lines.
#include <kassette/inspect.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "core/io/file.h"
#include "core/print/decimal.h"
#include "core/sparse.h"
#include "devices/bytes_text.h"
#include "nn_backend/inspect/tensor_to_inspect.h"
#include "nn_backend/inspect/summary.h"
#include "nn_backend/inspect/terminal.h"

namespace kassette {
using namespace inspect;
using namespace ops;
namespace {

std::string six_digits(double v) { return general_text(v, 6); }
std::string extreme(double v, std::int64_t integer, DType dtype) {
  return dtype.is_bool()      ? (integer ? "True" : "False")
         : dtype.is_integer() ? integer_text(integer, dtype)
                              : scalar_text(v, dtype);
}

std::string bars(const Description& d, bool unicode) {
  constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr const char* kSigns[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
  std::int64_t most = *std::max_element(d.bins, d.bins + Description::kBins);
  std::string s;
  for (std::int64_t n : d.bins) {
    // A bin that is not empty is always visible.
    auto height = n ? std::max(1, static_cast<int>(8 * static_cast<double>(n) / static_cast<double>(most) + 0.5)) : 0;
    s += (unicode ? kBlocks : kSigns)[height];
  }
  return s;
}

}  // namespace

Tensor inspect::tensor_to_inspect(const Operand& x, const At& at) {
  DType own = Access::kind(x) >= Scalar::kArray ? Access::dtype(x) : DType();
  Tensor t = as_tensor(x, own, at);
  if (!t.defined()) fail_empty(at);
  return t;
}

Description describe(const Operand& x) {
  Tensor t = tensor_to_inspect(x, {"describe", "x"});
  const TensorDesc& b = Access::desc(t);
  Description d;
  d.shape = t.shape();
  d.dtype = b.dtype;
  d.device = b.device;
  d.sparse = is_sparse(b);
  if (b.flags & kForeign) d.without = "of another backend";
  else if (b.symbolic()) d.without = "symbolic";
  if (d.without) return d;
  io::Source source({"describe", "x"}, d.sparse ? sparse_part(t, kValues) : t);
  const TensorSpec& spec = source.spec();
  Summary s = summarize(spec, source.data());
  d.size = spec.numel();
  d.bytes = spec.bytes() + (d.sparse ? d.size * b.rank * 8 : 0);
  d.nan = s.nan;
  d.inf = s.inf;
  d.zeros = s.zeros;
  if (s.finite == 0) {
    d.min = d.max = d.mean = d.std = NAN;
    return d;
  }
  d.min = s.min;
  d.max = s.max;
  d.int_min = static_cast<std::int64_t>(s.int_min);
  d.int_max = static_cast<std::int64_t>(s.int_max);
  d.mean = static_cast<double>(s.mean);
  d.std = static_cast<double>(std::sqrt(s.squares / static_cast<long double>(s.finite)));
  std::vector<std::int64_t> bins = count_bins(spec, source.data(), d.min, d.max, Description::kBins);
  std::copy(bins.begin(), bins.end(), d.bins);
  return d;
}

static std::string description_text(const Description& d) {
  PlainStream os;
  os << d.shape << ' ' << d.dtype << ' ' << d.device;
  if (d.sparse) os << ", sparse";
  if (d.without) {
    os << ", " << d.without << ": no elements yet";
    return os.str();
  }
  os << ", " << d.size
     << (d.sparse      ? d.size == 1 ? " entry, " : " entries, "
         : d.size == 1 ? " element, "
                       : " elements, ")
     << devices::bytes_text(d.bytes);
  if (d.size == 0) return os.str();
  os << '\n';
  std::int64_t finite = d.size - d.nan - d.inf;
  if (finite)
    os << "min " << extreme(d.min, d.int_min, d.dtype) << "  max " << extreme(d.max, d.int_max, d.dtype) << "  mean "
       << six_digits(d.mean) << "  std " << six_digits(d.std) << '\n';
  os << "zeros " << d.zeros;
  if (d.dtype.is_float() || !d.dtype.given()) os << "  NaN " << d.nan << "  inf " << d.inf;
  if (finite && d.min < d.max) {
    bool unicode = terminal(STDOUT_FILENO).unicode;
    os << '\n'
       << six_digits(d.min) << ' ' << (unicode ? "▕" : "|") << bars(d, unicode) << (unicode ? "▏" : "|") << ' '
       << six_digits(d.max);
  }
  return os.str();
}
std::ostream& operator<<(std::ostream& os, const Description& d) { return os << description_text(d); }

}  // namespace kassette
