// How JSON writes the characters that it cannot write as they are. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace comfyd::json {

// "\u00e9", of one UTF-16 unit.
inline void append_unit(std::string& out, std::uint32_t unit) {
    constexpr char kHex[] = "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) {
        out += kHex[unit >> shift & 0xF];
    }
}

// A character of a string as Python's json writes it; what is not ASCII stays as it is.
inline void append_escaped(std::string& out, unsigned char byte) {
    switch (byte) {
        case '"':
            out += "\\\"";
            break;
        case '\\':
            out += "\\\\";
            break;
        case '\n':
            out += "\\n";
            break;
        case '\r':
            out += "\\r";
            break;
        case '\t':
            out += "\\t";
            break;
        case '\b':
            out += "\\b";
            break;
        case '\f':
            out += "\\f";
            break;
        default:
            if (byte < 0x20) {
                append_unit(out, byte);
            } else {
                out += static_cast<char>(byte);
            }
    }
}

}  // namespace comfyd::json
