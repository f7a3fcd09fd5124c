// A seccomp filter. It names what is refused, not what is allowed: the C library and the codecs use
// what they like, and what they do not need is known.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/confinement.hpp"

namespace comfyd {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kCallsEnd = 0x40000000;  // from here on another way to call
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kCallsEnd = 0x40000000;
#else
#error "which system calls does this processor have?"
#endif

constexpr std::array kRefused{
    // the network, by all ways
    SYS_connect,
    SYS_io_uring_setup,
    // other programs and processes; the sanitizers' own look at leaks is by ptrace
    SYS_execve,
    SYS_execveat,
#if !defined(__has_feature) || \
    !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_open,
    SYS_pidfd_getfd,
    SYS_pidfd_send_signal,
    SYS_tkill,
    // the kernel
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_by_handle_at,
};

constexpr std::uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr std::uint16_t kEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr std::uint16_t kAtLeast = BPF_JMP | BPF_JGE | BPF_K;
constexpr std::uint16_t kAnd = BPF_ALU | BPF_AND | BPF_K;
constexpr std::uint16_t kAnswer = BPF_RET | BPF_K;

constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;

// The lower half of an argument, which is all that the kernel reads of an int.
constexpr std::uint32_t argument_at(unsigned index) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));
}

class Filter {
public:
    Filter() {
        add(kLoad, offsetof(seccomp_data, arch));
        add(kEqual, kArchitecture, 1, 0);
        add(kAnswer, SECCOMP_RET_KILL_PROCESS);
        add(kLoad, offsetof(seccomp_data, nr));
        add(kAtLeast, kCallsEnd, 0, 1);
        add(kAnswer, kRefuse);
    }
    void refuse(long call) {
        add(kEqual, static_cast<std::uint32_t>(call), 0, 1);
        add(kAnswer, kRefuse);
    }
    // `call` passes where the bits `mask` of the argument are `value`.
    void refuse_unless(long call, unsigned argument, std::uint32_t mask, std::uint32_t value) {
        add(kEqual, static_cast<std::uint32_t>(call), 0, 5);
        add(kLoad, argument_at(argument));
        add(kAnd, mask);
        add(kEqual, value, 1, 0);
        add(kAnswer, kRefuse);
        add(kLoad, offsetof(seccomp_data, nr));
    }
    int install() {
        add(kAnswer, SECCOMP_RET_ALLOW);
        const sock_fprog program{
            static_cast<unsigned short>(instructions_.size()), instructions_.data()
        };
        return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0 ? 0 : errno;
    }

private:
    void add(std::uint16_t code, std::size_t value, std::uint8_t yes = 0, std::uint8_t no = 0) {
        instructions_.push_back({code, yes, no, static_cast<std::uint32_t>(value)});
    }

    std::vector<sock_filter> instructions_;
};

}  // namespace

int restrict_system_calls() {
    constexpr std::uint32_t kWhole = 0xffffffff;
    constexpr std::uint32_t kSocketType = 0xf;
    Filter filter;
    for (const long call : kRefused) {
        filter.refuse(call);
    }
    filter.refuse_unless(SYS_socket, 0, kWhole, AF_UNIX);
    filter.refuse_unless(SYS_socket, 1, kSocketType, SOCK_STREAM);
    const auto self = static_cast<std::uint32_t>(::getpid());
    filter.refuse_unless(SYS_kill, 0, kWhole, self);
    filter.refuse_unless(SYS_tgkill, 0, kWhole, self);
    return filter.install();
}

}  // namespace comfyd
