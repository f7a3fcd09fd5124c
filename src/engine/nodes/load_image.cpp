#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "engine/call.hpp"
#include "engine/files.hpp"
#include "engine/nodes/all.hpp"
#include "engine/png.hpp"
#include "engine/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

// The mask of a picture without alpha, as in ComfyUI.
constexpr std::size_t kEmptyMaskSide = 64;

tl::unexpected<Error> cannot_load(const std::string& name, const std::string& why) {
    return node_error("UnidentifiedImageError", "Cannot load '" + name + "': " + why);
}

Result<std::string> read_named(const std::string& name, const Folders& folders) {
    const auto path = find_input_file(name, folders);
    if (!path) {
        return node_error("FileNotFoundError", "There is no picture '" + name + "'");
    }
    auto content = read_file(*path);
    if (!content && content.error().code != Code::storage_unavailable) {
        return node_error("OSError", content.error().message);
    }
    return content;
}

Result<NewMask> make_mask(const Call& call, const PngHeader& header) {
    if (header.has_mask) {
        return call.new_mask(1, header.height, header.width);
    }
    auto mask = call.new_mask(1, kEmptyMaskSide, kEmptyMaskSide);
    if (mask) {
        std::fill_n(mask->data(), kEmptyMaskSide * kEmptyMaskSide, 0.0F);
    }
    return mask;
}

Result<NodeResult> execute(Call& call) {
    const std::string& name = call.text("image");
    const auto file = read_named(name, call.folders());
    if (!file) {
        return fail(file.error());
    }
    const auto header = read_png_header(*file);
    if (!header) {
        return cannot_load(name, header.error().text);
    }
    auto image = call.new_image({1, header->height, header->width, 3});
    if (!image) {
        return fail(std::move(image.error()));
    }
    auto mask = make_mask(call, *header);
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    auto scratch = call.new_scratch(header->scratch_bytes);
    if (!scratch) {
        return fail(std::move(scratch.error()));
    }
    const auto decoded = decode_png(*file, scratch->data(), image->data(), mask->data(), [&call] {
        return call.stopped();
    });
    if (!decoded) {
        return cannot_load(name, decoded.error().text);
    }
    if (auto stopped = call.check_stopped(); !stopped) {
        return fail(std::move(stopped.error()));
    }
    return NodeResult{.outputs = {std::move(*image).finish(), std::move(*mask).finish()}};
}

std::optional<Refusal> check(const json::value& literal, const Folders& folders) {
    if (!literal.is_string()) {
        return Refusal{
            "'" + std::string(python_type(literal)) + "' object has no attribute 'endswith'",
            "AttributeError"
        };
    }
    const std::string name = python_str(literal);
    if (!find_input_file(name, folders)) {
        return Refusal{"Invalid image file: " + name, ""};
    }
    return std::nullopt;
}

Result<std::string> fingerprint(const json::object& inputs, const Folders& folders) {
    const json::value* name = inputs.if_contains("image");
    if (name == nullptr || !name->is_string()) {
        return fail(Code::not_found, "No file is named");
    }
    const auto file = read_named(python_str(*name), folders);
    if (!file) {
        return fail(file.error());
    }
    return to_hex(sha256(*file));
}

}  // namespace

NodeClass load_image() {
    return {
        .name = "LoadImage",
        .display_name = "Load Image",
        .description = "Reads a picture from the input folder; the mask is 1 minus its alpha.",
        .category = "image",
        .inputs = {file_input("image", &list_input_pictures, {{"image_upload", true}})},
        .outputs = {{"IMAGE"}, {"MASK"}},
        .execute = &execute,
        .checked_input = "image",
        .check = &check,
        .fingerprint = &fingerprint,
    };
}

}  // namespace comfyd::engine::nodes
