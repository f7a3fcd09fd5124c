// Files as ComfyUI's surface names and shows them. Pure.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>

#include <tl/expected.hpp>

#include "comfy/server/call.hpp"

namespace comfyd::comfy::server {

struct FileName {
    std::string name;
    std::string subfolder{};
    std::string type = "output";  // "input", "output", "temp"
};

bool is_folder_type(std::string_view type);
// "a.png [temp]" -> "a.png" and "temp". Without such an ending the type stays as it is.
void take_annotation(FileName& file);
// The file that a request to show one means, or the status that refuses it: 400 for what is no name
// or no type, 403 for a subfolder that leads out.
tl::expected<FileName, int> check_shown(FileName file);
// The place that an upload is to have, or the status that refuses it.
tl::expected<FileName, int> check_upload(FileName file);

// What a file holds, and what is told beside it.
struct ShownFile {
    std::variant<std::filesystem::path, std::string> content;  // on the disk, or the bytes
    std::string content_type{};                                // for a name that tells none
    std::string etag{};     // without quotes; empty: by the time and size of the file
    std::string caching{};  // empty: as the client likes
};

// Another form of a picture.
enum class Channel { rgba, rgb, alpha };
enum class PictureFormat { webp, jpeg, png };
struct PictureForm {
    Channel channel = Channel::rgba;
    PictureFormat format = PictureFormat::png;
    int quality = 90;      // 1 to 100, not of PNG
    int longest_side = 0;  // it is made smaller where it has more; 0: any
};
std::string_view content_type_of(PictureFormat format);
// nullopt: the file as it is.
std::optional<PictureForm> wanted_form(const Call& call);

}  // namespace comfyd::comfy::server
