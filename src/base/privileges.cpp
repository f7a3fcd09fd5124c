#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/confinement.hpp"

namespace comfyd {

int drop_privileges(FilesOfOthers kept) {
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return errno;
    }
    ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    // Without the right to change it there is nothing in it that this process could get.
    constexpr int kLastEver = 63;
    for (int capability = 0; capability <= kLastEver; ++capability) {
        ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
    }
    ::prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> left{};
    if (kept == FilesOfOthers::as_root && ::geteuid() == 0) {
        left[0].permitted = left[0].effective = 1U << CAP_DAC_OVERRIDE;
        if (::syscall(SYS_capset, &header, left.data()) == 0) {
            return 0;
        }
        left = {};  // a root of a container, who does not have it
    }
    return ::syscall(SYS_capset, &header, left.data()) == 0 ? 0 : errno;
}

}  // namespace comfyd
