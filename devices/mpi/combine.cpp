// devices/mpi/combine.cpp - minimum and maximum of floats as MPI operations.
#include "devices/mpi/combine.h"

#include <bit>
#include <cstring>
#include <limits>

namespace kassette::mpi {
using namespace devices;
namespace {

template <class T, class Bits, bool kMax>
T pick(T a, T b) {
  if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
  if (a == b) {  // for +0 and -0 the sign bit decides
    const Bits x = std::bit_cast<Bits>(a), y = std::bit_cast<Bits>(b);
    return std::bit_cast<T>(static_cast<Bits>(kMax ? x & y : x | y));
  }
  return (a < b) == kMax ? b : a;
}

template <class T, class Bits, bool kMax>
void pick_all(void* in, void* inout, int* n, MPI_Datatype*) {
  const T* a = static_cast<const T*>(in);
  T* b = static_cast<T*>(inout);
  for (int i = 0; i < *n; ++i) b[i] = pick<T, Bits, kMax>(a[i], b[i]);
}

MPI_Op make(MPI_User_function* function) {
  MPI_Op op;
  MPI_Op_create(function, /*commute=*/1, &op);
  return op;
}

}  // namespace

MPI_Op op_for(DType dtype, Reduction how) {
  if (how == Reduction::sum || how == Reduction::mean) return MPI_SUM;
  if (how == Reduction::prod) return MPI_PROD;
  const bool max = how == Reduction::max;
  if (dtype.code() == DType::kFloat32) {
    static const MPI_Op least = make(pick_all<float, std::uint32_t, false>),
                        most = make(pick_all<float, std::uint32_t, true>);
    return max ? most : least;
  }
  if (dtype.code() == DType::kFloat64) {
    static const MPI_Op least = make(pick_all<double, std::uint64_t, false>),
                        most = make(pick_all<double, std::uint64_t, true>);
    return max ? most : least;
  }
  return max ? MPI_MAX : MPI_MIN;
}

}  // namespace kassette::mpi
