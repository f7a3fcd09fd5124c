// What every program may need of the system. Secrets lie in other places: of /etc not all is shown
// (a configuration with passwords may be there), and of /dev nothing that leads to disks.
#pragma once

#include <array>

namespace comfyd {

// Programs and libraries.
inline constexpr std::array kSystemFolders{
    "/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin", "/sys"
};

// How the system is set up.
inline constexpr std::array kSystemSettings{
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
};

inline constexpr std::array kSystemSources{"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
// Programs throw things away there.
inline constexpr const char* kNowhere = "/dev/null";

}  // namespace comfyd
