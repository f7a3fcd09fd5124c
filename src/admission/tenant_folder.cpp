#include "admission/tenant_folder.hpp"

#include <algorithm>

#include "base/crypto.hpp"

namespace comfyd::admission {

std::filesystem::path tenant_folder(
    const std::filesystem::path& folder, const std::string& tenant
) {
    const bool is_plain =
        !tenant.empty() && tenant.size() <= 64 &&
        std::all_of(tenant.begin(), tenant.end(), [](unsigned char c) {
            return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
        });
    return folder / (is_plain ? tenant : "=" + to_hex(sha256(tenant)));
}

}  // namespace comfyd::admission
