// What a client sends to the server: heads, bodies of every framing, several requests at once. Each
// is answered in HTTP, or the connection ends; a body is never longer than it may be.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "net/io_threads.hpp"
#include "net/server.hpp"
#include "uninterrupted.hpp"

namespace {

using namespace comfyd;

constexpr std::uint64_t kBodyBytesMax = 8192;

Task<> answer(net::Exchange& exchange) {
    net::Response response;
    if (exchange.request().path.ends_with('s')) {
        std::array<char, 100> piece{};
        std::uint64_t total = 0;
        for (;;) {
            auto read = co_await exchange.read_some(piece.data(), piece.size());
            if (!read || *read == 0) {
                break;
            }
            total += *read;
        }
        response.body = std::to_string(total);
    } else {
        auto body = co_await exchange.read_body(kBodyBytesMax);
        if (body && body->size() > kBodyBytesMax) {
            std::abort();
        }
        response.status = body ? 200 : 400;
        response.body = body ? std::move(*body) : std::string();
    }
    auto sent = co_await exchange.send(std::move(response));
    static_cast<void>(sent);
}

class Peer {
public:
    Peer() {
        path_ = "/tmp/fuzz-request-" + std::to_string(::getpid());
        ::unlink(path_.c_str());
        net::Endpoint endpoint;
        endpoint.socket = path_;
        if (!server_.listen(endpoint)) {
            std::abort();
        }
        threads_.start();
    }
    ~Peer() {
        server_.stop(Millis(0));
        threads_.stop();
    }

    std::string ask(std::string_view bytes) const {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path_.copy(address.sun_path, sizeof address.sun_path - 1);
        const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const auto* to = reinterpret_cast<const sockaddr*>(&address);
        if (again([&] { return ::connect(socket, to, sizeof address); }) != 0) {
            std::abort();
        }
        while (!bytes.empty()) {
            const ssize_t sent =
                again([&] { return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
            if (sent <= 0) {
                break;  // it has had enough
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
        ::shutdown(socket, SHUT_WR);
        std::string received;
        std::array<char, 4096> piece{};
        for (ssize_t got = 1; got > 0;) {
            got = again([&] { return ::recv(socket, piece.data(), piece.size(), 0); });
            received.append(piece.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
        }
        ::close(socket);
        return received;
    }

private:
    std::string path_;
    net::IoThreads threads_{1};
    net::Server server_{threads_.contexts(), {.body_bytes_max = 65'536}, answer};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Peer peer;
    const std::string answered = peer.ask({reinterpret_cast<const char*>(data), size});
    if (!answered.empty() && !answered.starts_with("HTTP/1.")) {
        std::abort();
    }
    return 0;
}
