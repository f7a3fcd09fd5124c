// What a worker's side of a WebSocket sends after the handshake: frames, or whatever it likes. The
// client gets messages within its limit, or an error.
#include <openssl/evp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "base/crypto.hpp"
#include "net/client.hpp"
#include "net/io_threads.hpp"
#include "uninterrupted.hpp"

namespace {

using namespace comfyd;

constexpr std::size_t kMessageBytesMax = 4096;

// A worker that listens, and the client's thread.
class Peers {
public:
    Peers() {
        path_ = "/tmp/fuzz-websocket-" + std::to_string(::getpid());
        ::unlink(path_.c_str());
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path_.copy(address.sun_path, sizeof address.sun_path - 1);
        listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
            ::listen(listener_, 8) != 0) {
            std::abort();
        }
        thread_.start();
    }
    ~Peers() {
        thread_.stop();
        ::unlink(path_.c_str());
    }

    void meet(std::string_view frames) {
        auto read =
            boost::asio::co_spawn(thread_.executor(), listen(path_), boost::asio::use_future);
        const int socket =
            again([this] { return ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); });
        const std::string head = receive(socket, "\r\n\r\n");
        send(
            socket,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: " +
                answer_to(head) + "\r\n\r\n"
        );
        send(socket, frames);
        ::shutdown(socket, SHUT_WR);
        receive(socket, "");
        ::close(socket);
        read.get();
    }

private:
    Task<> listen(std::string path) {
        net::Client client(thread_.executor(), {});
        net::WebSocketOptions options;
        options.message_bytes_max = kMessageBytesMax;
        auto socket = co_await client.connect("ws://worker/ws", options, Millis(60'000), path);
        while (socket) {
            auto message = co_await (*socket)->read();
            if (!message) {
                break;
            }
            if (message->data.size() > kMessageBytesMax) {
                std::abort();
            }
        }
    }

    static std::string answer_to(const std::string& head) {
        constexpr std::string_view kName = "Sec-WebSocket-Key: ";
        const auto at = head.find(kName);
        const std::string text =
            head.substr(at + kName.size(), 24) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
        std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
        unsigned size = 0;
        EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
        return to_base64({reinterpret_cast<const char*>(digest.data()), size});
    }
    static void send(int socket, std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t sent =
                again([&] { return ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
            if (sent <= 0) {
                return;  // it has had enough
            }
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    // To the end where `until` is empty.
    static std::string receive(int socket, std::string_view until) {
        std::string received;
        std::array<char, 4096> piece{};
        while (until.empty() || received.find(until) == std::string::npos) {
            const ssize_t got =
                again([&] { return ::recv(socket, piece.data(), piece.size(), 0); });
            if (got <= 0) {
                break;
            }
            received.append(piece.data(), static_cast<std::size_t>(got));
        }
        return received;
    }

    std::string path_;
    int listener_ = -1;
    net::IoThread thread_{"client"};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static Peers peers;
    peers.meet({reinterpret_cast<const char*>(data), size});
    return 0;
}
