// Images that a sequence holds: how many positions of a vision tower, and tokens of the model, they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "spec/model_spec.h"

namespace scalecalc {

struct Images {
  std::int64_t count = 0;
  std::int64_t height = 0;  ///< in pixels, as the tower is shown them
  std::int64_t width = 0;
};

/// "2x1024x1024". UserError that names the flag.
Images images_of(std::string_view typed);

/// What a sequence has of its images.
struct ShownImages {
  std::int64_t positions = 0;  ///< of the tower, all images together
  std::int64_t tokens = 0;     ///< of the sequence; 0 where cross attention reads the tower
};

/// Shows the model's first vision tower these images in each sequence of `seq` tokens. UserError if it has none that is
/// counted, or the images are more than the sequence.
ShownImages show_images(ModelSpec& model, const Images& images, double seq);

/// The tower that images are shown to, or null.
const TowerSpec* vision_tower(const ModelSpec& model);

/// The encoder whose output all of the model's layers attend to, or null.
const TowerSpec* encoder_of(const ModelSpec& model);

/// "2 images of 1,024 x 1,024 a sequence: 2,738 of its tokens, 10,952 positions of the vision tower"; `of` a
/// "sequence".
std::string images_text(const Images& images, const ShownImages& shown, std::string_view of = "sequence");

}  // namespace scalecalc
