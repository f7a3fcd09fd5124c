// One line of the log: JSON whose last two members tie it to the line before. Its hash is the
// SHA-256 of its text up to the member "hash", in which the hash before it ("prev") stands: whoever
// changes a line must change all that follow. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "audit/event.hpp"
#include "base/json.hpp"

namespace comfyd::audit {

inline constexpr std::size_t kLineBytesMax = 8'192;
inline constexpr std::string_view kCheckpoint = "audit.checkpoint";
inline constexpr std::string_view kBegin = "audit.begin";  // the first line of a chain

// Where a chain has come to.
struct Link {
    std::uint64_t seq = 0;
    std::string hash = std::string(64, '0');  // in hex
};

// The next line, without its end; `link` is then at it. Texts are cut at a bound, and their control
// characters replaced.
std::string make_line(const Event& event, std::string_view node, Link& link);

// What a checkpoint says, signed; its line is the next one.
struct Seal {
    std::string key;        // the public one, in hex
    std::string signature;  // in hex, of what sealed_text() says
};
std::string make_checkpoint(Time at, std::string_view node, const Seal& seal, Link& link);
// All that was written up to `link`, at that time.
std::string sealed_text(std::string_view time, std::string_view node, const Link& link);

// A line as it was found.
struct Line {
    std::uint64_t seq = 0;
    std::string prev;
    std::string hash;
    bool is_whole = false;  // the hash is that of its text
    json::object members;
};
// nullopt: it is none.
std::optional<Line> read_line(std::string_view text);

// A member that is a text; empty where it is none.
std::string text_of(const Line& line, std::string_view member);

}  // namespace comfyd::audit
