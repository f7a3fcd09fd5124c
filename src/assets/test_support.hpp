// For tests: records in memory, a folder that goes away, and a web server with files to fetch.
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

#include "assets/hashed_blobs.hpp"
#include "assets/incoming.hpp"
#include "assets/store.hpp"
#include "base/disk.hpp"
#include "net/io_threads.hpp"
#include "net/server.hpp"

namespace comfyd::assets::test {

namespace fs = std::filesystem;

// Blobs that are elsewhere, as in a bucket: no files of this machine; clients are sent to them. Any
// thread.
class Bucket final : public HashedBlobs {
public:
    struct Content {
        std::mutex mutex;
        std::map<std::string, std::string> blobs;  // by hash
        std::map<std::string, int> kept;           // how often each was made young
        bool is_away = false;
    };
    explicit Bucket(std::shared_ptr<Content> content) : content_(std::move(content)) {}

    Result<> open() override { return {}; }
    Task<Result<Blob>> put(Incoming& content) override {
        if (auto synced = content.sync(Time()); !synced) {
            co_return fail(std::move(synced.error()));
        }
        const std::lock_guard lock(content_->mutex);
        if (content_->is_away) {
            co_return fail(Code::storage_unavailable, "the bucket is away");
        }
        const auto [at, is_new] =
            content_->blobs.emplace(content.hash(), *read_file(content.path(), content.size()));
        co_return Blob{at->first, content.size(), is_new};
    }
    Task<Result<std::optional<Place>>> find(std::string hash) override {
        const std::lock_guard lock(content_->mutex);
        const auto found = content_->blobs.find(hash);
        if (found == content_->blobs.end()) {
            co_return std::nullopt;
        }
        co_return Place{Redirect{"https://bucket.example/" + hash}, found->second.size()};
    }
    Task<Result<std::string>> read(std::string hash, std::uint64_t) override {
        const std::lock_guard lock(content_->mutex);
        const auto found = content_->blobs.find(hash);
        if (found == content_->blobs.end()) {
            co_return fail(Code::not_found, "it is not in the bucket");
        }
        co_return found->second;
    }
    Task<Result<bool>> keep(std::string hash) override {
        const std::lock_guard lock(content_->mutex);
        ++content_->kept[hash];
        co_return content_->blobs.contains(hash);
    }
    Task<Result<Removal>> remove_unless_young(std::string hash) override {
        const std::lock_guard lock(content_->mutex);
        co_return content_->blobs.erase(hash) > 0 ? Removal::removed : Removal::absent;
    }
    Task<Result<std::vector<std::string>>> old_ones(std::uint8_t) override {
        co_return std::vector<std::string>();
    }

private:
    std::shared_ptr<Content> content_;  // shared with the test
};

// Records in memory, with the promises of the interface. Any thread.
class MemoryCatalogue final : public Catalogue {
public:
    std::atomic<bool> is_broken{false};
    std::vector<std::string> loose;  // told by the next take_loose()
    // Called in is_referenced() after the answer is known and before it is given.
    std::function<void()> after_question;

    Task<Result<>> add(Asset asset) override {
        if (is_broken) {
            co_return broken();
        }
        const std::lock_guard lock(mutex_);
        assets_[asset.id] = std::move(asset);
        co_return Result<>();
    }
    Task<Result<std::optional<Asset>>> find(AssetId id) override {
        const std::lock_guard lock(mutex_);
        const auto found = assets_.find(id);
        co_return found == assets_.end() ? std::nullopt : std::optional<Asset>(found->second);
    }
    Task<Result<std::optional<Asset>>> find_by_hash(std::string tenant, std::string hash) override {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, asset] : assets_) {
            if (asset.tenant == tenant && asset.hash == hash) {
                co_return asset;
            }
        }
        co_return std::nullopt;
    }
    Task<Result<bool>> remove(AssetId id) override {
        const std::lock_guard lock(mutex_);
        const auto found = assets_.find(id);
        if (found != assets_.end() && found->second.job) {
            co_return fail(Code::asset_in_use, "a job's output");
        }
        co_return assets_.erase(id) > 0;
    }
    Task<Result<bool>> is_referenced(std::string hash) override {
        if (is_broken) {
            co_return broken();
        }
        bool is_found = false;
        {
            const std::lock_guard lock(mutex_);
            is_found = std::any_of(assets_.begin(), assets_.end(), [&](const auto& entry) {
                return entry.second.hash == hash;
            });
        }
        if (after_question) {
            after_question();
        }
        co_return is_found;
    }
    Task<Result<std::optional<std::string>>> kept_bytes(std::string hash) override {
        const std::lock_guard lock(mutex_);
        for (const auto& [id, asset] : assets_) {
            if (asset.hash == hash && asset.bytes) {
                co_return *asset.bytes;
            }
        }
        co_return std::nullopt;
    }
    Task<Result<std::vector<Asset>>> expired(Time now, int limit) override {
        const std::lock_guard lock(mutex_);
        std::vector<Asset> found;
        for (const auto& [id, asset] : assets_) {
            if (asset.expires_at && *asset.expires_at <= now && !asset.job &&
                found.size() < static_cast<std::size_t>(limit)) {
                found.push_back(asset);
            }
        }
        co_return found;
    }
    std::vector<std::string> take_loose() override { return std::exchange(loose, {}); }
    // As the ledger does with the job that made it.
    void drop(const Asset& asset) {
        const std::lock_guard lock(mutex_);
        assets_.erase(asset.id);
        loose.push_back(asset.hash);
    }

private:
    static tl::unexpected<Error> broken() {
        return fail(Code::storage_unavailable, "the catalogue is broken");
    }
    std::mutex mutex_;
    std::map<AssetId, Asset> assets_;
};

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
    context.restart();
    std::optional<T> result;
    boost::asio::co_spawn(context, std::move(task), [&](std::exception_ptr error, T value) {
        ASSERT_FALSE(error);
        result.emplace(std::move(value));
    });
    context.run();
    return std::move(*result);
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
