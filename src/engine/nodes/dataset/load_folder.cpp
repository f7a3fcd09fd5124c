// Pictures, and captions beside them, out of a folder in the input folder. ComfyUI takes the files
// as the file system lists them; here they are sorted, so that every machine gives the same.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/files.hpp"
#include "engine/nodes/call.hpp"
#include "engine/nodes/dataset/dataset.hpp"
#include "engine/nodes/dataset/folders.hpp"
#include "engine/nodes/text/unicode.hpp"
#include "engine/pictures/reader.hpp"

namespace comfyd::engine::nodes {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPicturesMax = 100'000;
constexpr std::size_t kFoldersMax = 10'000;
constexpr std::size_t kPixelsMax = kSideMax * kSideMax;

bool is_picture(const std::string& name) {
    const std::string lower = to_lower(name);
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{".png", ".jpg", ".jpeg", ".webp"},
        [&](std::string_view ending) { return lower.ends_with(ending); }
    );
}

Result<std::vector<std::string>> sorted_names(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        names.push_back(entry->path().filename().string());
        if (names.size() > kPicturesMax) {
            return node_error("ValueError", "The folder holds too many files.");
        }
    }
    if (error) {
        return node_error(
            "FileNotFoundError", "[Errno 2] No such file or directory: '" + folder.string() + "'"
        );
    }
    std::ranges::sort(names);
    return names;
}

// How often the pictures of a subfolder such as "10_cats" count.
std::size_t repeats_of(const std::string& folder) {
    const std::string number = folder.substr(0, folder.find('_'));
    const bool all_digits =
        !number.empty() && number.find_first_not_of("0123456789") == number.npos;
    return !all_digits ? 1 : number.size() > 6 ? kPicturesMax + 1 : std::stoul(number);
}

Result<std::vector<fs::path>> find_pictures(const fs::path& folder, bool with_subfolders) {
    const auto names = sorted_names(folder);
    if (!names) {
        return fail(names.error());
    }
    std::vector<fs::path> found;
    for (const std::string& name : *names) {
        std::error_code error;
        if (is_picture(name)) {
            found.push_back(folder / name);
        } else if (with_subfolders && fs::is_directory(folder / name, error)) {
            const auto inner = find_pictures(folder / name, false);
            if (!inner) {
                return inner;
            }
            const std::size_t repeats = repeats_of(name);
            if (inner->size() * repeats + found.size() > kPicturesMax) {
                return node_error("ValueError", "The folder stands for too many pictures.");
            }
            for (std::size_t i = 0; i < repeats; ++i) {
                found.insert(found.end(), inner->begin(), inner->end());
            }
        }
    }
    return found;
}

Result<Image> load(const Call& call, const fs::path& path) {
    const auto file = read_file(path);
    if (!file) {
        return fail(file.error());
    }
    const auto bitmap = pictures::decode_rgba(*file, kPixelsMax);
    if (!bitmap) {
        return node_error(
            "PIL.UnidentifiedImageError",
            "cannot identify image file '" + path.filename().string() + "': " + bitmap.error().text
        );
    }
    auto image = call.new_image({1, bitmap->height, bitmap->width, 3});
    if (!image) {
        return fail(std::move(image.error()));
    }
    for (std::size_t pixel = 0; pixel < bitmap->height * bitmap->width; ++pixel) {
        for (std::size_t c = 0; c < 3; ++c) {
            image->data()[pixel * 3 + c] = static_cast<float>(bitmap->rgba[pixel * 4 + c]) / 255.0F;
        }
    }
    return std::move(*image).finish();
}

Result<Value> load_all(const Call& call, const std::vector<fs::path>& paths) {
    if (paths.empty()) {
        return node_error("ValueError", "No valid images found in input");
    }
    std::vector<std::optional<Image>> loaded(paths.size());
    auto done = call.for_each(paths.size(), [&](std::size_t i) -> Result<> {
        auto image = load(call, paths[i]);
        if (!image) {
            return fail(std::move(image.error()));
        }
        loaded[i] = std::move(*image);
        return {};
    });
    if (!done) {
        return fail(std::move(done.error()));
    }
    auto list = std::make_shared<List>();
    for (std::optional<Image>& image : loaded) {
        list->items.emplace_back(std::move(*image));
    }
    return std::shared_ptr<const List>(std::move(list));
}

// The text file of the same name; without one the caption is empty.
Result<std::string> caption_of(const fs::path& picture) {
    const std::string ending = picture.extension().string();
    const std::string name = replace_all(picture.filename().string(), ending, ".txt");
    std::error_code error;
    const fs::path path = picture.parent_path() / name;
    if (!fs::exists(path, error)) {
        return std::string();
    }
    const auto text = read_file(path);
    if (!text) {
        return fail(text.error());
    }
    // Python reads every kind of line end as "\n".
    return std::string(strip(replace_all(replace_all(*text, "\r\n", "\n"), "\r", "\n")));
}

Result<std::vector<fs::path>> pictures_of(const Call& call, bool with_subfolders) {
    const auto folder = folder_inside(call.folders().input, call.text("folder"));
    if (!folder) {
        return fail(folder.error());
    }
    return find_pictures(*folder, with_subfolders);
}

Result<NodeResult> execute_pictures(Call& call) {
    const auto paths = pictures_of(call, false);
    if (!paths) {
        return fail(paths.error());
    }
    auto images = load_all(call, *paths);
    if (!images) {
        return fail(std::move(images.error()));
    }
    return NodeResult{.outputs = {std::move(*images)}};
}

Result<NodeResult> execute_pairs(Call& call) {
    const auto paths = pictures_of(call, true);
    if (!paths) {
        return fail(paths.error());
    }
    auto captions = std::make_shared<List>();
    for (const fs::path& path : *paths) {
        auto caption = caption_of(path);
        if (!caption) {
            return fail(std::move(caption.error()));
        }
        captions->items.emplace_back(std::move(*caption));
    }
    auto images = load_all(call, *paths);
    if (!images) {
        return fail(std::move(images.error()));
    }
    return NodeResult{
        .outputs = {std::move(*images), std::shared_ptr<const List>(std::move(captions))}
    };
}

// All folders below the input folder, as ComfyUI offers them.
std::vector<std::string> list_folders(const Folders& folders) {
    std::vector<std::string> names;
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(folders.input, options, error), end;
         !error && entry != end && names.size() < kFoldersMax;
         entry.increment(error)) {
        std::error_code unknown;
        if (entry->is_directory(unknown)) {
            names.push_back(entry->path().lexically_relative(folders.input).generic_string());
        }
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace

NodeClass load_image_dataset_from_folder() {
    return {
        .name = "LoadImageDataSetFromFolder",
        .description = "Loads every picture of a folder.",
        .execute = &execute_pictures,
        .files = {{"folder", &list_folders}}
    };
}

NodeClass load_image_text_dataset_from_folder() {
    return {
        .name = "LoadImageTextDataSetFromFolder",
        .description =
            "Loads every picture of a folder, with the caption in the text file beside it.",
        .execute = &execute_pairs,
        .files = {{"folder", &list_folders}}
    };
}

}  // namespace comfyd::engine::nodes
