// nn_backend/prompt/table.cpp - tensors and their descriptions as tables in HTML.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/convert.h"
#include "core/io/file.h"
#include "core/print/decimal.h"
#include "core/sparse.h"
#include "core/text.h"
#include "nn_backend/prompt/front_end.h"

namespace kassette::repl {
namespace {

// Of each axis at most kRows or kColumns elements are shown, and of the matrices of a tensor of higher rank kMatrices:
// half of them from each end.
constexpr std::int64_t kRows = 12, kColumns = 12, kMatrices = 4;

/// The indices shown of n; -1 stands for those that are left out.
std::vector<std::int64_t> shown_of(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < n; ++i) {
    if (n > most && i == most / 2) {
      out.push_back(-1);
      i = n - most / 2;
    }
    out.push_back(i);
  }
  return out;
}

std::string six_digits(double v) { return general_text(v, 6); }

template <class T>
std::string cell_of(T v, DType dtype) {
  if constexpr (std::is_integral_v<T>) return dtype.is_bool() ? (v ? "True" : "False") : std::to_string(v);
  const auto x = convert_one<double>(v);
  return std::isnan(x) ? "nan" : six_digits(x);  // of a NaN some have a sign
}

constexpr const char* kCell = "<td style=\"text-align:right\">";
constexpr const char* kHead = "<th style=\"text-align:right;font-weight:normal;opacity:0.6\">";

/// A matrix with the numbers of its rows and columns; a vector is a row without a number.
template <class T>
void add_matrix(std::string& to, const T* data, std::int64_t rows, std::int64_t columns, DType dtype, bool vector) {
  const std::vector<std::int64_t> js = shown_of(columns, kColumns);
  to += "<table><tr>";
  if (!vector) to += std::string(kHead) + "</th>";
  for (std::int64_t j : js) to += kHead + (j < 0 ? "…" : std::to_string(j)) + "</th>";
  to += "</tr>";
  for (std::int64_t i : shown_of(rows, kRows)) {
    to += "<tr>";
    if (!vector) to += kHead + (i < 0 ? "⋮" : std::to_string(i)) + "</th>";
    for (std::int64_t j : js) {
      to += kCell;
      if (i < 0) to += j < 0 ? "⋱" : "⋮";
      else to += j < 0 ? "…" : cell_of(data[i * columns + j], dtype);
      to += "</td>";
    }
    to += "</tr>";
  }
  to += "</table>";
}

/// "x[2, 0, …]": the place of matrix k.
std::string place_of(std::int64_t k, const TensorSpec& spec) {
  std::string out;
  for (int axis = spec.rank - 3; axis >= 0; --axis) {
    out = std::to_string(k % spec.dims[axis]) + ", " + out;
    k /= spec.dims[axis];
  }
  return "[" + out + "…]";
}

template <class T>
void add_matrices(std::string& to, const T* data, const TensorSpec& spec) {
  if (spec.rank < 2) return add_matrix(to, data, 1, spec.numel(), spec.dtype, /*vector=*/true);
  const std::int64_t rows = spec.dims[spec.rank - 2], columns = spec.dims[spec.rank - 1];
  for (std::int64_t k : shown_of(spec.numel() / (rows * columns), kMatrices)) {
    if (k < 0) {
      to += "<div>⋮</div>";
      continue;
    }
    if (spec.rank > 2) to += "<div style=\"opacity:0.6\">" + place_of(k, spec) + "</div>";
    add_matrix(to, data + k * rows * columns, rows, columns, spec.dtype, /*vector=*/false);
  }
}

}  // namespace

void add_rich(const Tensor& x, Forms& forms) {
  if (!x.defined()) return;
  const TensorDesc& d = Access::desc(x);
  // Text says as much of a number, and of what has no elements.
  if ((d.flags & (kForeign | kSparse)) || d.symbolic() || d.rank == 0 || d.numel() == 0) return;
  const io::Source source({"display", "x"}, x);
  std::string html;
  dispatch(source.spec().dtype, [&](auto* null) {
    using T = std::remove_pointer_t<decltype(null)>;
    add_matrices(html, reinterpret_cast<const T*>(source.data()), source.spec());
  });
  html += "<div style=\"opacity:0.6\">" + text(x.shape(), ' ', d.dtype, ' ', d.device) + "</div>";
  forms.add("text/html", std::move(html));
}

void add_rich(const Description& d, Forms& forms) {
  if (d.without) return;
  std::string html = "<table>";
  auto row = [&](const char* name, const std::string& value) {
    html += std::string("<tr><th style=\"text-align:left\">") + name + "</th>" + kCell + value + "</td></tr>";
  };
  row("shape", text(d.shape));
  row("dtype", text(d.dtype));
  row("device", text(d.device));
  row(d.sparse ? "entries" : "elements", std::to_string(d.size));
  const std::int64_t finite = d.size - d.nan - d.inf;
  if (finite > 0) {
    const bool whole = d.dtype.is_integer();
    row("min", whole ? integer_text(d.int_min, d.dtype) : six_digits(d.min));
    row("max", whole ? integer_text(d.int_max, d.dtype) : six_digits(d.max));
    row("mean", six_digits(d.mean));
    row("std", six_digits(d.std));
  }
  row("zeros", std::to_string(d.zeros));
  row("NaN", std::to_string(d.nan));
  row("inf", std::to_string(d.inf));
  html += "</table>";
  if (finite > 0 && d.min < d.max) {
    constexpr int kWidth = 6, kHeight = 60;
    const double most = static_cast<double>(*std::max_element(d.bins, d.bins + Description::kBins));
    html += text("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth * Description::kBins, "\" height=\"",
                 kHeight + 16, "\" font-size=\"11\" fill=\"currentColor\">");
    for (int i = 0; i < Description::kBins; ++i) {
      const double n = static_cast<double>(d.bins[i]), height = n > 0 ? std::max(1.0, kHeight * n / most) : 0;
      html += text("<rect x=\"", i * kWidth, "\" y=\"", fixed_text(kHeight - height, 1), "\" width=\"", kWidth - 1,
                   "\" height=\"", fixed_text(height, 1), "\" fill=\"#0072b2\"/>");
    }
    html += text("<text x=\"0\" y=\"", kHeight + 13, "\">", six_digits(d.min), "</text><text x=\"",
                 kWidth * Description::kBins, "\" y=\"", kHeight + 13, "\" text-anchor=\"end\">", six_digits(d.max),
                 "</text></svg>");
  }
  forms.add("text/html", std::move(html));
}

}  // namespace kassette::repl
