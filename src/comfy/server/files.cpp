#include "comfy/server/files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/disk.hpp"

namespace comfyd::comfy::server {
namespace {

constexpr std::array<std::string_view, 3> kFolderTypes{"input", "output", "temp"};

// nullopt: it leads out. "." and slashes at the end say nothing.
std::optional<std::string> clean_subfolder(const std::string& subfolder) {
    if (subfolder.empty()) {
        return subfolder;
    }
    const auto inner = confined("/", subfolder);
    if (!inner) {
        return std::nullopt;
    }
    std::string clean = inner->lexically_normal().relative_path().generic_string();
    while (clean.ends_with('/') || clean == ".") {
        clean.pop_back();
    }
    return clean;
}

}  // namespace

bool is_folder_type(std::string_view type) {
    return std::ranges::find(kFolderTypes, type) != kFolderTypes.end();
}

void take_annotation(FileName& file) {
    for (const std::string_view type : kFolderTypes) {
        const std::string ending = " [" + std::string(type) + "]";
        if (file.name.ends_with(ending)) {
            file.name.resize(file.name.size() - ending.size());
            file.type = type;
            return;
        }
    }
}

tl::expected<FileName, int> check_shown(FileName file) {
    take_annotation(file);
    if (file.name.empty() || file.name.front() == '/' ||
        file.name.find("..") != std::string::npos || !is_folder_type(file.type)) {
        return tl::unexpected(400);
    }
    auto subfolder = clean_subfolder(file.subfolder);
    if (!subfolder) {
        return tl::unexpected(403);
    }
    file.subfolder = std::move(*subfolder);
    file.name.erase(0, file.name.rfind('/') + 1);
    return file;
}

tl::expected<FileName, int> check_upload(FileName file) {
    if (!is_folder_type(file.type)) {
        return tl::unexpected(500);
    }
    auto subfolder = clean_subfolder(file.subfolder);
    const auto name = confined("/", file.name);
    const bool is_file = name && name->has_filename() && name->lexically_normal() != "/" &&
                         !file.name.ends_with("/.") && file.name != ".";
    if (!subfolder || !is_file) {
        return tl::unexpected(400);
    }
    file.subfolder = std::move(*subfolder);
    return file;
}

std::string_view content_type_of(PictureFormat format) {
    switch (format) {
        case PictureFormat::webp:
            return "image/webp";
        case PictureFormat::jpeg:
            return "image/jpeg";
        case PictureFormat::png:
            break;
    }
    return "image/png";
}

std::optional<PictureForm> wanted_form(const Call& call) {
    PictureForm form;
    const std::string_view channel = call.query_value("channel");
    if (call.has_query("preview")) {
        const std::string_view preview = call.query_value("preview");
        const auto semicolon = std::min(preview.find(';'), preview.size());
        const bool jpeg =
            preview.substr(0, semicolon) == "jpeg" && channel.find('a') == std::string_view::npos;
        form.format = jpeg ? PictureFormat::jpeg : PictureFormat::webp;
        const std::string_view number = preview.substr(std::min(semicolon + 1, preview.size()));
        int quality = 0;
        std::from_chars(number.data(), number.data() + number.size(), quality);
        form.quality = quality > 0 ? std::min(quality, 100) : form.quality;
        return form;
    }
    if (channel == "rgb" || channel == "a") {
        form.channel = channel == "a" ? Channel::alpha : Channel::rgb;
        return form;
    }
    return std::nullopt;
}

}  // namespace comfyd::comfy::server
