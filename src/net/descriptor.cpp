#include "net/descriptor.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace comfyd::net {

void Descriptor::reset() {
    if (number_ >= 0) {
        ::close(release());
    }
}

Result<std::pair<Descriptor, Descriptor>> connected_sockets() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0) {
        return fail(
            Code::connection_failed,
            std::string("no connection can be made inside this process: ") + std::strerror(errno)
        );
    }
    return std::pair(Descriptor(ends[0]), Descriptor(ends[1]));
}

}  // namespace comfyd::net
