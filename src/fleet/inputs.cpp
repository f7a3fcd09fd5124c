#include "fleet/inputs.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "workflow/files/asset_ref.hpp"

namespace comfyd::fleet {
namespace {

constexpr std::string_view kHashPrefix = "blake3:";
constexpr std::size_t kExtensionBytesMax = 8;

bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// ".png", or empty when the name has none that is safe to pass on.
std::string extension_of(std::string_view name) {
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos) {
        return {};
    }
    const std::string_view tail = name.substr(dot + 1);
    const bool usable = !tail.empty() && tail.size() <= kExtensionBytesMax &&
                        std::all_of(tail.begin(), tail.end(), is_plain);
    return usable ? "." + std::string(tail) : std::string();
}

std::string_view extension_for(std::string_view content_type) {
    using Pair = std::pair<std::string_view, std::string_view>;
    static constexpr std::array<Pair, 21> kExtensions{{
        {"image/png", ".png"},       {"image/jpeg", ".jpg"},  {"image/webp", ".webp"},
        {"image/gif", ".gif"},       {"image/avif", ".avif"}, {"image/bmp", ".bmp"},
        {"image/heic", ".heic"},     {"image/tiff", ".tiff"}, {"image/x-exr", ".exr"},
        {"video/mp4", ".mp4"},       {"video/webm", ".webm"}, {"video/quicktime", ".mov"},
        {"video/x-msvideo", ".avi"}, {"audio/mpeg", ".mp3"},  {"audio/wav", ".wav"},
        {"audio/x-wav", ".wav"},     {"audio/flac", ".flac"}, {"audio/ogg", ".ogg"},
        {"audio/mp4", ".m4a"},       {"audio/aac", ".aac"},   {"text/plain", ".txt"},
    }};
    for (const auto& [type, extension] : kExtensions) {
        if (type == content_type) {
            return extension;
        }
    }
    return {};
}

}  // namespace

bool may_use_assets(std::string_view workflow) {
    return workflow::may_hold_asset_refs(workflow);
}

std::vector<AssetUse> find_asset_uses(json::object& prompt) {
    std::vector<AssetUse> found;
    workflow::each_asset_ref(
        prompt,
        [&found](std::string_view node_id, std::string_view, json::value& place) {
            if (auto asset = workflow::AssetRef::read(place)) {
                found.push_back(AssetUse{
                    &place,
                    std::string(node_id),
                    std::move(asset->id),
                    std::move(asset->hash),
                    std::move(asset->file_path),
                });
            }
        }
    );
    return found;
}

std::string input_name(const assets::Asset& asset) {
    std::string_view digits = asset.hash;
    if (digits.starts_with(kHashPrefix)) {
        digits.remove_prefix(kHashPrefix.size());
    }
    std::string extension = extension_of(asset.file_path);
    if (extension.empty()) {
        extension = extension_for(asset.content_type);
    }
    return std::string(digits) + extension;
}

Task<Result<assets::Asset>> find_asset(assets::Store& store, std::string tenant, AssetUse use) {
    const std::string where = "node " + use.node_id + ": ";
    if (!use.id.empty()) {
        const auto id = AssetId::parse(use.id);
        if (!id) {
            co_return fail(Code::missing_asset, where + "'" + use.id + "' is not an asset id");
        }
        auto asset = co_await store.get(std::move(tenant), *id);
        if (!asset && asset.error().code == Code::not_found) {
            co_return fail(
                Code::missing_asset,
                where + "asset " + use.id + " does not exist any more; upload the file again"
            );
        }
        co_return asset;
    }
    auto known = co_await store.find_hash(std::move(tenant), use.hash);
    if (!known) {
        co_return fail(std::move(known.error()));
    }
    if (!*known) {
        co_return fail(
            Code::missing_asset, where + "no asset has the hash '" + use.hash + "'; upload the file"
        );
    }
    assets::Asset asset = std::move(**known);
    if (!use.file_path.empty()) {
        asset.file_path = std::move(use.file_path);
    }
    co_return asset;
}

}  // namespace comfyd::fleet
