#include "net/local_listener.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "net/socket_name.hpp"

namespace comfyd::net {
namespace {

constexpr mode_t kFolderMode = 0700;
constexpr mode_t kSocketMode = 0600;

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) {
            ::close(number_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int number() const { return number_; }
    int release() { return std::exchange(number_, -1); }

private:
    int number_;
};

int open_socket() {
    return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// The file is a socket of a server that has ended without removing it.
bool is_stale(const std::string& path, const SocketName& name) {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return false;
    }
    const Descriptor caller(open_socket());
    return ::connect(caller.number(), name.data(), static_cast<socklen_t>(name.size())) != 0 &&
           errno == ECONNREFUSED;
}

tl::unexpected<Error> cannot_listen(const std::string& path, int error) {
    const bool taken = error == EADDRINUSE;
    return fail(
        taken ? Code::conflict : Code::invalid_argument,
        "cannot listen on unix:" + path + ": " +
            (taken ? "another program answers there, or it is no socket; choose another path"
                   : std::strerror(error))
    );
}

}  // namespace

Result<int> listen_locally(const std::string& path, int backlog) {
    const auto name = local_name(path);
    if (!name) {
        return fail(name.error());
    }
    const auto folder = std::filesystem::path(path).parent_path();
    if (!folder.empty() && ::mkdir(folder.c_str(), kFolderMode) != 0 && errno != EEXIST) {
        return cannot_listen(path, errno);
    }
    Descriptor listener(open_socket());
    // Before bind(), which gives the file the mode that the socket has: nobody comes in between.
    if (listener.number() < 0 || ::fchmod(listener.number(), kSocketMode) != 0) {
        return cannot_listen(path, errno);
    }
    const auto bind = [&] {
        return ::bind(listener.number(), name->data(), static_cast<socklen_t>(name->size()));
    };
    int bound = bind();
    if (bound != 0 && errno == EADDRINUSE) {
        const bool removed = is_stale(path, *name) && ::unlink(path.c_str()) == 0;
        bound = removed ? bind() : -1;
        errno = bound == 0 ? 0 : EADDRINUSE;
    }
    if (bound != 0 || ::listen(listener.number(), backlog) != 0) {
        return cannot_listen(path, errno);
    }
    return listener.release();
}

}  // namespace comfyd::net
