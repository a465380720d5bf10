// SPDX-License-Identifier: Apache-2.0
// Stand-in for Gloo's file, which the wheel of torch lacks: the members that we and torch's header call. They live in
// libtorch_cpu. Nothing here makes or copies a Context, so its true size does not matter.
#pragma once

#include <chrono>

namespace gloo {

class Context {
 public:
  std::chrono::milliseconds getTimeout() const;
  void setTimeout(std::chrono::milliseconds timeout);
  void closeConnections();  // operations of peers that wait for this end then throw; those of this end wait on
};

}  // namespace gloo
