#include "workflow/files/private_names.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "workflow/files/choices.hpp"

namespace comfyd::workflow {
namespace {

constexpr std::string_view kStart = "comfyd_";
constexpr std::size_t kFolderDigits = 32;
constexpr std::size_t kFolderSize = kStart.size() + kFolderDigits;
constexpr std::size_t kEarlierDigits = 16;
constexpr std::size_t kHashDigits = 64;
constexpr int kDepthMax = 64;

// Classes with one of these ask for the folder apart from the file's name, and take the prefix as
// it is.
constexpr std::array<std::string_view, 6> kFolderInputs{
    "folder_name", "folder", "output_path", "output_dir", "output_folder", "path"
};

bool is_digit(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::size_t count_digits(std::string_view text) {
    const auto end = std::ranges::find_if_not(text, is_digit);
    return static_cast<std::size_t>(end - text.begin());
}

bool starts_with_folder(std::string_view text) {
    return text.starts_with(kStart) && count_digits(text.substr(kStart.size())) == kFolderDigits;
}

bool is_separator(char c) {
    return c == '/' || c == '\\';
}

void hide(json::value& value, int depth) {
    if (boost::json::string* text = value.if_string()) {
        if (text->find("comfyd_") != boost::json::string::npos) {
            *text = without_private_folders(std::string(*text));
        }
    } else if (json::array* list = value.if_array(); list != nullptr && depth < kDepthMax) {
        for (json::value& item : *list) {
            hide(item, depth + 1);
        }
    } else if (json::object* members = value.if_object(); members != nullptr && depth < kDepthMax) {
        for (auto& member : *members) {
            hide(member.value(), depth + 1);
        }
    }
}

// nullptr: the node has none that is a text.
boost::json::string* find_prefix(json::object& node) {
    json::value* inputs = node.if_contains("inputs");
    json::object* values = inputs != nullptr ? inputs->if_object() : nullptr;
    json::value* prefix = values != nullptr ? values->if_contains("filename_prefix") : nullptr;
    return prefix != nullptr ? prefix->if_string() : nullptr;
}

bool stays_inside(const std::string& prefix) {
    const std::filesystem::path path = std::filesystem::path(prefix).lexically_normal();
    return !path.is_absolute() && (path.empty() || *path.begin() != "..");
}

}  // namespace

std::string private_folder(std::string_view secret, std::string_view tenant) {
    const std::string digits = to_hex(hmac_sha256(secret, "worker folder\n" + std::string(tenant)));
    return std::string(kStart) + digits.substr(0, kFolderDigits);
}

// In any case: some file systems make no difference. Prompts are long, and few letters in them are
// its last one.
bool holds_private_name(std::string_view text) {
    static_assert(kStart.ends_with('_') && kStart.find('_') == kStart.size() - 1);
    const auto same = [](char a, char b) { return lower(a) == b; };
    for (auto last = text.find('_', kStart.size() - 1); last != text.npos;
         last = text.find('_', last + 1)) {
        const std::string_view start = text.substr(last + 1 - kStart.size(), kStart.size());
        if (std::ranges::equal(start, kStart, same) &&
            count_digits(text.substr(last + 1)) >= kEarlierDigits) {
            return true;
        }
    }
    return false;
}

std::optional<std::string> hash_in_private_name(std::string_view name) {
    if (!starts_with_folder(name) || name.size() <= kFolderSize ||
        !is_separator(name[kFolderSize])) {
        return std::nullopt;
    }
    const std::string_view file = name.substr(kFolderSize + 1);
    const std::size_t digits = count_digits(file);
    if (digits != kHashDigits || (digits < file.size() && file[digits] != '.')) {
        return std::nullopt;
    }
    return "blake3:" + std::string(file.substr(0, digits));
}

std::string without_private_folders(std::string text) {
    for (std::size_t at = text.find(kStart); at != std::string::npos; at = text.find(kStart, at)) {
        if (!starts_with_folder(std::string_view(text).substr(at))) {
            at += kStart.size();
            continue;
        }
        const std::size_t end = at + kFolderSize;
        if (end == text.size()) {  // the folder itself
            text.erase(at);
            if (!text.empty() && is_separator(text.back())) {
                text.pop_back();
            }
        } else if (is_separator(text[end])) {
            text.erase(at, kFolderSize + 1);
        } else {  // an empty prefix in the folder has become the name of the file; ComfyUI's is "."
            text.replace(at, kFolderSize, ".");
        }
    }
    return text;
}

void hide_private_folders(json::value& value) {
    hide(value, 0);
}

void hide_private_folders(json::object& value) {
    for (auto& member : value) {
        hide(member.value(), 1);
    }
}

std::optional<json::object> without_private_choices(const json::object& info) {
    return without_choices(info, holds_private_name);
}

bool save_in_folder(json::object& node, const std::string& folder) {
    boost::json::string* text = find_prefix(node);
    if (text == nullptr || std::ranges::any_of(kFolderInputs, [&](std::string_view name) {
            return node.at("inputs").get_object().contains(name);
        })) {
        return false;
    }
    const std::string wanted(*text);
    if (!stays_inside(wanted)) {
        return false;
    }
    *text = folder + "/" + wanted;
    return true;
}

void forget_folders(json::object& workflow) {
    for (auto& entry : workflow) {
        json::object* node = entry.value().if_object();
        if (boost::json::string* text = node != nullptr ? find_prefix(*node) : nullptr) {
            *text = without_private_folders(std::string(*text));
        }
    }
}

}  // namespace comfyd::workflow
