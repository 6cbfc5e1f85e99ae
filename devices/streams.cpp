// devices/streams.cpp - what <kassette/stream.h> and <kassette/device.h> declare about CUDA devices.
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

DeviceBackend* backend_or_cpu(const char* what, Device device) {
  if (!device.given()) fail<DeviceError>({what, "device"}, "is None; there are 'cpu' and 'cuda:N'");
  return device == cpu ? nullptr : &device_backend(device);
}

}  // namespace

// - devices -----------------------------------------------------------------------------------------------------------

int device_count() {
  const DevicePlugin* library = device_library();
  return library ? library->count() : 0;
}

const char* device_name(Device device) {
  if (!device.given()) fail<DeviceError>({"device_name", "device"}, "is None; there are 'cpu' and 'cuda:N'");
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
  if (DeviceBackend* backend = backend_or_cpu("synchronize", device)) backend->wait_for_all();
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

// - streams -----------------------------------------------------------------------------------------------------------

Stream::Stream(Device device) : device_(device) {
  if (DeviceBackend* backend = backend_or_cpu("Stream", device)) stream_ = &backend->stream_of(nullptr);
}
Stream::Stream(Device device, void* native) : device_(device) {
  DeviceBackend* backend = backend_or_cpu("Stream", device);
  if (!backend) return;
  if (!native)
    fail<ValueError>({"Stream"}, "a null pointer is no stream of ", device,
                     "; CUDA's legacy default stream is cudaStreamLegacy");
  stream_ = &backend->stream_of(native);
}
Stream::~Stream() {
  if (stream_) device_backend(device_).close(*stream_);
}
Stream::Stream(Stream&& other) noexcept : device_(other.device_), stream_(std::exchange(other.stream_, nullptr)) {}
Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(stream_, other.stream_);
  return *this;
}
void* Stream::native() const { return stream_ ? device_backend(device_).native(*stream_) : nullptr; }
void Stream::synchronize() const {
  if (stream_) device_backend(device_).wait(*stream_);
}
void Stream::wait_for(const Stream& other) const {
  if (stream_ && other.stream_) device_backend(device_).order(*other.stream_, *stream_);
}

Stream current_stream(Device device) {
  DeviceBackend* backend = backend_or_cpu("current_stream", device);
  return backend ? Stream(device, backend->native(backend->current())) : Stream(device);
}

StreamScope::StreamScope(const Stream& stream) : device_(stream.device_), stream_(stream.stream_), before_(nullptr) {
  if (!stream_) return;
  DeviceBackend& backend = device_backend(device_);
  before_ = &backend.current();
  backend.order(*before_, *stream_);
  backend.set_current(*stream_);
}
StreamScope::~StreamScope() {
  if (!stream_) return;
  DeviceBackend& backend = device_backend(device_);
  backend.set_current(*before_);
  try {
    backend.order(*stream_, *before_);
  } catch (const Error&) {  // the device is lost: its next use throws
  }
}

}  // namespace kassette
