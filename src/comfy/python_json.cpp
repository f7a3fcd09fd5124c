#include <array>

#include "comfy/messages.hpp"

namespace comfyd::comfy {
namespace {

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The text with Python's number words replaced by null; strings are left alone.
std::string without_number_words(std::string_view text) {
    static constexpr std::array<std::string_view, 3> kWords{"-Infinity", "Infinity", "NaN"};
    std::string clean;
    clean.reserve(text.size());
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string && c == '\\' && i + 1 < text.size()) {
            clean += c;
            clean += text[++i];
            continue;
        }
        if (c == '"') {
            in_string = !in_string;
        }
        std::string_view word;
        if (!in_string && (c == '-' || is_letter(c))) {
            for (const std::string_view candidate : kWords) {
                word = text.substr(i).starts_with(candidate) ? candidate : word;
            }
        }
        if (word.empty()) {
            clean += c;
        } else {
            clean += "null";
            i += word.size() - 1;
        }
    }
    return clean;
}

}  // namespace

Result<json::value> parse_python(std::string_view text, json::storage_ptr storage) {
    auto document = json::parse(text, storage);
    if (document) {
        return document;
    }
    const bool may_hold_words = text.find("NaN") != std::string_view::npos ||
                                text.find("Infinity") != std::string_view::npos;
    if (!may_hold_words) {
        return document;
    }
    return json::parse(without_number_words(text), std::move(storage));
}

}  // namespace comfyd::comfy
