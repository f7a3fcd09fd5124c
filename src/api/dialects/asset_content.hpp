// The bytes of an asset as an HTTP answer: ranges, conditions, a safe type and a name. Shared by
// every dialect that serves files.
#pragma once

#include <string>
#include <string_view>

#include "api/router.hpp"
#include "api/services.hpp"

namespace comfyd::api {

// `inline; filename="a.png"; filename*=UTF-8''a.png`
std::string content_disposition(std::string_view name, bool attachment);

// Answers 200, 206, 304 or 416; 302 to where the bytes are, or 202 while they are being brought
// back from cold storage. ?download=1 asks for an attachment. A failure (nothing was sent then):
// Code::output_unavailable.
Task<Result<>> send_asset(Call& call, const Services& services, assets::Asset asset);

}  // namespace comfyd::api
