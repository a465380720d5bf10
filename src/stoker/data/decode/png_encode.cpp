// SPDX-License-Identifier: Apache-2.0
#include "stoker/data/decode/png_encode.h"

#include <spng.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "stoker/base/error.h"

namespace stoker::data {

std::vector<std::byte> encode_png(const augment::ImageView& image) {
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(image.width);
  header.height = static_cast<std::uint32_t>(image.height);
  header.bit_depth = 8;
  header.color_type = image.channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
  const std::size_t row = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
  std::vector<std::uint8_t> pixels(row * static_cast<std::size_t>(image.height));
  for (int y = 0; y < image.height; ++y) {
    std::memcpy(pixels.data() + row * static_cast<std::size_t>(y), image.row(y), row);
  }
  int error = spng_set_ihdr(context.get(), &header);
  error = error != 0
              ? error
              : spng_encode_image(context.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  std::size_t size = 0;
  const std::unique_ptr<void, void (*)(void*)> bytes(
      error == 0 ? spng_get_png_buffer(context.get(), &size, &error) : nullptr, std::free);
  if (error != 0 || bytes == nullptr) {
    fail<Error>("data.png", "an image of {} x {} cannot be encoded: {}", image.width, image.height,
                spng_strerror(error));
  }
  const auto* first = static_cast<const std::byte*>(bytes.get());
  return {first, first + size};
}

}  // namespace stoker::data
