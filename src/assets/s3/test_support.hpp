// For tests of stores over S3.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "assets/s3/s3_store.hpp"
#include "assets/test_support.hpp"
#include "base/pool.hpp"
#include "base/time.hpp"

namespace comfyd::assets::s3::test {

// A store, and what blocks for what it does.
class Store {
public:
    Store(S3Settings settings, Clock& clock) {
        auto made = S3Store::make(std::move(settings), clock, pool_);
        EXPECT_TRUE(made);
        store_ = std::move(*made);
    }

    Result<std::string> put(const std::string& key, Source source) {
        return assets::test::wait_for(store_->put(key, std::move(source)));
    }
    Result<std::string> read(const std::string& key, std::uint64_t first, std::uint64_t length) {
        return assets::test::wait_for(store_->read(key, first, length));
    }
    Result<> remove(const std::string& key) { return assets::test::wait_for(store_->remove(key)); }
    Result<> change_class(const std::string& key, StorageClass to) {
        return assets::test::wait_for(store_->change_class(key, to));
    }
    Result<std::optional<Place>> find(const std::string& key, LinkTerms terms = {}) {
        return assets::test::wait_for(store_->find(key, std::move(terms)));
    }
    // A link, or empty.
    std::string link(const std::string& key, LinkTerms terms = {}) {
        const auto place = find(key, std::move(terms));
        const auto* redirect = place && *place ? std::get_if<Redirect>(&**place) : nullptr;
        return redirect != nullptr ? redirect->url : std::string();
    }
    Result<BlobStore::Page> list(const std::string& after = {}) {
        return assets::test::wait_for(store_->list(after));
    }
    Result<> remove_unfinished(Time before) {
        return assets::test::wait_for(store_->remove_unfinished(before));
    }
    S3Store& operator*() { return *store_; }

private:
    Pool pool_{2};
    std::unique_ptr<S3Store> store_;
};

// Impatient, as tests are.
inline S3Settings settings_for(std::string endpoint, std::string bucket = "box") {
    S3Settings settings;
    settings.requests.name = {.bucket = std::move(bucket), .endpoint = std::move(endpoint)};
    settings.requests.patience = {
        .tries_max = 4, .first_pause = Millis(1), .longest_pause = Millis(4)
    };
    settings.credentials.given = {"AK", "SK"};
    return settings;
}

}  // namespace comfyd::assets::s3::test
