// What an SMTP server answers: a code, perhaps an enhanced one (RFC 3463), and text. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace comfyd::notify::mail {

struct Reply {
    int code = 0;
    std::string enhanced;            // "5.7.8"; empty: none
    std::vector<std::string> lines;  // without codes

    bool is_done() const { return code / 100 == 2; }
    bool asks_more() const { return code / 100 == 3; }
    bool is_refusal() const { return code / 100 == 5; }
    // In one line and not too long, for people.
    std::string to_string() const;
};

// Puts a reply together from its lines. Code::protocol_error for what is none.
class ReplyReader {
public:
    // True when this was the last line.
    Result<bool> add(std::string_view line);
    Reply take();

private:
    Reply reply_;
};

// What a server says that it can, after EHLO.
struct Capabilities {
    bool starttls = false;
    bool smtputf8 = false;          // addresses of any script
    std::vector<std::string> auth;  // "PLAIN", …, in capitals
    std::optional<std::uint64_t> size_max;

    bool has_auth(std::string_view mechanism) const;
    static Capabilities from(const Reply& hello);
};

}  // namespace comfyd::notify::mail
