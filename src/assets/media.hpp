// Whether the first bytes of a file are the medium that was asked for. Pure.
#pragma once

#include <string>
#include <string_view>

#include "assets/intake.hpp"

namespace comfyd::assets {

// Refuses first bytes that are known to be something else; what is not known may pass.
// Code::unsupported_media_type.
Result<> judge_first_bytes(MediaKind kind, std::string_view first_bytes);

// The content type that the bytes have, else the one that `declared` says (may be empty).
// Code::unsupported_media_type when neither is of the kind.
Result<std::string> judge_media(
    MediaKind kind, std::string_view first_bytes, bool is_whole, std::string_view declared
);

// A name for a file from where it came, with an extension that does not contradict its type; empty
// when there is none to be made.
std::string name_from_target(std::string_view url_target, std::string_view content_type);

}  // namespace comfyd::assets
