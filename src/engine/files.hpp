// The engine's only ways to the disk: names from prompts are resolved inside ComfyUI's folders, and
// files appear under their final name complete or not at all. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "engine/engine.hpp"

namespace comfyd::engine {

inline constexpr std::uint64_t kFileBytesMax = 512ULL * 1024 * 1024;

// ComfyUI's annotated names: "x.png", "sub/x.png", "x.png [output]". nullopt when the name leads
// out of its folder or is no file there.
std::optional<std::filesystem::path> find_input_file(std::string_view name, const Folders& folders);

// The names of pictures directly in the input folder, sorted as ComfyUI shows them.
std::vector<std::string> list_input_pictures(const Folders& folders);

// The same for sounds, and for films, which have some.
std::vector<std::string> list_input_audio(const Folders& folders);

// Regular files up to kFileBytesMax. Code::not_found, payload_too_large or storage_unavailable.
Result<std::string> read_file(const std::filesystem::path& path);

// Unfinished files of processes that were killed; those that somebody writes stay.
void remove_leftovers(const std::filesystem::path& root);

// Where a prefix such as "sub/name_%width%" leads: folder (made), subfolder and first part of the
// file name.
struct SavePlace {
    std::filesystem::path folder;
    std::string subfolder;  // as in the ui dictionary
    std::string base;       // may contain %batch_num%
    std::uint64_t counter = 1;
    std::string_view tail = "_";  // between the counter and the extension
};
Result<SavePlace> make_save_place(
    const std::filesystem::path& root,
    std::string_view prefix,
    std::size_t width,
    std::size_t height
);

// Appends to the file; false stops the writing.
using FileSink = std::function<bool(const void* data, std::size_t size)>;

// Writes a file under the first free name `<base>_<counter><tail>.<extension>`, counting up from
// `counter`, and returns the name. Never replaces a file, also not one that another process makes
// meanwhile. An error of `write` leaves nothing behind.
Result<std::string> save_counted(
    const SavePlace& place,
    std::uint64_t counter,
    std::size_t batch_number,
    std::string_view extension,
    const std::function<Result<>(const FileSink& sink)>& write
);

}  // namespace comfyd::engine
