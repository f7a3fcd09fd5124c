#include "net/socket_name.hpp"

#include <sys/un.h>

#include <boost/asio/local/stream_protocol.hpp>

#include "base/assert.hpp"

namespace comfyd::net {

Result<SocketName> local_name(const std::string& path) {
    constexpr std::size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;
    if (path.empty() || path.size() > kPathBytesMax) {
        return fail(
            Code::invalid_argument,
            "'" + path + "' cannot be the name of a socket: it must have 1 to " +
                std::to_string(kPathBytesMax) + " bytes"
        );
    }
    return SocketName(asio::local::stream_protocol::endpoint(path));
}

bool is_local(const SocketName& name) {
    return name.protocol().family() == AF_UNIX;
}

tcp::endpoint to_tcp(const SocketName& name) {
    tcp::endpoint endpoint;
    COMFYD_ASSERT(!is_local(name) && name.size() <= endpoint.capacity());
    std::memcpy(endpoint.data(), name.data(), name.size());
    endpoint.resize(name.size());
    return endpoint;
}

}  // namespace comfyd::net
