// ops/ctc/ctc_decode.cu - CTC decoding of scores that are on a CUDA device.
#include <cstring>
#include <iterator>
#include <vector>

#include "ops/elementwise/elementwise.cuh"

namespace kassette::cuda {
namespace {

// Note [Decoding on the host]
// The host must know the length of the longest label, which is a size of the result, before the call returns. So
// decoding waits for the device in any case, and the search runs on the host: its order and ties depend on the last
// bits of logarithms, which differ between a device and the CPU. The scores are copied to the host once, and the
// results back to the device.
void run_on_host(const OpCall& call) {
  CudaDevice& device = device_of(call.device);
  std::vector<std::byte> held[2];
  InputView in[2];
  for (int i = 0; i < 2; ++i) {
    held[i].resize(call.spec(i).bytes());
    if (!held[i].empty()) device.copy_to_host(held[i].data(), call.in[i].data, call.spec(i).bytes());
    in[i] = {call.in[i].desc, held[i].data()};
  }
  host_services().allocate_output(*call.out[call.n_out - 1], cpu);  // the scores; the kernel allocates the labels
  call.op.cpu(OpCall{call.op, call.attrs, in, call.n_in, call.out, call.n_out, cpu});
  for (int i = 0; i < call.n_out; ++i) {
    TensorDesc& out = *call.out[i];
    std::vector<std::byte> made(out.bytes());
    if (!made.empty()) std::memcpy(made.data(), out.data(), made.size());
    host_services().allocate_output(out, call.device);
    if (!made.empty()) device.copy_from_host(out.data(), made.data(), out.bytes());
  }
}

const PluginKernel kernels[] = {{"ctc_decode", run_on_host}, {"ctc_beam_search", run_on_host}};

}  // namespace

Kernels ctc_decode_kernels() { return {kernels, static_cast<int>(std::size(kernels))}; }

}  // namespace kassette::cuda
