#include "engine/values/value.hpp"

#include <array>

namespace comfyd::engine {
namespace {

template <class... Kinds>
bool is_one_of(const Value& value) {
    return (std::holds_alternative<Kinds>(value) || ...);
}

bool matches_one(const Value& value, std::string_view type) {
    if (type == "*") {
        return true;
    }
    if (const auto* object = std::get_if<std::shared_ptr<const Object>>(&value)) {
        return (*object)->type() == type;
    }
    if (type == "IMAGE") {
        return is_one_of<Image, ImageView>(value);
    }
    if (type == "MASK") {
        return is_one_of<Mask, MaskView>(value);
    }
    if (type == "INT") {
        return is_one_of<std::int64_t, std::uint64_t>(value);
    }
    if (type == "FLOAT") {
        return is_one_of<double, std::int64_t, std::uint64_t>(value);
    }
    if (type == "BOOLEAN") {
        return is_one_of<bool>(value);
    }
    if (type == "STRING") {
        return is_one_of<std::string>(value);
    }
    // A combo may offer numbers; all else is a text or data in JSON's form.
    return !is_one_of<Image, Mask, ImageView, MaskView>(value);
}

}  // namespace

Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

bool matches(const Value& value, std::string_view type) {
    while (true) {
        const std::size_t comma = type.find(',');
        std::string_view part = type.substr(0, comma);
        while (part.starts_with(' ')) {
            part.remove_prefix(1);
        }
        if (matches_one(value, part)) {
            return true;
        }
        if (comma == type.npos) {
            return false;
        }
        type.remove_prefix(comma + 1);
    }
}

ImageView to_image_view(const Value& value) {
    const auto* image = std::get_if<Image>(&value);
    return image != nullptr ? ImageView(*image) : std::get<ImageView>(value);
}

MaskView to_mask_view(const Value& value) {
    const auto* mask = std::get_if<Mask>(&value);
    return mask != nullptr ? MaskView(*mask) : std::get<MaskView>(value);
}

std::string_view kind_of(const Value& value) {
    if (const auto* object = std::get_if<std::shared_ptr<const Object>>(&value)) {
        return (*object)->type();
    }
    static constexpr std::array<std::string_view, std::variant_size_v<Value::variant>> kNames = {
        "IMAGE",
        "MASK",
        "INT",
        "FLOAT",
        "BOOLEAN",
        "STRING",
        "None",
        "INT",
        "data",
        "object",
        "list",
        "IMAGE",
        "MASK",
        "blocker"
    };
    return kNames[value.index()];
}

}  // namespace comfyd::engine
