#include "assets/breaker_store.hpp"

#include <optional>
#include <utility>

#include "base/log.hpp"

namespace comfyd::assets {

BreakerStore::BreakerStore(
    std::string name,
    std::unique_ptr<BlobStore> store,
    const Clock& clock,
    CircuitBreaker::Limits limits
)
    : name_(std::move(name)), store_(std::move(store)), itself_("store:" + name_, limits, clock) {}

void BreakerStore::note(std::optional<Code> refusal) {
    if (refusal == Code::cancelled) {
        return;  // it says nothing of the store
    }
    if (refusal == Code::storage_unavailable) {
        if (itself_.failed()) {
            log::warning("a store is away and left alone for a while", {{"store", name_}});
        }
    } else if (itself_.succeeded()) {
        log::info("a store answers again", {{"store", name_}});
    }
}

template <class T>
Task<Result<T>> BreakerStore::ask(Task<Result<T>> call) {
    const auto pass = itself_.admit();
    if (!pass) {
        co_return fail(
            Code::storage_unavailable,
            "the store '" + name_ +
                "' did not answer several times in a row and is left alone for a while; try again "
                "later"
        );
    }
    auto answer = co_await std::move(call);
    note(answer ? std::nullopt : std::optional(answer.error().code));
    co_return answer;
}

Task<Result<std::string>> BreakerStore::put(std::string key, Source source) {
    return ask(store_->put(std::move(key), std::move(source)));
}

Task<Result<std::optional<Place>>> BreakerStore::find(std::string key, LinkTerms terms) {
    return store_->find(std::move(key), std::move(terms));
}

Task<Result<std::string>> BreakerStore::read(
    std::string key, std::uint64_t first, std::uint64_t length
) {
    return ask(store_->read(std::move(key), first, length));
}

Task<Result<>> BreakerStore::remove(std::string key) {
    return ask(store_->remove(std::move(key)));
}

Task<Result<>> BreakerStore::change_class(std::string key, StorageClass to) {
    return ask(store_->change_class(std::move(key), to));
}

Task<Result<BlobStore::Page>> BreakerStore::list(std::string after) {
    return ask(store_->list(std::move(after)));
}

Task<Result<>> BreakerStore::remove_unfinished(Time before) {
    return ask(store_->remove_unfinished(before));
}

}  // namespace comfyd::assets
