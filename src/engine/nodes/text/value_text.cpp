#include "engine/nodes/text/value_text.hpp"

#include "engine/nodes/image/clip.hpp"
#include "engine/nodes/latent/latent.hpp"
#include "engine/nodes/sampling/sampling.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/tensor_text.hpp"

namespace comfyd::engine::nodes {
namespace {

std::string latent_text(const Latent& latent) {
    const auto member = [](const char* name, const Tensor& tensor) {
        return "'" + std::string(name) + "': " + tensor_text(tensor.dims(), tensor.data());
    };
    std::string text = "{" + member("samples", latent.samples);
    if (latent.noise_mask) {
        text += ", " + member("noise_mask", *latent.noise_mask);
    }
    if (latent.batch_index) {
        json::array indexes(latent.batch_index->begin(), latent.batch_index->end());
        text += ", 'batch_index': " + dump_json(indexes, 0);
    }
    return text + "}";
}

std::string picture_text(const Pixels& pixels) {
    const ImageShape& shape = pixels.shape();
    return tensor_text({shape.batch, shape.height, shape.width, shape.channels}, pixels.data());
}

}  // namespace

std::string value_text(const Value& value) {
    if (const auto* image = std::get_if<Image>(&value)) {
        return picture_text(*image);
    }
    if (const auto* view = std::get_if<ImageView>(&value)) {
        const auto pixels = view->whole();
        return pixels ? picture_text(*pixels) : python_str(value);
    }
    if (const Clip* clip = as_clip(value)) {
        const ImageShape& shape = clip->frames.shape();
        return tensor_text(
            {1, shape.batch, shape.height, shape.width, shape.channels}, clip->frames.data()
        );
    }
    if (const auto* mask = std::get_if<Mask>(&value)) {
        const ImageShape& shape = mask->shape();
        return tensor_text({shape.batch, shape.height, shape.width}, mask->data());
    }
    if (const auto* object = std::get_if<std::shared_ptr<const Object>>(&value)) {
        if (const auto* latent = dynamic_cast<const Latent*>(object->get())) {
            return latent_text(*latent);
        }
        if (const auto* sigmas = dynamic_cast<const Sigmas*>(object->get())) {
            return tensor_text({sigmas->values.size()}, sigmas->values.data());
        }
    }
    return python_str(value);
}

}  // namespace comfyd::engine::nodes
