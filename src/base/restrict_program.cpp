// Which system calls a program in a sandbox may not make. It may start others, so that what is
// refused is named: what looks into other processes, changes what is seen of the system, or has
// been a way out before.
#include "base/restrict_program.hpp"

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cstdint>

#include "base/seccomp_filter.hpp"

namespace comfyd {
namespace {

constexpr std::uint32_t kWhole = 0xffffffff;
constexpr std::uint32_t kSocketType = 0xf;
constexpr std::uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// Numbers that are the same on all processors, and that older headers do not have.
constexpr long kMountCallsFirst = 428;  // open_tree, move_mount, fsopen, fsconfig, fsmount, fspick
constexpr long kMountCallsLast = 433;
constexpr long kMountSetattr = 442;

constexpr std::array kRefused{
    // a way around every filter, and by which networks can be had
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    // other processes
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_kcmp,
    // what is seen of the system
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_unshare,
    SYS_setns,
    SYS_open_by_handle_at,
    // the kernel
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_swapon,
    SYS_swapoff,
    SYS_reboot,
    SYS_syslog,
    SYS_acct,
    SYS_quotactl,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
};

// A connection is not made: neither by connect(), nor by what sends and connects in one go, nor by
// sockets that need none.
void refuse_connections(SeccompFilter& filter) {
    filter.refuse(SYS_connect);
    // CUDA does not begin without such a socket, to which only processes of its own would connect.
    filter.allow_where(SYS_socket, {0, kWhole, AF_UNIX}, {1, kSocketType, SOCK_SEQPACKET});
    filter.refuse_unless(SYS_socket, 1, kSocketType, SOCK_STREAM);
    filter.refuse_unless(SYS_sendto, 3, MSG_FASTOPEN, 0);
    filter.refuse_unless(SYS_sendmsg, 2, MSG_FASTOPEN, 0);
    filter.refuse_unless(SYS_sendmmsg, 3, MSG_FASTOPEN, 0);
}

}  // namespace

int restrict_program(SandboxNetwork network) {
    SeccompFilter filter;
    for (const long call : kRefused) {
        filter.refuse(call);
    }
    for (long call = kMountCallsFirst; call <= kMountCallsLast; ++call) {
        filter.refuse(call);
    }
    filter.refuse(kMountSetattr);
    // The newer call hides its arguments; without it the older is made.
    filter.refuse(SYS_clone3, ENOSYS);
    filter.refuse_unless(SYS_clone, 0, kNewNamespaces, 0);
    // What is typed into a terminal is run by whoever has it.
    filter.refuse_where(SYS_ioctl, 1, TIOCSTI);
    filter.refuse_where(SYS_ioctl, 1, TIOCLINUX);
    if (network == SandboxNetwork::none) {
        filter.refuse_unless(SYS_socket, 0, kWhole, AF_UNIX);
    }
    if (network != SandboxNetwork::all) {
        refuse_connections(filter);
    }
    return filter.install(SeccompFilter::Others::are_allowed);
}

}  // namespace comfyd
