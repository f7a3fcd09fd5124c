// One address before several servers: each connection goes to the next of them, whatever it asks
// for. Test code only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "net/http.hpp"
#include "net/io_threads.hpp"

namespace comfyd::support {

class Balancer {
    using Tcp = boost::asio::ip::tcp;
    using Socket = std::shared_ptr<Tcp::socket>;

public:
    explicit Balancer(const std::vector<std::string>& servers)
        : acceptor_(thread_.context(), Tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {
        for (const std::string& server : servers) {
            ports_.push_back(net::Url::parse(server)->port);
        }
        accept();
        thread_.start();
    }
    ~Balancer() { thread_.stop(); }

    std::string url() const {
        return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
    }

private:
    void accept() {
        const auto client = std::make_shared<Tcp::socket>(thread_.context());
        acceptor_.async_accept(*client, [this, client](boost::system::error_code error) {
            if (!error) {
                connect(client);
            }
            accept();
        });
    }
    void connect(const Socket& client) {
        const auto server = std::make_shared<Tcp::socket>(thread_.context());
        const Tcp::endpoint next(
            boost::asio::ip::address_v4::loopback(), ports_[count_++ % ports_.size()]
        );
        server->async_connect(next, [client, server](boost::system::error_code error) {
            if (!error) {
                pump(client, server, std::make_shared<std::string>(16'384, '\0'));
                pump(server, client, std::make_shared<std::string>(16'384, '\0'));
            }
        });
    }
    static void pump(Socket from, Socket to, std::shared_ptr<std::string> room) {
        const auto buffer = boost::asio::buffer(*room);
        from->async_read_some(
            buffer,
            [from, to, room](boost::system::error_code error, std::size_t count) {
                if (error) {
                    to->close(error);
                    return;
                }
                boost::asio::async_write(
                    *to,
                    boost::asio::buffer(room->data(), count),
                    [from, to, room](boost::system::error_code failed, std::size_t) {
                        if (failed) {
                            from->close(failed);
                        } else {
                            pump(from, to, room);
                        }
                    }
                );
            }
        );
    }

    net::IoThread thread_{"balancer"};
    Tcp::acceptor acceptor_;
    std::vector<std::uint16_t> ports_;
    std::size_t count_ = 0;
};

}  // namespace comfyd::support
