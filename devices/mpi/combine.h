// devices/mpi/combine.h - how MPI combines elements.
#pragma once
#include <mpi.h>

#include "devices/transport.h"

namespace kassette {

/// MPI's own operation, or, for the minimum and maximum of floats, one whose result does not depend on the order of the ranks:
/// NaN where one element is, and -0 below +0.
MPI_Op op_for(DType dtype, Combine how);

}  // namespace kassette
