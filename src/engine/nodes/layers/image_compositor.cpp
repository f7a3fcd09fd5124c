// ImageCompositor: a stack of layers as one picture, and what the client's editor needs to go on.
#include <algorithm>
#include <optional>
#include <utility>

#include "engine/nodes/call.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/nodes/layers/blend.hpp"
#include "engine/nodes/layers/compose.hpp"
#include "engine/nodes/layers/composition.hpp"
#include "engine/nodes/layers/document.hpp"
#include "engine/nodes/layers/frames.hpp"
#include "engine/nodes/layers/layers.hpp"
#include "engine/nodes/mask/support.hpp"
#include "engine/nodes/text/python_value.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr std::size_t kEmptySide = 64;
constexpr float kOpaque = 0.999F;
constexpr std::uint64_t kFingerprintBytes = 12;  // for each pixel

// The editor's state as JSON; null when there is none.
json::value state_of(const Call& call) {
    if (!call.has("compositor")) {
        return nullptr;
    }
    const Value& value = call.value("compositor");
    if (const auto* text = std::get_if<std::string>(&value)) {
        auto parsed = json::parse(*text);
        return parsed ? std::move(*parsed) : json::value(nullptr);
    }
    return to_json(value).value_or(nullptr);
}

bool was_given(const Call& call) {
    if (!call.has("compositor")) {
        return false;
    }
    if (const auto* text = std::get_if<std::string>(&call.value("compositor"))) {
        return !text->empty() && *text != "{}";
    }
    const json::value state = state_of(call);
    return state.is_object() && !state.as_object().empty();
}

struct Composite {
    Image image;  // with alpha only where something shines through
    Mask mask;
};

Result<Composite> to_outputs(const Call& call, NewImage canvas) {
    const ImageShape shape = canvas.shape();
    const std::size_t pixels = shape.rows() * shape.width;
    bool opaque = true;
    for (std::size_t i = 0; i < pixels && opaque; ++i) {
        opaque = clamp_unit(canvas.data()[i * 4 + 3]) >= kOpaque;
    }
    const std::size_t channels = opaque ? 3 : 4;
    auto image =
        make_image(call, {1, shape.height, shape.width, channels}, [&](std::size_t y, float* into) {
            const float* from = canvas.row(y);
            for (std::size_t x = 0; x < shape.width; ++x) {
                for (std::size_t c = 0; c < 3; ++c) {
                    into[x * channels + c] = linear_to_srgb(clamp_unit(from[x * 4 + c]));
                }
                if (!opaque) {
                    into[x * channels + 3] = clamp_unit(from[x * 4 + 3]);
                }
            }
        });
    if (!image) {
        return fail(std::move(image.error()));
    }
    auto mask = make_mask(call, {1, shape.height, shape.width, 1}, [&](std::size_t y, float* into) {
        for (std::size_t x = 0; x < shape.width; ++x) {
            into[x] = opaque ? 0.0F : clamp_unit(1.0F - clamp_unit(canvas.row(y)[x * 4 + 3]));
        }
    });
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    return Composite{std::move(*image), std::move(*mask)};
}

Result<Composite> empty_composite(const Call& call) {
    const ImageShape shape{1, kEmptySide, kEmptySide, 3};
    auto image = make_image(call, shape, [](std::size_t, float* into) {
        std::fill_n(into, kEmptySide * 3, 0.0F);
    });
    auto mask = make_mask(call, {1, kEmptySide, kEmptySide, 1}, [](std::size_t, float* into) {
        std::fill_n(into, kEmptySide, 0.0F);
    });
    if (!image || !mask) {
        return fail(image ? mask.error() : image.error());
    }
    return Composite{std::move(*image), std::move(*mask)};
}

Result<NodeResult> compute(Call& call) {
    const auto& document = call.object<Layers>("layers");
    const auto frames = frames_of(call, document);
    if (!frames) {
        return fail(frames.error());
    }
    json::array previews;
    json::array fingerprints;
    json::array boxes;
    for (const Frame& frame : *frames) {
        auto files = preview_layer(call, frame);
        const auto space = call.charge(frame.width() * frame.height() * kFingerprintBytes);
        if (!files || !space) {
            return fail(files ? space.error() : files.error());
        }
        previews.insert(previews.end(), files->begin(), files->end());
        fingerprints.emplace_back(fingerprint_of(frame));
        boxes.emplace_back(describe(frame));
    }
    const auto replayed =
        frames->empty() ? std::nullopt : saved_composition(state_of(call), *frames, fingerprints);
    Result<Composite> composite = fail(Code::internal, "");
    if (frames->empty()) {
        composite = empty_composite(call);
    } else {
        auto canvas = compose(call, *frames, replayed ? *replayed : as_placed(*frames, document));
        if (!canvas) {
            return fail(std::move(canvas.error()));
        }
        composite = to_outputs(call, std::move(*canvas));
    }
    if (!composite) {
        return fail(std::move(composite.error()));
    }
    auto ui = preview_ui(call, composite->image, true);
    if (!ui) {
        return fail(std::move(ui.error()));
    }
    (*ui)["compositor_layers"] = std::move(previews);
    (*ui)["compositor_inputs"] = std::move(fingerprints);
    (*ui)["compositor_bboxes"] = std::move(boxes);
    if (was_given(call) && !replayed) {
        (*ui)["compositor_state_stale"] = json::array{true};
    }
    return NodeResult{
        .outputs = {std::move(composite->image), std::move(composite->mask)}, .ui = std::move(*ui)
    };
}

}  // namespace

NodeClass image_compositor() {
    return {
        .name = "ImageCompositor",
        .description = "Lays a stack of layers on each other, each with its place and blend mode.",
        .execute = &compute,
    };
}

}  // namespace comfyd::engine::nodes
