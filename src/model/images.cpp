// Counts the patches and tokens that an image is for a vision tower. Patches: arXiv:2010.11929 section 3.1. Towers of
// one resolution are shown an image scaled to it (CLIP, SigLIP); others have a position for each patch, of which
// neighbours go on as one token (Qwen2-VL, arXiv:2409.12191 section 2.1).
#include "model/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/diagnostic.h"
#include "base/text.h"

namespace scalecalc {

Images images_of(std::string_view typed) {
  std::array<std::int64_t, 3> sizes{};
  std::string_view rest = typed;
  bool right = true;
  for (std::size_t i = 0; i < sizes.size() && right; ++i) {
    const std::size_t end = i + 1 < sizes.size() ? rest.find('x') : rest.size();
    right = end != std::string_view::npos && end > 0;
    if (!right) break;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + end, sizes[i]);
    right = error == std::errc{} && stop == rest.data() + end && sizes[i] >= 1 && sizes[i] <= 1'000'000;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (right) return {sizes[0], sizes[1], sizes[2]};
  throw UserError(
      fmt::format("--images {}: not a number of images and their height and width in pixels", in_quotes(typed)),
      "such as 2x1024x1024");
}

const TowerSpec* vision_tower(const ModelSpec& model) {
  const auto found =
      std::find_if(model.towers.begin(), model.towers.end(), [](const TowerSpec& t) { return t.patch > 0; });
  return found == model.towers.end() ? nullptr : &*found;
}

const TowerSpec* encoder_of(const ModelSpec& model) {
  const bool across =
      std::any_of(model.kinds.begin(), model.kinds.end(), [](const LayerKind& k) { return attends_across(k.mixer); });
  return across && !model.towers.empty() && model.towers.front().counted ? &model.towers.front() : nullptr;
}

namespace {

/// Positions of one image: whole tokens' worth of patches.
std::int64_t positions_of(const TowerSpec& tower, const Images& images) {
  if (tower.tokens > 0) return tower.tokens;
  std::int64_t side = 1;
  while ((side + 1) * (side + 1) <= tower.merge) ++side;
  const auto patches = [&](std::int64_t pixels) {
    const std::int64_t cell = tower.patch * side;
    return std::max<std::int64_t>(1, (pixels + cell / 2) / cell) * side;
  };
  return patches(images.height) * patches(images.width);
}

}  // namespace

ShownImages show_images(ModelSpec& model, const Images& images, double seq) {
  const TowerSpec* known = vision_tower(model);
  if (known == nullptr) {
    throw UserError(fmt::format("--images: {} has no vision tower that is counted", model.name),
                    "docs/howto/import-model.md says which are");
  }
  TowerSpec& tower = model.towers[static_cast<std::size_t>(known - model.towers.data())];
  const std::int64_t each = positions_of(tower, images);
  const bool across =
      std::any_of(model.kinds.begin(), model.kinds.end(), [](const LayerKind& k) { return attends_across(k.mixer); });
  ShownImages out{images.count * each, across ? 0 : images.count * (each / tower.merge)};
  if (static_cast<double>(out.tokens) > seq) {
    throw UserError(fmt::format("--images {}x{}x{}: {} tokens of images are more than the {} of a sequence",
                                images.count, images.height, images.width, group_thousands(out.tokens),
                                group_thousands(static_cast<long long>(seq))),
                    "a longer --seq, or fewer images");
  }
  tower.tokens = each;
  tower.positions = static_cast<double>(out.positions);
  tower.per_token = tower.positions / seq;
  if (across) model.attention.cross_tokens = out.positions / tower.merge;
  return out;
}

std::string images_text(const Images& images, const ShownImages& shown, std::string_view of) {
  std::string out =
      fmt::format("{} image{} of {} x {} a {}: ", group_thousands(images.count), images.count == 1 ? "" : "s",
                  group_thousands(images.height), group_thousands(images.width), of);
  if (shown.tokens > 0) out += fmt::format("{} of its tokens, ", group_thousands(shown.tokens));
  return out + fmt::format("{} positions of the vision tower", group_thousands(shown.positions));
}

}  // namespace scalecalc
