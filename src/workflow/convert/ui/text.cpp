#include "workflow/convert/ui/text.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <vector>

namespace comfyd::workflow::ui {
namespace {

constexpr std::size_t kBracesMax = 64;  // braces inside braces

std::string without_comments(std::string_view text) {
    std::string kept;
    kept.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        if (text.substr(i, 2) == "/*") {
            const std::size_t end = text.find("*/", i + 2);
            if (end != std::string_view::npos) {
                i = end + 2;
                continue;
            }
        } else if (text.substr(i, 2) == "//") {
            i = std::min(text.find_first_of("\r\n", i), text.size());
            continue;
        }
        kept += text[i++];
    }
    return kept;
}

class Chooser {
public:
    Chooser(std::string_view text, const Choose& choose, std::size_t depth)
        : text_(text), choose_(choose), depth_(depth) {}

    std::string run() {
        std::string made;
        while (at_ < text_.size()) {
            const char c = text_[at_++];
            if (c == '\\') {
                made += escaped();
            } else if (c == '{' && depth_ < kBracesMax) {
                made += block();
            } else {
                made += c;
            }
        }
        return without_backslashes(made);
    }

private:
    std::string escaped() {
        return at_ < text_.size() ? std::string{'\\', text_[at_++]} : std::string("\\");
    }

    // Behind a "{"; up to its "}" or the end.
    std::string block() {
        std::vector<std::string> choices(1);
        std::size_t open = 0;
        while (at_ < text_.size()) {
            const char c = text_[at_++];
            if (c == '\\') {
                choices.back() += escaped();
                continue;
            }
            if (c == '}' && open == 0) {
                break;
            }
            if (c == '|' && open == 0) {
                choices.emplace_back();
                continue;
            }
            open = c == '{' ? open + 1 : c == '}' ? open - 1 : open;
            choices.back() += c;
        }
        const std::size_t chosen =
            choices.size() > 1 && choose_ ? choose_(choices.size()) % choices.size() : 0;
        return Chooser(without_comments(choices[chosen]), choose_, depth_ + 1).run();
    }

    static std::string without_backslashes(std::string_view text) {
        std::string made;
        made.reserve(text.size());
        for (std::size_t i = 0; i < text.size(); ++i) {
            const bool drops = text[i] == '\\' && i + 1 < text.size() &&
                               std::string_view("{}|").find(text[i + 1]) != std::string_view::npos;
            if (drops) {
                ++i;
            }
            made += text[i];
        }
        return made;
    }

    std::string_view text_;
    const Choose& choose_;
    std::size_t depth_;
    std::size_t at_ = 0;
};

std::string for_file_name(std::string text) {
    for (char& c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (code < 0x20 || code == 0x7f ||
            std::string_view("/?<>\\:*|\"").find(c) != std::string_view::npos) {
            c = '_';
        }
    }
    return text;
}

std::string padded(int number, std::size_t width) {
    std::string text = std::to_string(number);
    return text.size() < width ? std::string(width - text.size(), '0') + text : text;
}

// yyyy, yy, MM, M, dd, d, hh, h, mm, m, ss, s.
std::string format_date(std::string_view format, Time now) {
    const std::time_t seconds = static_cast<std::time_t>(to_unix_ms(now) / 1000);
    std::tm parts{};
    localtime_r(&seconds, &parts);
    std::string made;
    for (std::size_t i = 0; i < format.size();) {
        std::size_t run = 1;
        while (i + run < format.size() && format[i + run] == format[i]) {
            ++run;
        }
        const std::size_t width = run >= 2 ? 2 : 1;
        switch (format[i]) {
            case 'y':
                made += run >= 4   ? padded(parts.tm_year + 1900, 4)
                        : run >= 2 ? padded(parts.tm_year % 100, 2)
                                   : "y";
                break;
            case 'M':
                made += padded(parts.tm_mon + 1, width);
                break;
            case 'd':
                made += padded(parts.tm_mday, width);
                break;
            case 'h':
                made += padded(parts.tm_hour, width);
                break;
            case 'm':
                made += padded(parts.tm_min, width);
                break;
            case 's':
                made += padded(parts.tm_sec, width);
                break;
            default:
                made.append(run, format[i]);
        }
        i += run;
    }
    return made;
}

std::string number_text(double value) {
    if (std::abs(value) < 1e15 && value == std::floor(value)) {
        return std::to_string(static_cast<std::int64_t>(value));
    }
    std::array<char, 400> buffer{};
    const double size = std::abs(value);
    const auto format =
        size >= 1e21 || size < 1e-6 ? std::chars_format::scientific : std::chars_format::fixed;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format);
    std::string text(buffer.data(), end.ptr);
    // 1e-07 there is 1e-7 here.
    if (const auto e = text.find('e'); e != std::string::npos && text[e + 2] == '0') {
        text.erase(e + 2, 1);
    }
    return text;
}

}  // namespace

std::string resolve_choices(std::string_view text, const Choose& choose) {
    const std::string plain = without_comments(text);
    return Chooser(plain, choose, 0).run();
}

std::string replace_names(std::string_view text, const FindWidget& find, std::optional<Time> now) {
    std::string made;
    while (!text.empty()) {
        const std::size_t start = text.find('%');
        const std::size_t end =
            start != std::string_view::npos ? text.find('%', start + 1) : std::string_view::npos;
        if (end == std::string_view::npos) {
            break;
        }
        made += text.substr(0, start);
        const std::string_view name = text.substr(start + 1, end - start - 1);
        const std::size_t dot = name.find('.');
        const json::value* value = nullptr;
        if (name.empty()) {
            // Two signs in a row: the second may start a name.
            made += '%';
            text.remove_prefix(end);
            continue;
        }
        if (dot != std::string_view::npos && name.find('.', dot + 1) == std::string_view::npos) {
            value = find(name.substr(0, dot), name.substr(dot + 1));
        }
        if (value != nullptr) {
            made += for_file_name(script_text(*value));
        } else if (name.starts_with("date:") && now) {
            made += format_date(name.substr(5), *now);
        } else {
            made += text.substr(start, end + 1 - start);
        }
        text.remove_prefix(end + 1);
    }
    made += text;
    return made;
}

std::string script_text(const json::value& value) {
    if (value.is_string()) {
        return std::string(value.get_string().data(), value.get_string().size());
    }
    if (value.is_null()) {
        return "";
    }
    return value.is_double() ? number_text(value.get_double()) : json::serialize(value);
}

}  // namespace comfyd::workflow::ui
