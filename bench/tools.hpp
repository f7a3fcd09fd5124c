// What the parts of bench-driver share.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>

namespace comfyd::bench {

using SteadyClock = std::chrono::steady_clock;

inline double ms_since(SteadyClock::time_point start) {
    return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

inline double percentile(std::vector<double> values, double p) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(p * static_cast<double>(values.size() - 1))];
}

inline boost::asio::ip::tcp::endpoint endpoint_of(const std::string& url) {
    return {
        boost::asio::ip::address_v4::loopback(),
        static_cast<unsigned short>(std::stoi(url.substr(url.rfind(':') + 1)))
    };
}

// As many open files as there may be.
inline void raise_limit_of_files() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// A bare keep-alive client: the driver shares the machine, so it must cost little.
class BareClient {
public:
    explicit BareClient(const std::string& url) : socket_(context_) {
        socket_.connect(endpoint_of(url));
    }

    // The body of the answer.
    std::string post(const std::string& target, const std::string& body) {
        const std::string request =
            "POST " + target +
            " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
            "\r\n\r\n" + body;
        boost::asio::write(socket_, boost::asio::buffer(request));
        std::string answer;
        const std::size_t head =
            boost::asio::read_until(socket_, boost::asio::dynamic_buffer(answer), "\r\n\r\n");
        const auto at = answer.find("Content-Length: ");
        const std::size_t length = std::stoul(answer.substr(at + 16));
        if (answer.rfind("HTTP/1.1 201", 0) != 0) {
            std::fprintf(stderr, "submit answered %s\n", answer.c_str());
            std::exit(1);
        }
        const std::size_t so_far = answer.size();
        answer.resize(std::max(so_far, head + length));
        boost::asio::read(
            socket_, boost::asio::buffer(answer.data() + so_far, answer.size() - so_far)
        );
        return answer.substr(head, length);
    }

private:
    boost::asio::io_context context_;
    boost::asio::ip::tcp::socket socket_;
};

}  // namespace comfyd::bench
