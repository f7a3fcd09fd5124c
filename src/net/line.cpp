#include "net/line.hpp"

#include <algorithm>
#include <utility>

#include <boost/asio/write.hpp>

#include "net/lines.hpp"
#include "net/sockets.hpp"

namespace comfyd::net {
namespace {

constexpr std::size_t kPieceBytes = 64 * 1024;
constexpr unsigned short kNormalClosure = 1000;

}  // namespace

std::optional<std::string> line_name(std::string_view text) {
    constexpr std::string_view kScheme = "worker://";
    constexpr std::size_t kNameBytesMax = 128;
    if (!text.starts_with(kScheme)) {
        return std::nullopt;
    }
    text.remove_prefix(kScheme.size());
    const bool is_name = !text.empty() && text.size() <= kNameBytesMax &&
                         std::all_of(text.begin(), text.end(), [](char c) {
                             return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                    (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
                         });
    return is_name ? std::optional<std::string>(text) : std::nullopt;
}

class Line::Impl {
public:
    Impl(Executor executor, std::unique_ptr<WebSocket> socket, Answer answer)
        : socket_(std::move(socket)),
          answer_(std::move(answer)),
          end_(executor),
          tasks_(executor),
          changed_(executor) {}

    bool connect(Descriptor end) {
        if (connected_ || over_) {
            return false;
        }
        error_code error;
        end_.assign(StreamProtocol(AF_UNIX, 0), end.number(), error);
        if (error) {
            return false;
        }
        end.release();
        connected_ = true;
        changed_.notify();
        return true;
    }

    Millis silent_for() const { return std::chrono::duration_cast<Millis>(Ticks::now() - moved_); }

    Task<> run() {
        tasks_.spawn("line from the peer", take_from_peer());
        tasks_.spawn("line to the peer", give_to_peer());
        co_await tasks_.join_or_cancel();
        finish();
    }

    void finish() {
        if (!over_) {
            over_ = true;
            error_code ignored;
            end_.close(ignored);
            socket_->abort();
            changed_.notify();
        }
    }

private:
    Task<> take_from_peer() {
        bool go_on = true;
        while (go_on) {
            auto message = co_await socket_->read();
            go_on = message && has_end();
            moved_ = Ticks::now();
            if (go_on && !message->data.empty()) {
                error_code error;
                co_await asio::async_write(
                    end_, asio::buffer(message->data), asio::redirect_error(kAwait, error)
                );
                go_on = !error;
            }
        }
        finish();
    }

    bool has_end() {
        if (!connected_ && answer_) {
            auto answered = answer_();
            return answered && connect(std::move(*answered));
        }
        return connected_;
    }

    Task<> give_to_peer() {
        bool go_on = true;
        while (go_on && !connected_ && !over_) {
            go_on = co_await changed_.wait();
        }
        std::string room(connected_ ? kPieceBytes : 0, '\0');
        while (go_on && !over_) {
            error_code error;
            const std::size_t count = co_await end_.async_read_some(
                asio::buffer(room), asio::redirect_error(kAwait, error)
            );
            go_on = !error;
            if (go_on) {
                auto written = co_await socket_->write(room.substr(0, count), true);
                go_on = written.has_value();
                moved_ = Ticks::now();
            }
        }
        if (!over_) {
            co_await socket_->close(kNormalClosure, "");
        }
        finish();
    }

    std::unique_ptr<WebSocket> socket_;
    Answer answer_;
    Socket end_;
    TaskGroup tasks_;
    Signal changed_;  // connected_ or over_
    Ticks::time_point moved_ = Ticks::now();
    bool connected_ = false;
    bool over_ = false;
};

std::shared_ptr<Line> Line::make(
    Executor executor, std::unique_ptr<WebSocket> socket, Answer answer
) {
    return std::shared_ptr<Line>(
        new Line(std::make_unique<Impl>(executor, std::move(socket), std::move(answer)))
    );
}

Line::Line(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Line::~Line() = default;

bool Line::connect(Descriptor end) {
    return impl_->connect(std::move(end));
}

Millis Line::silent_for() const {
    return impl_->silent_for();
}

Task<> Line::run() {
    return impl_->run();
}

void Line::abort() {
    impl_->finish();
}

}  // namespace comfyd::net
