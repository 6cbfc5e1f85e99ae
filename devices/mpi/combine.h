// devices/mpi/combine.h - the MPI operation for a Reduction.
#pragma once
#include <mpi.h>

#include "devices/transport.h"

namespace kassette::mpi {

/// MPI's own operation; for the minimum and maximum of floats one of ours, whose result does not depend on the order of
/// the ranks: NaN if any element is, and -0 is less than +0.
MPI_Op op_for(DType dtype, devices::Reduction how);

}  // namespace kassette::mpi
