// LoadImage, LoadImageOutput and LoadImageMask: picture files as batches.

#include <algorithm>
#include <utility>

#include "base/time.hpp"
#include "engine/file_hashes.hpp"
#include "engine/files.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/files/files.hpp"
#include "engine/nodes/files/load.hpp"
#include "engine/pictures/reader.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

// The mask of a picture without alpha, as in ComfyUI.
constexpr std::size_t kEmptyMaskSide = 64;

tl::unexpected<Error> cannot_load(const std::string& name, const std::string& why) {
    return node_error("PIL.UnidentifiedImageError", "Cannot load '" + name + "': " + why);
}

tl::unexpected<Error> no_file(const std::string& name) {
    return node_error("FileNotFoundError", "There is no file '" + name + "'");
}

template <class Finished>
void copy_frames(Draft<Finished>& from, Draft<Finished>& into) {
    const ImageShape& shape = into.shape();
    std::copy_n(from.data(), shape.rows() * shape.row_floats(), into.data());
}

struct Batch {
    NewImage image;
    NewMask mask;
};

Result<Batch> allocate(const Call& call, const pictures::Facts& facts, std::size_t frames) {
    auto image = call.new_image({frames, facts.height, facts.width, 3});
    if (!image) {
        return fail(std::move(image.error()));
    }
    auto mask = facts.has_alpha ? call.new_mask(frames, facts.height, facts.width)
                                : call.new_mask(frames, kEmptyMaskSide, kEmptyMaskSide);
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    if (!facts.has_alpha) {
        std::fill_n(mask->data(), frames * kEmptyMaskSide * kEmptyMaskSide, 0.0F);
    }
    return Batch{std::move(*image), std::move(*mask)};
}

// Frames that do not decode are left out, so that there can be fewer than the file announces.
Result<Batch> shrink(const Call& call, const pictures::Facts& facts, Batch batch, std::size_t to) {
    if (batch.image.shape().batch == to) {
        return batch;
    }
    auto smaller = allocate(call, facts, to);
    if (smaller) {
        copy_frames(batch.image, smaller->image);
        copy_frames(batch.mask, smaller->mask);
    }
    return smaller;
}

std::optional<Refusal> check(const json::value& name, const Folders& folders) {
    return check_file_name(name, "image", folders);
}

Result<std::string> fingerprint(const json::object& inputs, const Folders& folders) {
    return file_fingerprint(inputs, "image", folders);
}

Result<NodeResult> compute(Call& call) {
    auto loaded = load_picture(call, call.text("image"));
    if (!loaded) {
        return fail(std::move(loaded.error()));
    }
    return NodeResult{.outputs = {std::move(loaded->image), std::move(loaded->mask)}};
}

Result<NodeResult> execute_mask(Call& call) {
    auto loaded = load_picture(call, call.text("image"));
    if (!loaded) {
        return fail(std::move(loaded.error()));
    }
    const std::string& channel = call.text("channel");
    if (channel == "alpha") {
        return NodeResult{.outputs = {std::move(loaded->mask)}};
    }
    const std::size_t index = channel == "green" ? 1 : channel == "blue" ? 2 : 0;
    // A copy: the rest of the picture is of no use to anybody.
    auto mask = call.copy(View(loaded->image).channel(index));
    if (!mask) {
        return fail(std::move(mask.error()));
    }
    return NodeResult{.outputs = {Mask(std::move(*mask))}};
}

}  // namespace

std::optional<Refusal> check_file_name(
    const json::value& name, std::string_view kind, const Folders& folders
) {
    if (!name.is_string()) {
        return Refusal{
            "'" + std::string(workflow::python_type(name)) + "' object has no attribute 'endswith'",
            "AttributeError"
        };
    }
    const std::string text = workflow::python_str(name);
    if (!find_input_file(text, folders)) {
        return Refusal{"Invalid " + std::string(kind) + " file: " + text, ""};
    }
    return std::nullopt;
}

Result<std::string> read_named(const std::string& name, const Folders& folders) {
    const auto path = find_input_file(name, folders);
    if (!path) {
        return no_file(name);
    }
    auto content = read_file(*path);
    if (!content && content.error().code != Code::storage_unavailable) {
        return node_error("OSError", content.error().message);
    }
    return content;
}

Result<std::string> file_fingerprint(
    const json::object& inputs, std::string_view input, const Folders& folders
) {
    const json::value* name = inputs.if_contains(input);
    if (name == nullptr || !name->is_string()) {
        return fail(Code::not_found, "No file is named");
    }
    const auto path = find_input_file(workflow::python_str(*name), folders);
    if (!path) {
        return no_file(workflow::python_str(*name));
    }
    static const SystemClock clock;
    static FileHashes hashes(clock);
    return hashes.hash(*path);
}

Result<LoadedPicture> decode_picture(
    const Call& call, const std::string& name, std::string_view file
) {
    auto reader = pictures::open(file, [&call] { return call.stopped(); });
    if (!reader) {
        return cannot_load(name, reader.error().text);
    }
    const pictures::Facts facts = (*reader)->facts();
    auto batch = allocate(call, facts, facts.frames_max);
    auto scratch = call.new_scratch(facts.scratch_bytes);
    if (!batch || !scratch) {
        return fail(std::move(batch ? scratch.error() : batch.error()));
    }
    std::size_t frames = 0;
    while (frames < facts.frames_max) {
        const auto got = (*reader)->read(
            scratch->data(),
            batch->image.row(frames * facts.height),
            facts.has_alpha ? batch->mask.row(frames * facts.height) : nullptr
        );
        if (auto stopped = call.check_stopped(); !stopped) {
            return fail(std::move(stopped.error()));
        }
        if (!got) {
            return cannot_load(name, got.error().text);
        }
        if (!*got) {
            break;
        }
        ++frames;
    }
    auto exact = shrink(call, facts, std::move(*batch), frames);
    if (!exact) {
        return fail(std::move(exact.error()));
    }
    return LoadedPicture{std::move(exact->image).finish(), std::move(exact->mask).finish()};
}

Result<LoadedPicture> load_picture(const Call& call, const std::string& name) {
    const auto file = read_named(name, call.folders());
    if (!file) {
        return fail(file.error());
    }
    return decode_picture(call, name, *file);
}

NodeClass load_image() {
    return {
        .name = "LoadImage",
        .description = "Reads a picture from the input folder; the mask is 1 minus its alpha.",
        .execute = &compute,
        .files = {{"image", &list_input_pictures}},
        .checked_input = "image",
        .check_name = "LoadImage.VALIDATE_INPUTS",
        .check = &check,
        .fingerprint = &fingerprint,
    };
}

NodeClass load_image_output() {
    return {
        .name = "LoadImageOutput",
        .description = "Reads a picture that an earlier run has saved.",
        .execute = &compute,
        .checked_input = "image",
        .check_name = "LoadImage.VALIDATE_INPUTS",  // it is a kind of LoadImage
        .check = &check,
        .fingerprint = &fingerprint,
    };
}

NodeClass load_image_mask() {
    return {
        .name = "LoadImageMask",
        .description = "Reads one channel of a picture as a mask; of alpha it takes 1 minus it.",
        .execute = &execute_mask,
        .files = {{"image", &list_input_pictures}},
        .checked_input = "image",
        .check_name = "LoadImageMask.VALIDATE_INPUTS",
        .check = &check,
        .fingerprint = &fingerprint,
    };
}

}  // namespace comfyd::engine::nodes
