// Files of the disk as answers: caching headers, conditional requests and ranges, and the lookup of
// a page's own files. On the connection's thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "net/server.hpp"

namespace comfyd::net {

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(std::int64_t unix_seconds);
// Whether an If-None-Match header names this entity tag (weakly), or is "*".
bool matches_etag(std::string_view header, std::string_view etag);

// The answer is a part of `size` bytes: 206, Content-Range.
void tell_part(Response& head, const ByteRange& part, std::uint64_t size);

// The regular file below `root` that a request's path (percent-encoded, with its leading slash)
// names; "/" is index.html. nullopt: none, or a name or a link that leads out of `root`.
std::optional<std::filesystem::path> find_static(
    const std::filesystem::path& root, std::string_view path
);

// Answers with the file: ETag, Last-Modified, If-None-Match, Range and If-Range. Headers that
// `head` has are kept; without a Content-Type it is told by the name. Code::not_found, with nothing
// sent, when there is no such file; any other failure means that the client is gone.
Task<Result<>> send_disk_file(Exchange& exchange, Response head, std::filesystem::path path);
// The same for bytes that are no file; without an ETag no condition holds. A failure means that the
// client is gone.
Task<Result<>> send_bytes(Exchange& exchange, Response head, std::string bytes);

}  // namespace comfyd::net
