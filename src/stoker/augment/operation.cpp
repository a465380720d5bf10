// SPDX-License-Identifier: Apache-2.0
#include "stoker/augment/operation.h"

#include <type_traits>
#include <utility>

#include "stoker/base/error.h"

namespace stoker::augment {

static_assert(std::is_trivially_copyable_v<DrawnOperations>);  // so that it can be copied to another device

void check(std::span<const Operation> operations) {
  std::array<bool, DrawnOperations::kMost> seen{};
  for (const Operation& operation : operations) {
    std::visit([](const auto& each) { check(each); }, operation);
    if (std::exchange(seen[operation.index()], true)) {
      fail<ConfigError>("augment.operation",
                        "each kind of operation may occur once in the list; number {} occurs twice", operation.index());
    }
  }
}

DrawnOperations draw(std::span<const Operation> operations, int width, int height, const DrawKey& key) {
  DrawnOperations drawn;
  for (const Operation& operation : operations) {
    std::visit(
        [&](const auto& each) {
          const auto one = [&] {
            if constexpr (requires { draw(each, width, height, key); }) {
              return draw(each, width, height, key);
            } else {
              return draw(each, key);
            }
          }();
          if (one) {
            drawn.list[drawn.count++] = *one;
          }
        },
        operation);
  }
  return drawn;
}

void execute(const DrawnOperations& drawn, Pixels pixels, PixelScratch& scratch) {
  for (const DrawnOperation& operation : std::span(drawn.list).first(drawn.count)) {
    std::visit(
        [&](const auto& each) {
          if constexpr (requires { execute(each, pixels, scratch); }) {
            execute(each, pixels, scratch);
          } else if constexpr (requires { execute(each, pixels); }) {
            execute(each, pixels);
          }
        },
        operation);
  }
}

}  // namespace stoker::augment
