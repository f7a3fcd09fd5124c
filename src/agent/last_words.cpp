#include "agent/last_words.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/secret_names.hpp"
#include "base/text.hpp"

namespace comfyd::agent {
namespace {

constexpr std::size_t kHeardMax = 8 * 1024;
constexpr std::size_t kLinesMax = 3;
constexpr std::size_t kLineBytesMax = 200;
constexpr std::size_t kLinesAfterMax = 8;  // an exception: what said more has survived it

bool is_letter_or_digit(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// "module.SomeError: why", as the last line of a traceback.
bool is_exception(std::string_view line) {
    const std::string_view name = line.substr(0, line.find(':'));
    return (name.ends_with("Error") || name.ends_with("Exception")) &&
           std::ranges::all_of(name, [](char c) {
               return is_letter_or_digit(c) || c == '_' || c == '.';
           });
}

// ComfyUI's own lines begin with them.
std::string without_colours(std::string_view line) {
    constexpr std::string_view kBegin = "\x1b[";
    std::string made;
    while (!line.empty()) {
        const std::size_t begin = line.find(kBegin);
        made += line.substr(0, begin);
        const std::size_t end =
            begin == std::string_view::npos ? begin : line.find('m', begin + kBegin.size());
        line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
    }
    return made;
}

std::string presentable(std::string_view whole) {
    const std::string line = without_colours(whole);
    std::string made(line.substr(0, kLineBytesMax));
    std::ranges::replace_if(made, [](char c) { return c < ' ' || c == '\x7f'; }, '?');
    return made + (line.size() > kLineBytesMax ? "..." : "");
}

}  // namespace

void LastWords::hear(std::string_view bytes) {
    if (bytes.size() >= kHeardMax) {
        heard_ = bytes.substr(bytes.size() - kHeardMax);
        return;
    }
    heard_ += bytes;
    if (heard_.size() > 2 * kHeardMax) {
        heard_.erase(0, heard_.size() - kHeardMax);
    }
}

std::string LastWords::said() const {
    std::vector<std::string_view> lines;  // the last first
    // Hidden before it is cut: half a secret is one, too.
    const std::string heard = without_secrets(heard_, secrets_);
    std::string_view rest = heard;
    while (!rest.empty() && lines.size() <= kLinesAfterMax) {
        const std::size_t end = rest.find_last_of("\r\n");
        const std::string_view whole = end == std::string_view::npos ? rest : rest.substr(end + 1);
        rest = rest.substr(0, rest.size() - whole.size() - (whole.size() < rest.size() ? 1 : 0));
        const std::string_view line = trim(whole);
        if (is_exception(line)) {
            return presentable(line);
        }
        if (std::ranges::any_of(line, is_letter_or_digit)) {
            lines.push_back(line);
        }
    }
    std::string said;
    for (std::size_t n = std::min(lines.size(), kLinesMax); n > 0; --n) {
        said += (said.empty() ? "" : " / ") + presentable(lines[n - 1]);
    }
    return said;
}

}  // namespace comfyd::agent
