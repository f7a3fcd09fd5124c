// Pictures that are to be made over.
#pragma once

#include "comfy/server/backend.hpp"

namespace comfyd::comfy::server {

// The bytes of the file. Code::not_found, Code::payload_too_large, Code::storage_unavailable.
Task<Result<std::string>> picture_bytes(Backend& backend, ShownFile file);

}  // namespace comfyd::comfy::server
