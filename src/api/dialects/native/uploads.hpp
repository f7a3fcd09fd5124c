// A tenant's own uploads among the choices of node classes. Pure.
#pragma once

#include <string>
#include <vector>

namespace comfyd::api::native {

// `object_info`: an answer of GET /object_info. Inputs that take uploads offer those of their kind
// first, each name once.
std::string with_uploads(const std::string& object_info, const std::vector<std::string>& uploads);

}  // namespace comfyd::api::native
