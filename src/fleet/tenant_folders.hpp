// Where the files of a tenant lie on a worker: in a folder of its own, whose name nobody can guess.
// Pure; a value that never changes.
#pragma once

#include <string>

#include "workflow/files/private_names.hpp"

namespace comfyd::fleet {

struct TenantFolders {
    std::string secret{};  // of this installation; the same after a restart
    // More than one tenant may come. While there is only one, the outputs lie where ComfyUI itself
    // puts them, for the people who look there.
    bool several_tenants = false;

    std::string of_inputs(const std::string& tenant) const {
        return workflow::private_folder(secret, tenant);
    }
    // Empty: the output folder itself.
    std::string of_outputs(const std::string& tenant) const {
        return several_tenants ? of_inputs(tenant) : std::string();
    }
};

}  // namespace comfyd::fleet
