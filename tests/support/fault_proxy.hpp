// A TCP proxy in front of a server of a test, which breaks connections as networks do. It has a
// thread of its own; all members from the test's thread. What a call asks for holds when it
// returns, for the connections that are open and for those that come.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace comfyd::support {

class FaultProxy {
public:
    enum class Way { to_server, to_client };
    enum class Fault {
        cut,               // both ends are reset
        half_close,        // the client is told that nothing more comes; it may go on to send
        swallow_requests,  // what the client sends arrives nowhere, and nothing is closed
        swallow_answers,   // likewise what the server sends
        swallow_both,
        garble_answers,  // what the server sends arrives as so many zeros
        hold_requests,   // what the client sends is kept until release()
        lose_answer,  // the server answers, then both ends are reset; the client sees nothing of it
    };

    // Forwards to 127.0.0.1:`server`.
    explicit FaultProxy(std::uint16_t server);
    ~FaultProxy();
    FaultProxy(const FaultProxy&) = delete;
    FaultProxy& operator=(const FaultProxy&) = delete;

    std::uint16_t port() const;

    // To the connections that are open now.
    void inflict(Fault fault);
    // And to those that come. cut: each of them is reset as soon as it is accepted.
    void inflict_on_all(Fault fault);
    // Once, to the connection in which the bytes of `pattern` come along first; they are passed on.
    void inflict_after(Way way, std::string pattern, Fault fault);
    // Once so many bytes have passed from now on, to the connection in which the last of them did.
    void inflict_after(Way way, std::size_t bytes, Fault fault);
    // Whether the fault that was to come has been inflicted.
    bool has_struck() const;

    // Nobody listens on the port, as far as those see who connect.
    void refuse(bool does);
    // Everything that passes does so later by this much.
    void delay(std::chrono::milliseconds time);
    // What is held is passed on, and what comes after it.
    void release();
    // No fault is waited for, and connections that come are forwarded. Those that suffer one stay
    // broken: a network does not bring back what it has swallowed.
    void heal();

    std::size_t open_connections() const;
    std::size_t accepted_connections() const;  // since the start
    std::uint64_t passed_bytes(Way way) const;

private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace comfyd::support
