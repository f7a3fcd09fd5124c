// Plain TCP towards a server of a test: for clients that break rules or do not read.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http.hpp"

namespace comfyd::support {

class RawSocket {
public:
    // `url`: "http://127.0.0.1:PORT". `receive_bytes`: room that the kernel keeps for what is not
    // read.
    explicit RawSocket(const std::string& url, int receive_bytes = 0)
        : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        const auto parsed = net::Url::parse(url);
        if (receive_bytes > 0) {
            ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
        }
        timeval patience{10, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(parsed ? parsed->port : 0);
        ::inet_pton(AF_INET, parsed ? parsed->host.c_str() : "", &address.sin_addr);
        connected_ =
            ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    ~RawSocket() { ::close(fd_); }
    RawSocket(const RawSocket&) = delete;
    RawSocket& operator=(const RawSocket&) = delete;

    bool connected() const { return connected_; }
    int descriptor() const { return fd_; }
    // False when the server has closed.
    bool send(std::string_view data) {
        while (!data.empty()) {
            const auto sent = ::send(fd_, data.data(), data.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            data.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    // Up to and with `mark`; less when the server closes or is silent for too long.
    std::string read_until(std::string_view mark) {
        std::string text;
        char byte = 0;
        while (text.find(mark) == std::string::npos && ::recv(fd_, &byte, 1, 0) == 1) {
            text += byte;
        }
        return text;
    }
    // Reads and drops until the server closes. False: it did not.
    bool drain() {
        char buffer[4096];
        for (;;) {
            const auto count = ::recv(fd_, buffer, sizeof buffer, 0);
            if (count <= 0) {
                return count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
            }
        }
    }
    // Asks for a WebSocket; true when the server agrees.
    bool upgrade(const std::string& target) {
        send(
            "GET " + target +
            " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        return read_until("\r\n\r\n").starts_with("HTTP/1.1 101");
    }

private:
    int fd_;
    bool connected_ = false;
};

// A WebSocket whose owner never reads.
class SilentReader {
public:
    SilentReader(const std::string& url, const std::string& target)
        : socket_(url, 4096), connected_(socket_.upgrade(target)) {}
    bool connected() const { return connected_; }

private:
    RawSocket socket_;
    bool connected_;
};

}  // namespace comfyd::support
