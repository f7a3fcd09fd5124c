// What a helper process and its parent say to each other over a socket: a frame is the length of a
// JSON text, the text, and the bytes that it tells of. With an order comes the file, as an open
// descriptor. Blocking; any thread.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "media/make.hpp"

namespace comfyd::media {

// An open file.
class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() { close(); }

    int number() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    void close() {
        if (number_ >= 0) {
            ::close(std::exchange(number_, -1));
        }
    }

private:
    int number_ = -1;
};

inline constexpr std::size_t kHeadBytesMax = 256U << 10;

// How the conversation goes on: the code says why it does not.
using GoesOn = std::function<Result<>()>;

// Code::worker_lost: the other side is gone, or says what cannot be; or what `goes_on` says, which
// is asked at least every 50 ms while nothing comes.
Result<> send_order(int socket, const std::string& order, int file, const GoesOn& goes_on);
Result<Answer> receive_answer(int socket, const GoesOn& goes_on);

// For the helper, which waits for as long as it takes. Nullopt: the parent has gone, or broken off.
struct Received {
    Order order;
    Descriptor file;
};
std::optional<Received> receive_order(int socket);
bool send_answer(int socket, const Answer& answer);

}  // namespace comfyd::media
