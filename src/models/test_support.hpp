// For the tests of models: a library over a server that does what a test wants.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/crypto.hpp"
#include "models/library.hpp"
#include "net/test_support.hpp"
#include "support/model_server.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::models::test {

namespace fs = std::filesystem;

inline std::string hash_of(const std::string& bytes) {
    return to_hex(sha256(bytes));
}

// Time passes when a test says so.
class SetClock final : public Clock {
public:
    Time now() const override { return now_; }
    void pass(Millis time) { now_ += time; }

private:
    Time now_ = SystemClock().now();
};

class LibraryTest : public testing::Test {
protected:
    LibraryTest() {
        options_.contents.folder = folder_.path() / "cache";
        options_.contents.models = folder_.path() / "ComfyUI" / "models";
        options_.contents.owner = folder_.path();
        options_.web.trusted = {server_.host(), other_.host()};
        options_.web.stall = Millis(10'000);
        options_.fetch.pause_min = options_.fetch.pause_max = Millis(1);
        options_.endpoints = {server_.url(), server_.url()};
    }
    ~LibraryTest() override { close(); }

    Library& library() {
        if (!library_) {
            library_ = std::make_unique<Library>(loop_.executor(), pool_, options_, clock_);
            EXPECT_TRUE(library_->open());
        }
        return *library_;
    }
    // As when the process ends in order.
    void close() {
        if (library_) {
            loop_.run(library_->end());
            library_.reset();
        }
    }

    ModelWish wish(const std::string& name, const std::string& path) const {
        return {"checkpoints", name, server_.url(path)};
    }
    Result<Placed> place(ModelWish wish) {
        return loop_.run(library().place(std::move(wish), nullptr));
    }

    fs::path link(const std::string& name) const {
        return options_.contents.models / "checkpoints" / name;
    }
    std::string content(const std::string& name) const { return support::read_file(link(name)); }
    // What lies in the cache, without its notes.
    std::vector<std::string> cached() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(options_.contents.folder)) {
            const std::string name = entry.path().filename();
            if (!name.starts_with("index.") && !name.starts_with(".new-")) {
                names.push_back(name);
            }
        }
        std::ranges::sort(names);
        return names;
    }
    // Of contents and of parts of some, as far as they have come.
    std::uint64_t cached_bytes() const {
        std::uint64_t bytes = 0;
        for (const std::string& name : cached()) {
            std::error_code gone;
            const std::uint64_t size = fs::file_size(options_.contents.folder / name, gone);
            bytes += gone || name.ends_with(".json") ? 0 : size;
        }
        return bytes;
    }
    // Whatever happened: what has the name of a content is that content.
    void expect_only_right_contents() const {
        for (const std::string& name : cached()) {
            if (is_sha256(name)) {
                EXPECT_EQ(hash_of(support::read_file(options_.contents.folder / name)), name);
            }
        }
    }

    support::TempDir folder_;
    support::ModelServer server_;
    support::ModelServer other_;
    SetClock clock_;
    LibraryOptions options_;
    net::test::Loop loop_;
    Pool pool_{4};
    std::unique_ptr<Library> library_;
};

}  // namespace comfyd::models::test
