#include "base/seccomp_filter.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace comfyd {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "which system calls does this processor have?"
#endif
constexpr std::uint32_t kCallsEnd = 0x40000000;  // from here on another way to call

constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t kEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr std::uint16_t kAtLeast = BPF_JMP | BPF_JGE | BPF_K;
constexpr std::uint16_t kAnd = BPF_ALU | BPF_AND | BPF_K;
constexpr std::uint16_t kAnswer = BPF_RET | BPF_K;

constexpr std::uint32_t refusal(int error) {
    return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
}

}  // namespace

SeccompFilter::SeccompFilter() {
    add(kLoad, offsetof(seccomp_data, arch));
    add(kEqual, kArchitecture, 1, 0);
    add(kAnswer, SECCOMP_RET_KILL_PROCESS);
    add(kLoad, offsetof(seccomp_data, nr));
    add(kAtLeast, kCallsEnd, 0, 1);
    add(kAnswer, refusal(EPERM));
}

void SeccompFilter::allow(long call) {
    add(kEqual, static_cast<std::uint32_t>(call), 0, 1);
    add(kAnswer, SECCOMP_RET_ALLOW);
}

void SeccompFilter::allow_where(long call, Bits one, Bits other) {
    add(kEqual, static_cast<std::uint32_t>(call), 0, 8);
    add(kLoad, offsetof(seccomp_data, args) + one.argument * sizeof(std::uint64_t));
    add(kAnd, one.mask);
    add(kEqual, one.value, 0, 4);
    add(kLoad, offsetof(seccomp_data, args) + other.argument * sizeof(std::uint64_t));
    add(kAnd, other.mask);
    add(kEqual, other.value, 0, 1);
    add(kAnswer, SECCOMP_RET_ALLOW);
    add(kLoad, offsetof(seccomp_data, nr));
}

void SeccompFilter::refuse(long call, int error) {
    add(kEqual, static_cast<std::uint32_t>(call), 0, 1);
    add(kAnswer, refusal(error));
}

void SeccompFilter::refuse_unless(
    long call, unsigned argument, std::uint32_t mask, std::uint32_t value
) {
    add(kEqual, static_cast<std::uint32_t>(call), 0, 5);
    add(kLoad, offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
    add(kAnd, mask);
    add(kEqual, value, 1, 0);
    add(kAnswer, refusal(EPERM));
    add(kLoad, offsetof(seccomp_data, nr));
}

void SeccompFilter::refuse_where(long call, unsigned argument, std::uint32_t value) {
    add(kEqual, static_cast<std::uint32_t>(call), 0, 4);
    add(kLoad, offsetof(seccomp_data, args) + argument * sizeof(std::uint64_t));
    add(kEqual, value, 0, 1);
    add(kAnswer, refusal(EPERM));
    add(kLoad, offsetof(seccomp_data, nr));
}

int SeccompFilter::install(Others others) {
    add(kAnswer, others == Others::are_allowed ? SECCOMP_RET_ALLOW : refusal(EPERM));
    const sock_fprog program{
        static_cast<unsigned short>(instructions_.size()), instructions_.data()
    };
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : errno;
}

void SeccompFilter::add(std::uint16_t code, std::size_t value, std::uint8_t yes, std::uint8_t no) {
    instructions_.push_back({code, yes, no, static_cast<std::uint32_t>(value)});
}

}  // namespace comfyd
