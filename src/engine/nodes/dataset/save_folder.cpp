// Pictures, and captions beside them, into a folder in the output folder. A file of an earlier run
// is replaced as a whole or left as it was.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/files.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/dataset/dataset.hpp"
#include "engine/nodes/dataset/folders.hpp"
#include "engine/nodes/text/python_value.hpp"
#include "engine/pictures/png.hpp"

namespace comfyd::engine::nodes {
namespace {

namespace fs = std::filesystem;

constexpr int kLevel = 6;  // Pillow's own

tl::unexpected<Error> cannot_write(const fs::path& path) {
    return fail(Code::storage_unavailable, "Cannot write " + path.filename().string() + ".");
}

Result<> replace_file(
    const Call& call,
    const fs::path& path,
    const std::function<Result<>(const FileSink& sink)>& write
) {
    fs::path part = path;
    part += "." + call.node_id() + ".part";
    std::error_code error;
    Result<> written;
    {
        std::ofstream file(part, std::ios::binary | std::ios::trunc);
        written = write([&file](const void* data, std::size_t size) {
            file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
            return file.good();
        });
        file.close();
        if (written && file.fail()) {
            written = cannot_write(path);
        }
    }
    if (written) {
        fs::rename(part, path, error);
        if (!error) {
            return {};
        }
        written = cannot_write(path);
    }
    fs::remove(part, error);
    return written;
}

Result<> save_picture(
    const Call& call, const fs::path& path, const Image& images, std::size_t index
) {
    const ImageShape& shape = images.shape();
    const PngPicture picture{images.picture(index), shape.width, shape.height, shape.channels};
    return replace_file(call, path, [&](const FileSink& sink) -> Result<> {
        const auto encoded =
            encode_png(picture, kLevel, {}, sink, [&call] { return call.stopped(); });
        if (auto stopped = call.check_stopped(); !stopped) {
            return stopped;
        }
        if (!encoded) {
            return node_error("TypeError", encoded.error().text);
        }
        return {};
    });
}

std::string numbered(std::uint64_t number) {
    std::string digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
}

// Saves every picture of every batch; the file names without their endings.
Result<std::vector<fs::path>> save_pictures_of(const Call& call) {
    const auto folder = folder_inside(call.folders().output, call.text("folder_name"));
    if (!folder) {
        return fail(folder.error());
    }
    const std::string& prefix = call.text("filename_prefix");
    const bool overwrite = call.text("mode") == "overwrite";
    std::error_code error;
    fs::create_directories(*folder, error);
    const auto inside = folder_inside(*folder, prefix + "_");
    if (!inside) {
        return fail(inside.error());
    }
    std::vector<fs::path> saved;
    for (const Value& item : call.list("images")) {
        const Image& images = std::get<Image>(item);
        for (std::size_t i = 0; i < images.shape().batch; ++i) {
            fs::path base = *folder / (prefix + "_" + numbered(saved.size()));
            if (!overwrite) {
                const auto place = make_save_place(*folder, prefix, 0, 0);
                if (!place) {
                    return fail(place.error());
                }
                base =
                    *folder / place->subfolder /
                    (place->base + "_" + numbered(place->counter) + "_" + numbered(saved.size()));
            }
            auto done = save_picture(call, base.string() + ".png", images, i);
            if (!done) {
                return fail(std::move(done.error()));
            }
            saved.push_back(std::move(base));
        }
    }
    return saved;
}

Result<NodeResult> execute_pictures(Call& call) {
    const auto saved = save_pictures_of(call);
    if (!saved) {
        return fail(saved.error());
    }
    return NodeResult{};
}

Result<NodeResult> execute_pairs(Call& call) {
    const auto saved = save_pictures_of(call);
    if (!saved) {
        return fail(saved.error());
    }
    const std::vector<Value>& texts = call.list("texts");
    for (std::size_t i = 0; i < std::min(saved->size(), texts.size()); ++i) {
        const std::string caption = python_str(texts[i]);
        auto done = replace_file(
            call,
            (*saved)[i].string() + ".txt",
            [&caption](const FileSink& sink) -> Result<> {
                sink(caption.data(), caption.size());
                return {};
            }
        );
        if (!done) {
            return fail(std::move(done.error()));
        }
    }
    return NodeResult{};
}

}  // namespace

NodeClass save_image_dataset_to_folder() {
    return {
        .name = "SaveImageDataSetToFolder",
        .description = "Saves pictures as numbered PNG files in one folder.",
        .execute = &execute_pictures
    };
}

NodeClass save_image_text_dataset_to_folder() {
    return {
        .name = "SaveImageTextDataSetToFolder",
        .description = "Saves pictures as numbered PNG files, with a caption file beside each.",
        .execute = &execute_pairs
    };
}

}  // namespace comfyd::engine::nodes
