// Reading JSON text. Boost's own parser of some versions reads a number of 17 digits not always as
// the nearest double; a value that a client sent must come back as it was, so this one reads them
// with std::from_chars.
#include <algorithm>
#include <charconv>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>

#include "base/json.hpp"
#include "base/json_unique.hpp"

namespace comfyd::json {
namespace {

using boost::json::string_view;
using ErrorCode = boost::system::error_code;

// Builds the value from what the parser finds, called in the order of the text.
struct Builder {
    static constexpr std::size_t max_object_size = object::max_size();
    static constexpr std::size_t max_array_size = array::max_size();
    static constexpr std::size_t max_key_size = boost::json::string::max_size();
    static constexpr std::size_t max_string_size = boost::json::string::max_size();

    bool on_document_begin(ErrorCode&) { return true; }
    bool on_document_end(ErrorCode&) { return true; }
    bool on_object_begin(ErrorCode&) { return true; }
    bool on_object_end(std::size_t count, ErrorCode&) {
        stack.push_object(count);
        return true;
    }
    bool on_array_begin(ErrorCode&) { return true; }
    bool on_array_end(std::size_t count, ErrorCode&) {
        stack.push_array(count);
        return true;
    }
    bool on_key_part(string_view part, std::size_t, ErrorCode&) {
        stack.push_chars(part);
        return true;
    }
    bool on_key(string_view part, std::size_t, ErrorCode&) {
        stack.push_key(part);
        ++members;
        return true;
    }
    bool on_string_part(string_view part, std::size_t, ErrorCode&) {
        stack.push_chars(part);
        return true;
    }
    bool on_string(string_view part, std::size_t, ErrorCode&) {
        stack.push_string(part);
        return true;
    }
    bool on_number_part(string_view part, ErrorCode&) {
        digits.append(part.data(), part.size());
        return true;
    }
    bool on_int64(std::int64_t number, string_view, ErrorCode&) {
        digits.clear();
        stack.push_int64(number);
        return true;
    }
    bool on_uint64(std::uint64_t number, string_view, ErrorCode&) {
        digits.clear();
        stack.push_uint64(number);
        return true;
    }
    bool on_double(double number, string_view part, ErrorCode&) {
        digits.append(part.data(), part.size());
        double exact = 0;
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), exact);
        // What is too large or too small for a double stays as the parser has it.
        stack.push_double(read.ec == std::errc() ? exact : number);
        digits.clear();
        return true;
    }
    bool on_bool(bool flag, ErrorCode&) {
        stack.push_bool(flag);
        return true;
    }
    bool on_null(ErrorCode&) {
        stack.push_null();
        return true;
    }
    bool on_comment_part(string_view, ErrorCode&) { return true; }
    bool on_comment(string_view, ErrorCode&) { return true; }

    boost::json::value_stack stack{};
    std::string digits{};     // of the number being read
    std::size_t members = 0;  // of all objects, as often as they stand there
};

std::size_t count_members(const value& in) {
    std::size_t count = 0;
    if (const array* elements = in.if_array()) {
        for (const value& element : *elements) {
            count += count_members(element);
        }
    } else if (const object* members = in.if_object()) {
        count = members->size();
        for (const auto& member : *members) {
            count += count_members(member.value());
        }
    }
    return count;
}

struct Parsed {
    value document;
    std::size_t members;
};

Result<Parsed> parse_counting(std::string_view text, storage_ptr storage) {
    boost::json::parse_options options;
    options.max_depth = kDepthMax;
    boost::json::basic_parser<Builder> parser(options);
    parser.handler().stack.reset(std::move(storage));
    ErrorCode error;
    const std::size_t consumed = parser.write_some(false, text.data(), text.size(), error);
    if (!error && consumed < text.size() &&
        text.find_first_not_of(" \t\r\n", consumed) != std::string_view::npos) {
        error = boost::json::error::extra_data;
    }
    if (error) {
        const auto before = text.substr(0, consumed);
        const auto line = 1 + std::count(before.begin(), before.end(), '\n');
        const auto line_start = before.rfind('\n');
        const auto column =
            consumed - (line_start == std::string_view::npos ? 0 : line_start + 1) + 1;
        return fail(
            Code::malformed_json,
            "not valid JSON at line " + std::to_string(line) + ", column " +
                std::to_string(column) + ": " + error.message(),
            {{"line", line}, {"column", column}}
        );
    }
    return Parsed{parser.handler().stack.release(), parser.handler().members};
}

}  // namespace

Result<value> parse(std::string_view text, storage_ptr storage) {
    auto parsed = parse_counting(text, std::move(storage));
    if (!parsed) {
        return fail(std::move(parsed.error()));
    }
    return std::move(parsed->document);
}

Result<object> parse_unique_object(std::string_view text) {
    auto parsed = parse_counting(text, {});
    if (!parsed) {
        return fail(std::move(parsed.error()));
    }
    if (!parsed->document.is_object()) {
        return fail(Code::malformed_json, "not a JSON object");
    }
    if (count_members(parsed->document) != parsed->members) {
        return fail(Code::malformed_json, "an object has two members of one name");
    }
    return std::move(parsed->document.get_object());
}

}  // namespace comfyd::json
