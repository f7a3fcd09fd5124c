// multipart/form-data (RFC 7578), read and written whole.
#include <algorithm>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "net/http.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kPartsMax = 1024;
constexpr std::size_t kPartHeaderBytesMax = 16 * 1024;
constexpr std::size_t kBoundaryBytesMax = 70;  // RFC 2046

tl::unexpected<Error> malformed(const std::string& what) {
    return fail(Code::invalid_argument, "multipart/form-data body is malformed: " + what);
}

// Reads `; name=token` and `; name="quoted"` one after the other. False when nothing is left.
// Browsers escape a quote in a file name as %22, others as \": both are understood.
bool next_parameter(std::string_view& rest, std::string& name, std::string& value) {
    const auto semicolon = rest.find(';');
    if (semicolon == std::string_view::npos) {
        return false;
    }
    rest.remove_prefix(semicolon + 1);
    const auto equals = rest.find('=');
    if (equals == std::string_view::npos) {
        return false;
    }
    name = std::string(trim(rest.substr(0, equals)));
    rest = rest.substr(equals + 1);
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    value.clear();
    if (!rest.starts_with('"')) {
        const auto end = std::min(rest.find(';'), rest.size());
        value = std::string(trim(rest.substr(0, end)));
        rest.remove_prefix(end);
        return true;
    }
    std::size_t i = 1;
    for (; i < rest.size() && rest[i] != '"'; ++i) {
        const bool escape =
            rest[i] == '\\' && i + 1 < rest.size() && (rest[i + 1] == '"' || rest[i + 1] == '\\');
        if (escape) {
            ++i;
        }
        if (rest.substr(i).starts_with("%22")) {
            value += '"';
            i += 2;
        } else {
            value += rest[i];
        }
    }
    rest.remove_prefix(std::min(i + 1, rest.size()));
    return true;
}

Result<std::string> find_boundary(std::string_view content_type) {
    const auto type = trim(content_type.substr(0, content_type.find(';')));
    if (!equal_ignoring_case(type, "multipart/form-data")) {
        return fail(Code::invalid_argument, "Content-Type must be multipart/form-data");
    }
    std::string name;
    std::string value;
    while (next_parameter(content_type, name, value)) {
        if (equal_ignoring_case(name, "boundary")) {
            if (value.empty() || value.size() > kBoundaryBytesMax) {
                break;
            }
            return value;
        }
    }
    return fail(Code::invalid_argument, "Content-Type multipart/form-data has no valid boundary");
}

Result<FormPart> parse_part_header(std::string_view text) {
    FormPart part;
    bool named = false;
    while (!text.empty()) {
        const auto end = std::min(text.find("\r\n"), text.size());
        auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 2, text.size()));
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) {
            return malformed("a part has a header line without ':'");
        }
        const auto field = trim(line.substr(0, colon));
        auto field_value = trim(line.substr(colon + 1));
        if (equal_ignoring_case(field, "Content-Type")) {
            part.content_type = std::string(field_value);
        }
        if (!equal_ignoring_case(field, "Content-Disposition")) {
            continue;
        }
        std::string name;
        std::string value;
        while (next_parameter(field_value, name, value)) {
            if (equal_ignoring_case(name, "name")) {
                part.name = value;
                named = true;
            } else if (equal_ignoring_case(name, "filename")) {
                part.filename = value;
            }
        }
    }
    if (!named) {
        return malformed("a part has no name in its Content-Disposition");
    }
    return part;
}

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"') {
            out += "%22";
        } else if (c == '\r') {
            out += "%0D";
        } else if (c == '\n') {
            out += "%0A";
        } else {
            out += c;
        }
    }
    return out + '"';
}

}  // namespace

Result<std::vector<FormPart>> parse_multipart(
    std::string_view content_type, std::string_view body
) {
    auto boundary = find_boundary(content_type);
    if (!boundary) {
        return fail(std::move(boundary.error()));
    }
    const std::string delimiter = "\r\n--" + *boundary;
    const std::string_view opening = std::string_view(delimiter).substr(2);
    std::size_t at = 0;
    if (body.starts_with(opening)) {
        at = opening.size();
    } else {
        const auto found = body.find(delimiter);
        if (found == std::string_view::npos) {
            return malformed("the boundary does not occur");
        }
        at = found + delimiter.size();
    }
    std::vector<FormPart> parts;
    while (true) {
        auto rest = body.substr(at);
        if (rest.starts_with("--")) {
            return parts;
        }
        if (!rest.starts_with("\r\n")) {
            return malformed("no line end after a boundary");
        }
        if (parts.size() == kPartsMax) {
            return malformed("more than " + std::to_string(kPartsMax) + " parts");
        }
        // Starts at the line end before the header, so that a part without header lines works too.
        const auto header_end = rest.substr(0, kPartHeaderBytesMax).find("\r\n\r\n");
        if (header_end == std::string_view::npos) {
            return malformed("the header of a part does not end");
        }
        const auto header = header_end == 0 ? std::string_view() : rest.substr(2, header_end - 2);
        auto part = parse_part_header(header);
        if (!part) {
            return fail(std::move(part.error()));
        }
        // From the blank line's own line end, so that the delimiter of an empty part is found.
        const auto data_end = rest.find(delimiter, header_end + 2);
        if (data_end == std::string_view::npos) {
            return malformed("the closing boundary is missing");
        }
        const auto data_begin = header_end + 4;
        part->data = data_end < data_begin
                         ? std::string()
                         : std::string(rest.substr(data_begin, data_end - data_begin));
        parts.push_back(std::move(*part));
        at += data_end + delimiter.size();
    }
}

Multipart make_multipart(const std::vector<FormPart>& parts) {
    // 128 random bits: the chance that they occur in the data is none.
    std::array<std::uint8_t, 16> random{};
    random_bytes(random.data(), random.size());
    const std::string boundary = "comfyd-" + to_hex(random.data(), random.size());
    Multipart made{"multipart/form-data; boundary=" + boundary, {}};
    for (const auto& part : parts) {
        made.body +=
            "--" + boundary + "\r\nContent-Disposition: form-data; name=" + in_quotes(part.name);
        if (part.filename) {
            made.body += "; filename=" + in_quotes(*part.filename);
        }
        if (!part.content_type.empty()) {
            made.body += "\r\nContent-Type: " + part.content_type;
        }
        made.body += "\r\n\r\n" + part.data + "\r\n";
    }
    made.body += "--" + boundary + "--\r\n";
    return made;
}

}  // namespace comfyd::net
