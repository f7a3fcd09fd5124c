#include "assets/s3/s3_store.hpp"

#include <utility>

#include "base/cancellable_hop.hpp"

namespace comfyd::assets::s3 {

S3Store::S3Store(bool gives_links) : gives_links_(gives_links), thread_("s3") {}

S3Store::~S3Store() {
    thread_.stop();
}

Result<std::unique_ptr<S3Store>> S3Store::make(S3Settings settings, Clock& clock, Pool& pool) {
    std::unique_ptr<S3Store> store(new S3Store(settings.gives_links));
    auto requests = Requests::make(
        store->thread_.executor(),
        std::move(settings.requests),
        std::move(settings.credentials),
        clock,
        pool
    );
    if (!requests) {
        return fail(std::move(requests.error()));
    }
    store->bucket_ = std::make_unique<Bucket>(std::move(*requests), std::move(settings.bucket));
    store->thread_.start();
    return store;
}

Task<Result<std::string>> S3Store::put(std::string key, Source source) {
    auto done =
        co_await await_cancellable_on(thread_.executor(), bucket_->put(key, std::move(source)));
    co_return done ? Result<std::string>(std::move(key)) : fail(std::move(done.error()));
}

Task<Result<std::optional<Place>>> S3Store::find(std::string key, LinkTerms terms) {
    auto place = co_await await_cancellable_on(
        thread_.executor(), bucket_->find(std::move(key), std::move(terms))
    );
    if (place && *place && !gives_links_ && std::holds_alternative<Redirect>(**place)) {
        co_return Place(Streamed{});
    }
    co_return place;
}

Task<Result<std::string>> S3Store::read(
    std::string key, std::uint64_t first, std::uint64_t length
) {
    return await_cancellable_on(thread_.executor(), bucket_->read(std::move(key), first, length));
}

Task<Result<>> S3Store::remove(std::string key) {
    return await_cancellable_on(thread_.executor(), bucket_->remove(std::move(key)));
}

Task<Result<>> S3Store::change_class(std::string key, StorageClass to) {
    return await_cancellable_on(thread_.executor(), bucket_->change_class(std::move(key), to));
}

Task<Result<BlobStore::Page>> S3Store::list(std::string after) {
    return await_cancellable_on(thread_.executor(), bucket_->list(std::move(after)));
}

Task<Result<>> S3Store::remove_unfinished(Time before) {
    return await_cancellable_on(thread_.executor(), bucket_->remove_unfinished(before));
}

}  // namespace comfyd::assets::s3
