// devices/streams.cpp - the functions of <kassette/stream.h> and <kassette/device.h> for CUDA devices.
#include <kassette/stream.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "core/text.h"
#include "devices/plugin.h"
#include "devices/tf32.h"

namespace kassette {
using namespace devices;
namespace {

CudaDeviceApi* api_unless_cpu(const char* what, Device device) {
  if (!device.given()) fail<DeviceError>({what, "device"}, "is None", kExpected, "there are 'cpu' and 'cuda:N'");
  return device == cpu ? nullptr : &cuda_device_api(device);
}

}  // namespace

// ---- devices --------------------------------------------------------------------------------------------------------

int device_count() {
  const DevicePlugin* library = device_library();
  return library ? library->count() : 0;
}

const char* device_name(Device device) {
  if (!device.given())
    fail<DeviceError>({"device_name", "device"}, "is None", kExpected, "there are 'cpu' and 'cuda:N'");
  if (device == cpu) return "cpu";
  const DevicePlugin* library = device_library();
  DeviceFacts facts;
  if (!library || device.index() >= library->count() || !library->describe(device.index(), &facts)) {
    const char* why = device_absent(device);
    fail<DeviceError>({}, device, " is not available: ", why ? why : "it does not tell its name");
  }
  static std::mutex mutex;
  static auto* names = new std::map<int, std::string>;
  std::lock_guard<std::mutex> lock(mutex);
  return names->emplace(device.index(), facts.name).first->second.c_str();
}

void synchronize(Device device) {
  if (CudaDeviceApi* api = api_unless_cpu("synchronize", device)) api->wait_for_all();
}

std::atomic<bool>& devices::tf32_flag() {
  static std::atomic<bool> allowed{[] {
    const char* set = std::getenv("KASSETTE_ALLOW_TF32");
    return set && std::string(set) == "1";
  }()};
  return allowed;
}
bool allow_tf32() { return tf32_flag().load(std::memory_order_relaxed); }
void set_allow_tf32(bool allow) { tf32_flag().store(allow, std::memory_order_relaxed); }

std::atomic<bool>& devices::cudnn_flag() {
  static std::atomic<bool> allowed{[] {
    const char* set = std::getenv("KASSETTE_CUDNN");
    return !set || std::string(set) != "0";
  }()};
  return allowed;
}
bool allow_cudnn() { return cudnn_flag().load(std::memory_order_relaxed); }
void set_allow_cudnn(bool allow) { cudnn_flag().store(allow, std::memory_order_relaxed); }

// ---- streams --------------------------------------------------------------------------------------------------------

Stream::Stream(Device device) : device_(device) {
  if (CudaDeviceApi* api = api_unless_cpu("Stream", device)) stream_ = &api->stream_of(nullptr);
}
Stream::Stream(Device device, void* native) : device_(device) {
  CudaDeviceApi* api = api_unless_cpu("Stream", device);
  if (!api) return;
  if (!native)
    fail<ValueError>({"Stream"}, "a null pointer is no stream of ", device, kRemedy,
                     "CUDA's legacy default stream is cudaStreamLegacy");
  stream_ = &api->stream_of(native);
}
Stream::~Stream() {
  if (stream_) cuda_device_api(device_).close(*stream_);
}
Stream::Stream(Stream&& other) noexcept : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(stream_, other.stream_);
  return *this;
}
void* Stream::native() const { return stream_ ? cuda_device_api(device_).native(*stream_) : nullptr; }
void Stream::synchronize() const {
  if (stream_) cuda_device_api(device_).wait(*stream_);
}
void Stream::wait_for(const Stream& other) const {
  if (stream_ && other.stream_) cuda_device_api(device_).order(*other.stream_, *stream_);
}

Stream current_stream(Device device) {
  CudaDeviceApi* api = api_unless_cpu("current_stream", device);
  return api ? Stream(device, api->native(api->current())) : Stream(device);
}

StreamScope::StreamScope(const Stream& stream) : device_(stream.device_), stream_(stream.stream_), before_(nullptr) {
  if (!stream_) return;
  CudaDeviceApi& api = cuda_device_api(device_);
  before_ = &api.current();
  api.order(*before_, *stream_);
  api.set_current(*stream_);
}
StreamScope::~StreamScope() {
  if (!stream_) return;
  CudaDeviceApi& api = cuda_device_api(device_);
  api.set_current(*before_);
  try {
    api.order(*stream_, *before_);
  } catch (const Error&) {  // the device is lost: its next use throws
  }
}

}  // namespace kassette
