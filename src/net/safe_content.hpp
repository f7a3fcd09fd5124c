// Which content is safe to show in a page of this server. Pure; any thread.
#pragma once

#include <string_view>

namespace comfyd::net {

// "image/png", "text/plain; charset=utf-8": a type and parameters as RFC 9110 writes them, of at
// most 255 bytes. What is none (two types with a comma, a line break, a name without a slash) means
// something else to each browser.
bool is_media_type(std::string_view text);
// What may stand in an answer: the type, or "application/octet-stream" for what is none.
std::string_view sent_type(std::string_view content_type);

// Types that a browser would run in our origin: they are only ever downloaded.
bool is_active_type(std::string_view content_type);

}  // namespace comfyd::net
