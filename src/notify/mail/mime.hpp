// A mail as bytes: headers, the text in plain and as HTML, and a picture that the HTML shows. The
// same mail gives the same bytes each time. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/time.hpp"

namespace comfyd::notify::mail {

struct Mail {
    std::string from;       // address, for servers
    std::string from_name;  // empty: none
    std::string to;         // likewise
    std::string subject;
    Time date{};
    std::string id;           // of the message, unique and the same over repetitions: [a-z0-9.-]
    std::string text;         // in plain
    std::string html;         // refers to the picture as cid:kPictureId
    std::string jpeg;         // empty: no picture
    std::string unsubscribe;  // https or mailto URL; empty: none
};

inline constexpr std::string_view kPictureId = "picture@comfyd";

// REQUIRES: the addresses are right.
std::string write_mail(const Mail& mail);

// "Wed, 18 Nov 2026 01:41:14 +0000"
std::string mail_date(Time time);
std::string escape_html(std::string_view text);

}  // namespace comfyd::notify::mail
