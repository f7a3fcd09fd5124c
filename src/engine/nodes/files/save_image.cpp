// SaveImage, PreviewImage, ImageCompare and SaveImageWebsocket: pictures as PNG for people to see.

#include <string>
#include <utility>
#include <vector>

#include "engine/nodes/call.hpp"
#include "engine/nodes/files/files.hpp"
#include "engine/nodes/files/save.hpp"
#include "engine/nodes/image/clip.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kPreviewLevel = 1;

Result<NodeResult> with_ui(const ImageView& images, Result<json::array> files) {
    if (!files) {
        return fail(std::move(files.error()));
    }
    return NodeResult{.outputs = {images}, .ui = json::object{{"images", std::move(*files)}}};
}

// In Pillow's words where it is given a whole clip as one picture.
Result<ImageView> savable(const Call& call) {
    if (const Clip* clip = as_clip(call.value("images"))) {
        const ImageShape& shape = clip->frames.shape();
        return node_error(
            "TypeError",
            "Cannot handle this data type: (1, 1, " + std::to_string(shape.width) + ", " +
                std::to_string(shape.channels) + "), |u1"
        );
    }
    const ImageView images = call.image_view("images");
    if (images.shape().batch == 0) {
        return node_error("IndexError", "index 0 is out of bounds for dimension 0 with size 0");
    }
    return images;
}

Result<NodeResult> execute_save(Call& call) {
    const auto images = savable(call);
    if (!images) {
        return fail(images.error());
    }
    return with_ui(*images, save_pictures(call, *images, call.text("filename_prefix")));
}

Result<NodeResult> execute_preview(Call& call) {
    const auto images = savable(call);
    if (!images) {
        return fail(images.error());
    }
    return with_ui(
        *images, preview_pictures(call, *images, "ComfyUI_temp_" + random_letters(), true)
    );
}

Result<NodeResult> execute_compare(Call& call) {
    const std::string tail = "_temp_" + random_letters();
    json::object ui{{"a_images", json::array{}}, {"b_images", json::array{}}};
    for (const std::string side : {"a", "b"}) {
        if (!call.has("image_" + side) || call.image_view("image_" + side).shape().batch == 0) {
            continue;
        }
        auto files = preview_pictures(
            call, call.image_view("image_" + side), "comfy.compare." + side + tail, false
        );
        if (!files) {
            return fail(std::move(files.error()));
        }
        ui[side + "_images"] = std::move(*files);
    }
    return NodeResult{.outputs = {}, .ui = std::move(ui)};
}

Result<NodeResult> execute_websocket(Call& call) {
    const ImageView images = call.image_view("images");
    const ImageShape& shape = images.shape();
    for (std::size_t i = 0; i < shape.batch; ++i) {
        std::string file;
        std::vector<float> scratch;
        const FileSink sink = [&file](const void* data, std::size_t size) {
            file.append(static_cast<const char*>(data), size);
            return true;
        };
        const auto encoded = encode_png(
            {.width = shape.width,
             .height = shape.height,
             .channels = shape.channels,
             .row = [&](std::size_t y) { return images.row(i * shape.height + y, scratch); }},
            kPreviewLevel,
            {},
            sink,
            [&call] { return call.stopped(); }
        );
        if (auto stopped = call.check_stopped(); !stopped) {
            return fail(std::move(stopped.error()));
        }
        if (!encoded) {
            return node_error("ValueError", encoded.error().text);
        }
        call.progress(static_cast<int>(i), static_cast<int>(shape.batch));
        call.preview(ImageFormat::png, file);
    }
    return NodeResult{};
}

}  // namespace

NodeClass save_image() {
    return {
        .name = "SaveImage",
        .description = "Writes pictures into the output folder, with the workflow inside.",
        .execute = &execute_save,
        .reads_views = true,
        .takes_empty = true,
    };
}

NodeClass preview_image() {
    return {
        .name = "PreviewImage",
        .description = "Writes pictures into the temporary folder.",
        .execute = &execute_preview,
        .reads_views = true,
        .takes_empty = true,
    };
}

NodeClass image_compare() {
    return {
        .name = "ImageCompare",
        .description = "Shows two pictures above each other, with a slider between them.",
        .execute = &execute_compare,
        .reads_views = true,
        .takes_empty = true,
    };
}

NodeClass save_image_websocket() {
    return {
        .name = "SaveImageWebsocket",
        .description = "Sends pictures to the client's socket and writes no file.",
        .execute = &execute_websocket,
        .reads_views = true,
        .takes_empty = true,
    };
}

}  // namespace comfyd::engine::nodes
