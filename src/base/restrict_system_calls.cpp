// Which system calls a confined process may make. One that serves others names what is refused: the
// C library and the codecs use what they like, and what they do not need is known. One that only
// computes names what it needs.
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "base/confinement.hpp"
#include "base/seccomp_filter.hpp"

namespace comfyd {
namespace {

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COMFYD_IS_SANITIZED 1
bool only_computes = false;
#endif
#endif

constexpr std::uint32_t kWhole = 0xffffffff;

constexpr std::array kRefused{
    // the network, by all ways
    SYS_connect,
    SYS_io_uring_setup,
    // other programs and processes; the sanitizers' own look at leaks is by ptrace
    SYS_execve,
    SYS_execveat,
#if !defined(COMFYD_IS_SANITIZED)
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

// What remains to do for one that has its files open and its libraries loaded: to read and to
// answer, to have memory and threads, to know the time, and to end.
[[maybe_unused]] constexpr std::array kOfComputing{
    // what is open
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_write,
    SYS_writev,
    SYS_pwrite64,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_ppoll,
#if defined(SYS_poll)
    SYS_poll,
#endif
    SYS_lseek,
    SYS_close,
    // memory; how it may be used is looked at below
    SYS_brk,
    SYS_mmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_munmap,
    SYS_madvise,
    // threads
    SYS_clone,
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_gettid,
    SYS_getpid,
    // time and chance
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_times,
    SYS_getrusage,
    SYS_sysinfo,
    // signals of its own, and the end
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
};

}  // namespace

#if defined(COMFYD_IS_SANITIZED)
// AddressSanitizer asks it at the end of the process. Who may open nothing cannot be searched for
// leaks.
extern "C" int __lsan_is_turned_off() {
    return only_computes ? 1 : 0;
}
#endif

int restrict_system_calls() {
    constexpr std::uint32_t kSocketType = 0xf;
    SeccompFilter filter;
#if !defined(COMFYD_IS_SANITIZED)
    // Threads, but no processes: there is nothing that they could become.
    filter.refuse(SYS_clone3, ENOSYS);
    filter.refuse_unless(SYS_clone, 0, CLONE_THREAD, CLONE_THREAD);
#if defined(SYS_fork)
    filter.refuse(SYS_fork);
    filter.refuse(SYS_vfork);
#endif
#endif
    for (const long call : kRefused) {
        filter.refuse(call);
    }
    filter.refuse_unless(SYS_socket, 0, kWhole, AF_UNIX);
    filter.refuse_unless(SYS_socket, 1, kSocketType, SOCK_STREAM);
    const auto self = static_cast<std::uint32_t>(::getpid());
    filter.refuse_unless(SYS_kill, 0, kWhole, self);
    filter.refuse_unless(SYS_tgkill, 0, kWhole, self);
    return filter.install(SeccompFilter::Others::are_allowed);
}

int restrict_to_computing() {
#if defined(COMFYD_IS_SANITIZED)
    // Sanitizers look into the process and its files when they like.
    only_computes = true;
    return restrict_system_calls();
#else
    SeccompFilter filter;
    // Threads, but no processes. The newer call hides its arguments; without it the older is made.
    filter.refuse(SYS_clone3, ENOSYS);
    filter.refuse_unless(SYS_clone, 0, CLONE_THREAD, CLONE_THREAD);
    // Nothing that was written is run.
    filter.refuse_unless(SYS_mmap, 2, PROT_EXEC, 0);
    filter.refuse_unless(SYS_mprotect, 2, PROT_EXEC, 0);
    filter.refuse_unless(SYS_tgkill, 0, kWhole, static_cast<std::uint32_t>(::getpid()));
    for (const long call : kOfComputing) {
        filter.allow(call);
    }
    return filter.install(SeccompFilter::Others::are_refused);
#endif
}

}  // namespace comfyd
