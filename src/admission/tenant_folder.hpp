// Where the server keeps what belongs to one tenant. Pure.
#pragma once

#include <filesystem>
#include <string>

namespace comfyd::admission {

// The tenant's folder below `folder`; its name is safe for any tenant.
std::filesystem::path tenant_folder(const std::filesystem::path& folder, const std::string& tenant);

}  // namespace comfyd::admission
