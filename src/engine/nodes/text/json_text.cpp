#include "engine/nodes/text/json_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/nodes/text/unicode.hpp"
#include "workflow/graph/python_text.hpp"

namespace comfyd::engine::nodes {
namespace {

constexpr int kDepthMax = 500;

// A value by how Python shows it; objects keep their members.
struct Shown {
    enum class Kind { text, null, object, other } kind = Kind::other;
    std::string text;  // the characters of a text, else repr()
    std::vector<std::string> keys{};
    std::vector<Shown> members{};  // by the places of `keys`
};

std::string repr(const Shown& value) {
    return value.kind == Shown::Kind::text ? workflow::python_repr(json::value(value.text))
                                           : value.text;
}

class Reader {
public:
    Reader(std::string_view text, const std::function<bool()>& stopped)
        : text_(text), stopped_(stopped) {}

    std::optional<Shown> read_document() {
        auto value = read_value(0);
        skip_spaces();
        return value && at_ == text_.size() ? std::move(value) : std::nullopt;
    }
    bool too_deep() const { return too_deep_; }

private:
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    bool accept(char c) {
        const bool there = at_ < text_.size() && text_[at_] == c;
        at_ += there ? 1 : 0;
        return there;
    }
    void skip_spaces() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') {
            ++at_;
        }
    }
    bool accept_word(std::string_view word) {
        const bool there = text_.substr(at_).starts_with(word);
        at_ += there ? word.size() : 0;
        return there;
    }

    std::optional<Shown> read_value(int depth) {
        skip_spaces();
        if (depth > kDepthMax || stopped_()) {
            too_deep_ = depth > kDepthMax;
            return std::nullopt;
        }
        if (accept('"')) {
            return read_text();
        }
        if (accept('{')) {
            return read_object(depth);
        }
        if (accept('[')) {
            return read_array(depth);
        }
        static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
            {"true", "True"},
            {"false", "False"},
            {"NaN", "nan"},
            {"Infinity", "inf"},
            {"-Infinity", "-inf"},
        };
        for (const auto& [word, shown] : kWords) {
            if (accept_word(word)) {
                return Shown{.text = std::string(shown)};
            }
        }
        if (accept_word("null")) {
            return Shown{.kind = Shown::Kind::null, .text = "None"};
        }
        return read_number();
    }

    std::size_t skip_digits() {
        const std::size_t from = at_;
        while (peek() >= '0' && peek() <= '9') {
            ++at_;
        }
        return at_ - from;
    }

    std::optional<Shown> read_number() {
        const std::size_t from = at_;
        accept('-');
        const bool zero = peek() == '0';
        if (zero) {
            ++at_;
        } else if (skip_digits() == 0) {
            return std::nullopt;
        }
        bool whole = true;
        std::size_t end = at_;
        if (accept('.') && skip_digits() > 0) {
            whole = false;
            end = at_;
        }
        at_ = end;
        if (accept('e') || accept('E')) {
            if (!accept('+')) {
                accept('-');
            }
            if (skip_digits() > 0) {
                whole = false;
                end = at_;
            }
        }
        at_ = end;
        const std::string written(text_.substr(from, end - from));
        if (whole) {
            return Shown{.text = written == "-0" ? "0" : written};
        }
        double number = 0;
        if (std::from_chars(written.data(), written.data() + written.size(), number).ec ==
            std::errc::result_out_of_range) {
            number = std::strtod(written.c_str(), nullptr);
        }
        return Shown{.text = workflow::python_repr(json::value(number))};
    }

    std::optional<char32_t> read_hex() {
        unsigned value = 0;
        if (text_.size() - at_ < 4) {
            return std::nullopt;
        }
        const char* begin = text_.data() + at_;
        const auto parsed = std::from_chars(begin, begin + 4, value, 16);
        if (parsed.ec != std::errc() || parsed.ptr != begin + 4) {
            return std::nullopt;
        }
        at_ += 4;
        return value;
    }

    bool read_escape(std::string& out) {
        if (at_ >= text_.size()) {
            return false;
        }
        static constexpr std::string_view kFrom = "\"\\/bfnrt";
        static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
        const char c = text_[at_++];
        if (const std::size_t known = kFrom.find(c); known != kFrom.npos) {
            out += kTo[known];
            return true;
        }
        auto point = c == 'u' ? read_hex() : std::nullopt;
        if (!point) {
            return false;
        }
        if (*point >= 0xD800 && *point < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
            const std::size_t back = at_;
            at_ += 2;
            const auto low = read_hex();
            if (low && *low >= 0xDC00 && *low < 0xE000) {
                point = 0x10000 + ((*point - 0xD800) << 10) + (*low - 0xDC00);
            } else {
                at_ = back;
            }
        }
        append_utf8(out, *point >= 0xD800 && *point < 0xE000 ? 0xFFFD : *point);
        return true;
    }

    std::optional<Shown> read_text() {
        Shown value{.kind = Shown::Kind::text, .text = {}};
        while (at_ < text_.size()) {
            const char c = text_[at_++];
            if (c == '"') {
                return value;
            }
            if (c == '\\') {
                if (!read_escape(value.text)) {
                    return std::nullopt;
                }
            } else if (static_cast<unsigned char>(c) < 0x20) {
                return std::nullopt;
            } else {
                value.text += c;
            }
        }
        return std::nullopt;
    }

    std::optional<Shown> read_array(int depth) {
        Shown value{.text = "["};
        skip_spaces();
        if (accept(']')) {
            value.text += ']';
            return value;
        }
        while (true) {
            const auto item = read_value(depth + 1);
            if (!item) {
                return std::nullopt;
            }
            value.text += repr(*item);
            skip_spaces();
            if (accept(']')) {
                value.text += ']';
                return value;
            }
            if (!accept(',')) {
                return std::nullopt;
            }
            value.text += ", ";
        }
    }

    std::optional<Shown> read_object(int depth) {
        Shown value{.kind = Shown::Kind::object, .text = {}};
        std::map<std::string, std::size_t> places;
        skip_spaces();
        bool more = !accept('}');
        while (more) {
            skip_spaces();
            if (!accept('"')) {
                return std::nullopt;
            }
            auto key = read_text();
            skip_spaces();
            if (!key || !accept(':')) {
                return std::nullopt;
            }
            auto member = read_value(depth + 1);
            if (!member) {
                return std::nullopt;
            }
            // A repeated key keeps its place and takes the later value.
            const auto [known, added] = places.emplace(key->text, value.members.size());
            if (added) {
                value.keys.push_back(std::move(key->text));
                value.members.push_back(std::move(*member));
            } else {
                value.members[known->second] = std::move(*member);
            }
            skip_spaces();
            more = !accept('}');
            if (more && !accept(',')) {
                return std::nullopt;
            }
        }
        value.text = "{";
        for (std::size_t i = 0; i < value.keys.size(); ++i) {
            value.text += i > 0 ? ", " : "";
            value.text +=
                workflow::python_repr(json::value(value.keys[i])) + ": " + repr(value.members[i]);
        }
        value.text += '}';
        if (depth > 0) {
            value.keys.clear();
            value.members.clear();
        }
        return value;
    }

    std::string_view text_;
    const std::function<bool()>& stopped_;
    std::size_t at_ = 0;
    bool too_deep_ = false;
};

}  // namespace

JsonMember find_json_member(
    std::string_view text,
    std::string_view key,
    const std::function<bool()>& stopped,
    std::string& shown
) {
    Reader reader(text, stopped);
    const auto document = reader.read_document();
    if (!document) {
        return reader.too_deep() ? JsonMember::too_deep : JsonMember::not_json;
    }
    const auto found = std::find(document->keys.begin(), document->keys.end(), key);
    if (found == document->keys.end()) {
        return JsonMember::missing;
    }
    const Shown& member =
        document->members[static_cast<std::size_t>(found - document->keys.begin())];
    shown = member.text;
    return member.kind == Shown::Kind::null ? JsonMember::none : JsonMember::found;
}

}  // namespace comfyd::engine::nodes
