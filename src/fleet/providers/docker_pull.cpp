#include "fleet/providers/docker_pull.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "comfy/members.hpp"
#include "fleet/providers/foreign_words.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::size_t kLineBytesMax = 1024 * 1024;
constexpr std::size_t kLayersMax = 1000;

bool has_any(std::string_view text, std::initializer_list<std::string_view> parts) {
    return std::ranges::any_of(parts, [&](std::string_view part) {
        return text.find(part) != std::string_view::npos;
    });
}

}  // namespace

std::string ImageName::registry() const {
    const std::string first = repository.substr(0, repository.find('/'));
    const bool is_host = first.size() < repository.size() &&
                         (first == "localhost" || first.find_first_of(".:") != std::string::npos);
    return is_host ? first : "docker.io";
}

Result<ImageName> parse_image(std::string_view text) {
    constexpr std::string_view kAllowed =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@";
    constexpr std::size_t kBytesMax = 500;
    ImageName image;
    const std::size_t at = text.find('@');
    std::string_view name = text.substr(0, at);
    const std::size_t slash = name.rfind('/');
    const std::size_t colon = name.rfind(':');
    const bool has_tag =
        colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
    image.repository = name.substr(0, has_tag ? colon : name.size());
    if (at != std::string_view::npos) {
        image.tag = text.substr(at + 1);
    } else {
        image.tag = has_tag ? name.substr(colon + 1) : "latest";
    }
    const bool is_right = !image.repository.empty() && !image.tag.empty() &&
                          text.size() <= kBytesMax &&
                          text.find_first_not_of(kAllowed) == std::string_view::npos;
    if (!is_right) {
        return fail(
            Code::invalid_argument,
            "'" + excerpt_of(text) + "' is no image such as registry.example.com/comfyui:1"
        );
    }
    return image;
}

std::string registry_login(
    const ImageName& image, std::string_view user, std::string_view password
) {
    std::string text = to_base64(json::serialize(json::object{
        {"username", user}, {"password", password}, {"serveraddress", image.registry()}
    }));
    std::ranges::replace(text, '+', '-');
    std::ranges::replace(text, '/', '_');
    return text;
}

Result<> PullProgress::take(std::string_view piece) {
    unfinished_ += piece;
    std::size_t begin = 0;
    for (std::size_t end = unfinished_.find('\n'); end != std::string::npos;
         end = unfinished_.find('\n', begin)) {
        auto taken = take_line(std::string_view(unfinished_).substr(begin, end - begin));
        if (!taken) {
            return taken;
        }
        begin = end + 1;
    }
    unfinished_.erase(0, begin);
    // The last line need not have an end; one that has none at all is not waited for.
    if (unfinished_.size() > kLineBytesMax) {
        return fail(Code::protocol_error, "the container engine tells of its pull without an end");
    }
    return json::parse(unfinished_) ? take_line(std::exchange(unfinished_, {})) : Result<>();
}

Result<> PullProgress::take_line(std::string_view line) {
    const auto parsed = json::parse_object(trim(line, " \t\r\n"));
    if (!parsed) {
        return {};  // nothing that we must understand
    }
    const std::string error = comfy::text_of(*parsed, "error");
    if (!error.empty()) {
        const bool is_not_there = has_any(
            lower(error),
            {"not found",
             "manifest unknown",
             "access denied",
             "unauthorized",
             "no such image",
             "name unknown"}
        );
        return fail(
            is_not_there ? Code::invalid_argument : Code::upstream_error,
            "the image cannot be pulled: " + presentable(error)
        );
    }
    const std::string id = comfy::text_of(*parsed, "id");
    const std::string status = comfy::text_of(*parsed, "status");
    const bool is_layer =
        !id.empty() && (layers_.contains(id) ||
                        (!status.starts_with("Pulling from") && layers_.size() < kLayersMax));
    if (!is_layer) {
        return {};
    }
    Layer& layer = layers_[id];
    double share = 0;
    if (const json::object* detail = comfy::object_of(*parsed, "progressDetail")) {
        const auto total = comfy::integer_of(*detail, "total");
        const auto current = comfy::integer_of(*detail, "current");
        if (total > 0) {
            layer.bytes = std::max(layer.bytes, static_cast<std::uint64_t>(total));
            share = std::clamp(static_cast<double>(current) / static_cast<double>(total), 0.0, 1.0);
        }
    }
    if (status == "Downloading") {
        layer.brought = std::max(layer.brought, share);
    } else if (status == "Download complete" || status == "Verifying Checksum") {
        layer.brought = 1;
    } else if (status == "Extracting") {
        layer.brought = 1;
        layer.unpacked = std::max(layer.unpacked, share);
    } else if (status == "Pull complete" || status == "Already exists") {
        layer.brought = 1;
        layer.unpacked = 1;
    }
    count();
    return {};
}

// Layers whose size is not known yet count as if they were of the mean size.
void PullProgress::count() {
    double bytes = 0;
    double known = 0;
    for (const auto& [id, layer] : layers_) {
        bytes += static_cast<double>(layer.bytes);
        known += layer.bytes > 0 ? 1 : 0;
    }
    const double mean = known > 0 ? bytes / known : 1;
    double all = 0;
    double done = 0;
    for (const auto& [id, layer] : layers_) {
        const double size = layer.bytes > 0 ? static_cast<double>(layer.bytes) : mean;
        all += 2 * size;
        done += size * (layer.brought + layer.unpacked);
    }
    if (all > 0) {
        percent_ = std::max(percent_, static_cast<int>(100 * done / all));
    }
}

}  // namespace comfyd::fleet
