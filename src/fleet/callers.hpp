// The port of who lets workers in that call by themselves, because they have no address. Whoever
// leads a worker's domain says which token it has, and when that counts no more.
#pragma once

#include <string>

namespace comfyd::fleet {

// Core executor only.
class Callers {
public:
    virtual ~Callers() = default;
    // From now on `instance` may call with this token alone, as the worker of that id.
    virtual void admit(
        const std::string& instance, const std::string& worker, const std::string& token
    ) = 0;
    // It may no more: what it has open is cut off.
    virtual void dismiss(const std::string& instance) = 0;
};

}  // namespace comfyd::fleet
