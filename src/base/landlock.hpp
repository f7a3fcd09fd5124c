// Landlock, by its system calls: the C library has no functions for it. Rules are added one by one,
// then the calling thread and its children are bound to them for good. Inside this room only.
#pragma once

#include <cstdint>
#include <filesystem>

namespace comfyd {

// Of the kernel's interface; 0: it has none.
int landlock_version();

class LandlockRules {
public:
    enum class Right { read, read_and_run, write, write_and_run, device };

    LandlockRules();
    ~LandlockRules();
    LandlockRules(const LandlockRules&) = delete;
    LandlockRules& operator=(const LandlockRules&) = delete;

    // Whatever is below `path`, or the file itself. What is not there needs no rule.
    void allow(const std::filesystem::path& path, Right right);
    // An errno, of this or of what went before, or 0.
    int enforce();

private:
    std::uint64_t rights_of(Right right) const;

    std::uint64_t known_ = 0;  // rights that this kernel has
    int rules_ = -1;
    int error_ = 0;
};

}  // namespace comfyd
