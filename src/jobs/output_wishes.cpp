#include "jobs/output_wishes.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

namespace comfyd::jobs {
namespace {

constexpr std::array kThumbnails{1024, 512, 256};
constexpr int kSideMax = 16'384;

tl::unexpected<Error> wrong(std::string_view member, const std::string& what) {
    const std::string field = "output_config." + std::string(member);
    return fail(Code::invalid_argument, "'" + field + "' " + what, {{"field", field}});
}

Result<std::optional<int>> read_int(const json::object& from, std::string_view member, int max) {
    const json::value* found = json::find(from, member);
    if (found == nullptr || found->is_null()) {
        return std::nullopt;
    }
    if (found->is_number()) {
        const double number = found->to_number<double>();
        if (number >= 1 && number <= max && number == static_cast<int>(number)) {
            return static_cast<int>(number);
        }
    }
    return wrong(member, "must be a whole number from 1 to " + std::to_string(max));
}

Result<bool> read_bool(const json::object& from, std::string_view member) {
    const json::value* found = json::find(from, member);
    if (found == nullptr || found->is_null()) {
        return false;
    }
    if (found->is_bool()) {
        return found->get_bool();
    }
    return wrong(member, "must be true or false");
}

Result<std::optional<PictureFormat>> read_format(const json::object& from) {
    const json::value* found = json::find(from, "format");
    if (found == nullptr || found->is_null()) {
        return std::nullopt;
    }
    const std::string_view name =
        found->is_string() ? std::string_view(found->get_string()) : std::string_view();
    for (const auto format :
         {PictureFormat::png, PictureFormat::jpeg, PictureFormat::webp, PictureFormat::avif}) {
        if (name == to_string(format)) {
            return format;
        }
    }
    if (name == "jpg") {
        return PictureFormat::jpeg;
    }
    return wrong(
        "format",
        "must be \"png\", \"jpeg\", \"webp\" or \"avif\": into these pictures are converted"
    );
}

// True stands for all sizes.
Result<std::vector<int>> read_thumbnails(const json::object& from) {
    const json::value* found = json::find(from, "thumbnails");
    std::vector<int> sizes;
    if (found == nullptr || found->is_null() || *found == json::value(false)) {
        return sizes;
    }
    if (*found == json::value(true)) {
        return std::vector<int>(kThumbnails.begin(), kThumbnails.end());
    }
    const auto refuse = [] {
        return wrong("thumbnails", "must be true, or a list of the sizes 256, 512 and 1024");
    };
    if (!found->is_array()) {
        return refuse();
    }
    for (const json::value& one : found->get_array()) {
        const double size = one.is_number() ? one.to_number<double>() : 0;
        if (std::ranges::find(kThumbnails, size) == kThumbnails.end()) {
            return refuse();
        }
        sizes.push_back(static_cast<int>(size));
    }
    std::ranges::sort(sizes, std::greater<>());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

// Keeps the first failure of several readings.
template <class T>
void take(Result<T> read, T& into, std::optional<Error>& failure) {
    if (read) {
        into = std::move(*read);
    } else if (!failure) {
        failure = std::move(read.error());
    }
}

}  // namespace

std::string_view to_string(PictureFormat format) {
    switch (format) {
        case PictureFormat::png:
            return "png";
        case PictureFormat::jpeg:
            return "jpeg";
        case PictureFormat::webp:
            return "webp";
        case PictureFormat::avif:
            return "avif";
    }
    return "png";
}

Result<OutputWishes> OutputWishes::from_json(const json::object& output_config) {
    constexpr int kQualityMax = 100;
    OutputWishes wishes;
    std::optional<Error> failure;
    take(read_format(output_config), wishes.format, failure);
    take(read_int(output_config, "quality", kQualityMax), wishes.quality, failure);
    take(read_bool(output_config, "lossless"), wishes.lossless, failure);
    take(read_int(output_config, "max_size", kSideMax), wishes.side_max, failure);
    take(read_int(output_config, "max_width", kSideMax), wishes.width_max, failure);
    take(read_int(output_config, "max_height", kSideMax), wishes.height_max, failure);
    take(read_bool(output_config, "strip_metadata"), wishes.strip_metadata, failure);
    take(read_thumbnails(output_config), wishes.thumbnails, failure);
    take(read_bool(output_config, "poster"), wishes.poster, failure);
    if (failure) {
        return fail(std::move(*failure));
    }
    if (wishes.lossless && wishes.format == PictureFormat::jpeg) {
        return wrong("lossless", "is not possible with JPEG: ask for png, webp or avif");
    }
    return wishes;
}

OutputWishes OutputWishes::of(const json::object& dialect_data) {
    const json::value* config = json::find(dialect_data, "output_config");
    if (config == nullptr || !config->is_object()) {
        return {};
    }
    auto wishes = from_json(config->get_object());
    return wishes ? std::move(*wishes) : OutputWishes();
}

json::object OutputWishes::to_json() const {
    json::object made;
    if (!any()) {
        return made;
    }
    if (format) {
        made["format"] = to_string(*format);
    }
    const auto add = [&made](const char* name, const std::optional<int>& number) {
        if (number) {
            made[name] = *number;
        }
    };
    add("quality", quality);
    add("max_size", side_max);
    add("max_width", width_max);
    add("max_height", height_max);
    for (const auto& [name, is_wanted] :
         {std::pair("lossless", lossless),
          std::pair("strip_metadata", strip_metadata),
          std::pair("poster", poster)}) {
        if (is_wanted) {
            made[name] = true;
        }
    }
    if (!thumbnails.empty()) {
        made["thumbnails"] = json::array(thumbnails.begin(), thumbnails.end());
    }
    return made;
}

}  // namespace comfyd::jobs
