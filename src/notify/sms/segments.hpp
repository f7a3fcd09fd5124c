// How long a text is as a short message: in segments of 160 characters where it has only those of
// the GSM alphabet, of 70 where not; fewer in each where there are several. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace comfyd::notify::sms {

struct Length {
    bool is_gsm = true;     // else UCS-2
    std::size_t units = 0;  // of 7 or of 16 bits
    std::size_t segments = 1;
};

// REQUIRES: UTF-8.
Length measure(std::string_view text);

// With its end left out, and "..." instead, where it has more than `segments_max` segments. Whole
// characters only. REQUIRES: UTF-8, segments_max > 0.
std::string cut(std::string_view text, std::size_t segments_max);

}  // namespace comfyd::notify::sms
