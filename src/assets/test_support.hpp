// For tests: a folder that goes away, and a web server with files to fetch.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>

#include "assets/memory_catalogue.hpp"
#include "assets/store.hpp"
#include "base/wait_for.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"

namespace comfyd::assets::test {

namespace fs = std::filesystem;

// In memory where the machine has that, because there syncing costs nothing.
inline fs::path scratch() {
    const fs::path memory = "/dev/shm";
    return ::access(memory.c_str(), W_OK) == 0 ? memory : fs::temp_directory_path();
}

class Folder {
public:
    Folder() {
        std::string name = (scratch() / "comfyd-store-XXXXXX").string();
        path_ = mkdtemp(name.data());
    }
    ~Folder() { fs::remove_all(path_); }
    const fs::path& path() const { return path_; }

private:
    fs::path path_;
};

template <class T>
T wait_for(Task<T> task) {
    // Lives on: the thread that resumes the task last is not done with it yet when run() returns.
    static thread_local boost::asio::io_context context;
    return run_task(context, std::move(task));
}

// Answers on the loopback as the test says. Set the pages before they are asked for.
class FileServer {
public:
    struct Page {
        int status = 200;
        net::Headers headers{};
        std::string body{};
        bool is_endless = false;  // `body` again and again, until the client goes away
        bool is_silent = false;   // an answer begins and never goes on
    };

    FileServer()
        : server_(threads_.contexts(), {}, [this](net::Exchange& exchange) {
              return answer(*this, exchange);
          }) {
        threads_.start();
        auto endpoint = server_.listen({"127.0.0.1", 0});
        EXPECT_TRUE(endpoint);
        port_ = endpoint ? endpoint->port : 0;
    }
    ~FileServer() {
        server_.stop(Millis(0));
        threads_.stop();
    }

    void put(const std::string& path, Page page) {
        const std::lock_guard lock(mutex_);
        pages_[path] = std::move(page);
    }
    void put(const std::string& path, std::string content_type, std::string body) {
        Page page;
        page.headers.set("Content-Type", std::move(content_type));
        page.body = std::move(body);
        put(path, std::move(page));
    }
    void redirect(const std::string& path, std::string location, int status = 302) {
        Page page;
        page.status = status;
        page.headers.set("Location", std::move(location));
        put(path, std::move(page));
    }
    std::string url(const std::string& path, const std::string& host = "127.0.0.1") const {
        return "http://" + host + ":" + std::to_string(port_) + path;
    }
    int asked(const std::string& path) {
        const std::lock_guard lock(mutex_);
        return asked_[path];
    }
    std::uint64_t endless_bytes() const { return endless_bytes_; }

private:
    static Task<> answer(FileServer& self, net::Exchange& exchange) {
        Page page;
        page.status = 404;
        {
            const std::lock_guard lock(self.mutex_);
            ++self.asked_[exchange.request().path];
            if (const auto found = self.pages_.find(exchange.request().path);
                found != self.pages_.end()) {
                page = found->second;
            }
        }
        net::Response response{page.status, page.headers, page.body};
        if (!page.is_endless && !page.is_silent) {
            auto sent = co_await exchange.send(std::move(response));
            static_cast<void>(sent);
            co_return;
        }
        auto going = co_await exchange.begin_stream(std::move(response));
        while (going && page.is_endless) {
            self.endless_bytes_ += page.body.size();
            going = co_await exchange.write_stream(page.body);
        }
        bool closed = !going;
        while (!closed && !exchange.draining()) {
            closed = co_await exchange.wait_closed(Millis(10'000));
        }
    }

    net::IoThreads threads_{1};
    net::Server server_;
    std::uint16_t port_ = 0;
    std::mutex mutex_;
    std::map<std::string, Page> pages_;
    std::map<std::string, int> asked_;
    std::atomic<std::uint64_t> endless_bytes_{0};
};

// The first bytes of a PNG, and as many others as wanted.
inline std::string picture(std::size_t more = 100, char fill = 'x') {
    return "\x89PNG\r\n\x1a\n" + std::string(more, fill);
}

}  // namespace comfyd::assets::test
