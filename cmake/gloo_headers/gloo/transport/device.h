// SPDX-License-Identifier: Apache-2.0
// Stand-in for Gloo's file, which the wheel of torch lacks. Devices and buffers are made and used by libtorch_cpu.
#pragma once

namespace gloo::transport {

class Device {
 public:
  virtual ~Device() = 0;
};

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace gloo::transport
