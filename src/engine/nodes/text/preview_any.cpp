#include <string>
#include <utility>

#include "engine/call.hpp"
#include "engine/nodes/image/clip.hpp"
#include "engine/nodes/latent/latent.hpp"
#include "engine/nodes/sampling/sampling.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/nodes/text/tensor_text.hpp"
#include "engine/nodes/text/text.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kIndent = 4;

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

std::string shown(const Value& value) {
    if (const auto* image = std::get_if<Image>(&value)) {
        const ImageShape& shape = image->shape();
        return tensor_text({shape.batch, shape.height, shape.width, shape.channels}, image->data());
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
    const auto converted = to_json(value);
    if (converted && (converted->is_array() || converted->is_object())) {
        return dump_json(*converted, kIndent);
    }
    return python_str(value);
}

Result<NodeResult> execute(Call& call) {
    std::string text = call.has("source") ? shown(call.value("source")) : "None";
    json::object ui{{"text", json::array{json::value(text)}}};
    return NodeResult{.outputs = {std::move(text)}, .ui = std::move(ui)};
}

}  // namespace

NodeClass preview_any() {
    return {.name = "PreviewAny", .description = "Shows any value as text.", .execute = &execute};
}

}  // namespace comfyd::engine::nodes
