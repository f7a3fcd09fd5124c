// HTTP messages as the rest of the program sees them: plain values, no Beast.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace comfyd::net {

// Names compare without case. Few headers, so a vector is both smaller and faster than a map.
class Headers {
public:
    void set(std::string_view name, std::string value);  // replaces
    void add(std::string_view name, std::string value);
    // Empty when absent.
    std::string_view get(std::string_view name) const;
    bool contains(std::string_view name) const;
    const std::vector<std::pair<std::string, std::string>>& all() const { return fields_; }

private:
    std::vector<std::pair<std::string, std::string>> fields_;
};

enum class Method { get, head, post, put, patch, del, options, other };
std::string_view to_string(Method method);  // "GET", "DELETE", …

bool equal_ignoring_case(std::string_view a, std::string_view b);

// "%41b" -> "Ab"; '+' stays. nullopt on a broken escape or a NUL.
std::optional<std::string> percent_decode(std::string_view text);
// Everything but unreserved characters is escaped; with keep_slash '/' is kept.
std::string percent_encode(std::string_view text, bool keep_slash = false);
// "a=1&b=%20x" -> pairs, '+' as space. Broken escapes are kept as they are.
std::vector<std::pair<std::string, std::string>> parse_query(std::string_view query);

// http(s) and ws(s) URLs only; no user info.
struct Url {
    std::string scheme;  // "http", "https", "ws", "wss"
    std::string host;    // without brackets for IPv6
    std::uint16_t port = 0;
    std::string target = "/";  // path and query, percent-encoded as it came
    // A unix socket that is connected to instead of the host. Never read from text: nobody can
    // name one in a URL.
    std::string socket{};

    static Result<Url> parse(std::string_view text);  // Code::invalid_argument
    bool is_tls() const { return scheme == "https" || scheme == "wss"; }
    std::string host_header() const;  // host, with the port where it is not the scheme's own
    std::string to_string() const;
};

// One part of a multipart/form-data body that is held in memory whole.
struct FormPart {
    std::string name;
    std::optional<std::string> filename;
    std::string content_type;
    std::string data;
};
// The parts in order. Code::invalid_argument when malformed or when `content_type` is not
// multipart/form-data.
Result<std::vector<FormPart>> parse_multipart(std::string_view content_type, std::string_view body);
struct Multipart {
    std::string content_type;
    std::string body;
};
Multipart make_multipart(const std::vector<FormPart>& parts);

// "bytes=0-99" of a body of `size` bytes. nullopt: no or an unusable header (serve everything);
// Code::range_not_satisfiable: answer 416. Only one range is supported; several count as none.
struct ByteRange {
    std::uint64_t first = 0;
    std::uint64_t length = 0;
};
Result<std::optional<ByteRange>> parse_range(std::string_view header, std::uint64_t size);

// The type for a file name by its extension; "application/octet-stream" when unknown.
std::string_view content_type_of(std::string_view filename);

}  // namespace comfyd::net
