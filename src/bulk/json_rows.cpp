#include "bulk/json_rows.hpp"

#include <utility>

#include "base/text.hpp"

namespace comfyd::bulk {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";
constexpr std::string_view kSpaces = " \t\r\n";

Result<Row> read_row(std::string_view text, std::size_t record, std::size_t line) {
    auto parsed = json::parse(text);
    if (!parsed) {
        return wrong_row(record, line, std::move(parsed.error().message));
    }
    if (!parsed->is_object()) {
        return wrong_row(
            record, line, "it is no object: each set of parameters is {\"name\": value}"
        );
    }
    return Row{record, line, std::move(parsed->get_object()), false};
}

}  // namespace

Result<> JsonLinesReader::feed(std::string_view piece, Rows& into) {
    while (!piece.empty()) {
        const auto end = piece.find('\n');
        text_ += piece.substr(0, end);
        if (text_.size() > kRowBytesMax) {
            return wrong_row(
                record_, line_, "it is longer than " + std::to_string(kRowBytesMax) + " bytes"
            );
        }
        if (end == std::string_view::npos) {
            return {};
        }
        if (auto ended = end_line(into); !ended) {
            return ended;
        }
        piece.remove_prefix(end + 1);
    }
    return {};
}

Result<> JsonLinesReader::end_line(Rows& into) {
    std::string_view text = text_;
    if (line_ == 1) {
        if (auto foreign = foreign_encoding(text)) {
            return fail(std::move(*foreign));
        }
        text.remove_prefix(text.starts_with(kMark) ? kMark.size() : 0);
    }
    text = trim(text, kSpaces);
    if (!text.empty()) {
        auto row = read_row(text, record_, line_);
        if (!row) {
            return fail(std::move(row.error()));
        }
        into.push_back(std::move(*row));
        ++record_;
    }
    text_.clear();
    ++line_;
    return {};
}

Result<> JsonLinesReader::finish(Rows& into) {
    return end_line(into);
}

tl::unexpected<Error> JsonArrayReader::wrong(std::string message) const {
    return wrong_row(record_, line_, std::move(message));
}

Result<> JsonArrayReader::feed(std::string_view piece, Rows& into) {
    for (const char c : piece) {
        if (auto taken = take(c, into); !taken) {
            return taken;
        }
        line_ += c == '\n' ? 1 : 0;
    }
    return {};
}

Result<> JsonArrayReader::take(char c, Rows& into) {
    if (at_ == At::mark) {
        if (c == kMark[mark_bytes_]) {
            if (++mark_bytes_ == kMark.size()) {
                at_ = At::start;
            }
            return {};
        }
        if (c == '\xFF' || c == '\xFE' || c == '\0') {
            return fail(*foreign_encoding("\xFF\xFE"));
        }
        at_ = At::start;
    }
    if (at_ != At::within) {
        if (kSpaces.find(c) != std::string_view::npos) {
            return {};
        }
        if (auto taken = take_between(c); !taken || at_ != At::within) {
            return taken;
        }
    }
    if (depth_ == 0 && !is_quoted_ && (c == ',' || c == ']')) {
        if (auto ended = end_element(into); !ended) {
            return ended;
        }
        at_ = c == ',' ? At::element : At::end;
        return {};
    }
    take_within(c);
    return text_.size() <= kRowBytesMax
               ? Result<>()
               : wrong("it is longer than " + std::to_string(kRowBytesMax) + " bytes");
}

// What stands outside of elements.
Result<> JsonArrayReader::take_between(char c) {
    if (at_ == At::start) {
        if (c != '[') {
            return fail(
                Code::invalid_argument,
                "the file is no array of objects: it must begin with '['",
                {{"line", line_}}
            );
        }
        at_ = At::element_or_end;
    } else if (at_ == At::element_or_end && c == ']') {
        at_ = At::end;
    } else if (at_ == At::end) {
        return wrong("something follows the array");
    } else if (c == ',' || c == ']') {
        return wrong("an element is missing here");
    } else {
        at_ = At::within;
        begun_at_ = line_;
    }
    return {};
}

void JsonArrayReader::take_within(char c) {
    text_ += c;
    if (is_quoted_) {
        const bool was_escaped = std::exchange(is_escaped_, !is_escaped_ && c == '\\');
        is_quoted_ = was_escaped || c != '"';
    } else if (c == '"') {
        is_quoted_ = true;
    } else if (c == '{' || c == '[') {
        ++depth_;
    } else if ((c == '}' || c == ']') && depth_ > 0) {
        --depth_;
    }
}

Result<> JsonArrayReader::end_element(Rows& into) {
    auto row = read_row(text_, record_, begun_at_);
    if (!row) {
        return fail(std::move(row.error()));
    }
    into.push_back(std::move(*row));
    text_.clear();
    ++record_;
    return {};
}

Result<> JsonArrayReader::finish(Rows&) {
    if (at_ == At::end) {
        return {};
    }
    return wrong("the array is not closed: the file may have been cut off");
}

}  // namespace comfyd::bulk
