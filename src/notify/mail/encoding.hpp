// How text and bytes are written in a mail, so that nothing in them can end a line, a header or a
// part: RFC 2045 and 2047. Every line has at most 76 characters and is ASCII. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace comfyd::notify::mail {

// Where it is no UTF-8 it has U+FFFD instead.
std::string valid_utf8(std::string_view text);

// "Name: text\r\n", folded. Control characters become spaces; what is not plain ASCII, or has a
// word too long for a line, becomes encoded words, each of whole characters.
std::string header(std::string_view name, std::string_view text);

// A name beside an address, as a phrase: quoted, or as encoded words.
std::string phrase(std::string_view text);

// Line ends of any kind become CR LF.
std::string quoted_printable(std::string_view text);
// In lines.
std::string base64_lines(std::string_view bytes);

}  // namespace comfyd::notify::mail
