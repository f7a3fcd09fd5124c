// An open file descriptor with an owner. A value that can only be moved; any thread.
#pragma once

#include <utility>

#include "base/error.hpp"

namespace comfyd::net {

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() { reset(); }
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        if (this != &other) {
            reset();
            number_ = other.release();
        }
        return *this;
    }

    explicit operator bool() const { return number_ >= 0; }
    int number() const { return number_; }
    int release() { return std::exchange(number_, -1); }
    void reset();

private:
    int number_ = -1;
};

// Two sockets that are connected to each other. Code::connection_failed: the process may not have
// more.
Result<std::pair<Descriptor, Descriptor>> connected_sockets();

}  // namespace comfyd::net
