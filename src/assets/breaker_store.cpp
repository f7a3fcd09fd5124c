#include "assets/breaker_store.hpp"

#include <functional>
#include <optional>
#include <utility>

#include "base/log.hpp"

namespace comfyd::assets {

class BreakerStore::Pass {
public:
    Pass(BreakerStore& store, bool is_try) : store_(&store), is_try_(is_try) {}
    Pass(Pass&& other) noexcept
        : store_(other.store_), is_try_(std::exchange(other.is_try_, false)) {}
    Pass& operator=(Pass&&) = delete;
    ~Pass() {
        if (is_try_) {
            store_->end_try();
        }
    }

private:
    BreakerStore* store_;
    bool is_try_;
};

BreakerStore::BreakerStore(
    std::string name, std::unique_ptr<BlobStore> store, Clock& clock, CircuitBreaker::Limits limits
)
    : name_(std::move(name)), store_(std::move(store)), clock_(clock), breaker_(limits) {}

CircuitBreaker::State BreakerStore::state() const {
    const Lock lock(mutex_);
    return breaker_.state(clock_.now());
}

Result<BreakerStore::Pass> BreakerStore::admit() {
    const Lock lock(mutex_);
    const auto state = breaker_.state(clock_.now());
    if (state == CircuitBreaker::State::open || is_tried_) {
        return fail(
            Code::storage_unavailable,
            "the store '" + name_ +
                "' did not answer several times in a row and is left alone for a "
                "while; try again later"
        );
    }
    is_tried_ = state == CircuitBreaker::State::half_open;
    return Pass(*this, is_tried_);
}

void BreakerStore::settle(bool is_away) {
    const Lock lock(mutex_);
    const double jitter = static_cast<double>(std::hash<std::string>()(name_) % 1'000) / 1'000.0;
    const bool was_closed = breaker_.state(clock_.now()) == CircuitBreaker::State::closed;
    if (!is_away) {
        breaker_.succeeded();
        if (!was_closed) {
            log::info("a store answers again", {{"store", name_}});
        }
    } else if (breaker_.failed(clock_.now(), jitter) && was_closed) {
        log::warning("a store is away and left alone for a while", {{"store", name_}});
    }
}

void BreakerStore::end_try() {
    const Lock lock(mutex_);
    is_tried_ = false;
}

template <class T>
Task<Result<T>> BreakerStore::ask(Task<Result<T>> call) {
    const auto pass = admit();
    if (!pass) {
        co_return fail(pass.error());
    }
    auto answer = co_await std::move(call);
    if (answer || answer.error().code != Code::cancelled) {
        settle(!answer && answer.error().code == Code::storage_unavailable);
    }
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
