#include "workflow/files/asset_ref.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::string_view kType = "core/ASSET";

std::string text_of(const json::object& in, std::string_view key) {
    const json::value* found = json::find(in, key);
    return found != nullptr && found->is_string() ? std::string(view(found->get_string())) : "";
}

}  // namespace

bool is_asset_ref(const json::value& value) {
    const json::object* members = value.if_object();
    const json::value* type = members != nullptr ? members->if_contains("__type") : nullptr;
    return type != nullptr && type->is_string() && view(type->get_string()) == kType;
}

bool may_hold_asset_refs(std::string_view workflow) {
    // A slash may be escaped in JSON, so the word alone is looked for.
    return workflow.find("ASSET") != std::string_view::npos;
}

std::optional<AssetRef> AssetRef::read(const json::value& value) {
    if (!is_asset_ref(value)) {
        return std::nullopt;
    }
    const json::value* info = value.get_object().if_contains("info");
    if (info == nullptr || !info->is_object()) {
        return std::nullopt;
    }
    const json::object& from = info->get_object();
    return AssetRef{
        .id = text_of(from, "id"),
        .hash = text_of(from, "hash"),
        .file_path = text_of(from, "file_path"),
        .name = text_of(from, "name"),
    };
}

json::object AssetRef::to_json() const {
    json::object info;
    const auto add = [&info](const char* key, const std::string& text) {
        if (!text.empty()) {
            info[key] = text;
        }
    };
    add("id", id);
    add("hash", hash);
    add("file_path", file_path);
    add("name", name);
    json::object made;
    made["__type"] = boost::json::string_view(kType.data(), kType.size());
    made["info"] = std::move(info);
    return made;
}

}  // namespace comfyd::workflow
