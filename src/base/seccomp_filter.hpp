// A seccomp filter, put together rule by rule: of the rules about a call the first that answers
// decides. Inside this room only.
#pragma once

#include <linux/filter.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace comfyd {

class SeccompFilter {
public:
    enum class Others { are_allowed, are_refused };

    // Calls in the manner of another processor end the process.
    SeccompFilter();

    void allow(long call);
    void refuse(long call, int error = EPERM);
    // Bits of an argument. Of the argument the lower half is looked at: all that the kernel reads
    // of an int.
    struct Bits {
        unsigned argument;
        std::uint32_t mask;
        std::uint32_t value;
    };
    // Allows `call` where both are so, and else leaves it to the rules that follow.
    void allow_where(long call, Bits one, Bits other);
    // Refuses `call` where the bits `mask` of its argument are not `value`, and else leaves it to
    // the rules that follow. Of the argument the lower half is looked at: all that the kernel reads
    // of an int.
    void refuse_unless(long call, unsigned argument, std::uint32_t mask, std::uint32_t value);

    // Refuses `call` where the lower half of its argument is `value`.
    void refuse_where(long call, unsigned argument, std::uint32_t value);

    // For this thread and those that it will start; there is no way back. An errno, or 0.
    int install(Others others);

private:
    void add(std::uint16_t code, std::size_t value, std::uint8_t yes = 0, std::uint8_t no = 0);

    std::vector<sock_filter> instructions_;
};

}  // namespace comfyd
