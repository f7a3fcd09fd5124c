// A store elsewhere that is left alone while it is away: after several calls in a row that came to
// nothing its calls are refused at once, for longer each time, until one that is let through
// succeeds. Callers wait for nobody who does not answer, and the store is not asked by all as soon
// as it is back.
//
// find() is let through always: many stores answer it without having been asked.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "assets/blob_store.hpp"
#include "base/dependency.hpp"

namespace comfyd::assets {

class BreakerStore : public BlobStore {
public:
    // A call that fails has been tried several times by the store itself.
    static constexpr CircuitBreaker::Limits kLimits{
        .failures = 5, .open_first = std::chrono::seconds(10), .open_max = std::chrono::minutes(1)
    };

    // `clock` outlives it. `name` is what the store is called in messages.
    BreakerStore(
        std::string name,
        std::unique_ptr<BlobStore> store,
        const Clock& clock = SteadyClock::of_process(),
        CircuitBreaker::Limits limits = kLimits
    );

    const std::string& name() const { return name_; }
    CircuitBreaker::State state() const { return itself_.state(); }

    Result<> open() override { return store_->open(); }
    Task<Result<std::string>> put(std::string key, Source source) override;
    Task<Result<std::optional<Place>>> find(std::string key, LinkTerms terms) override;
    Task<Result<std::string>> read(std::string key, std::uint64_t first, std::uint64_t length)
        override;
    Task<Result<>> remove(std::string key) override;
    Task<Result<>> change_class(std::string key, StorageClass to) override;
    Task<Result<Page>> list(std::string after) override;
    Task<Result<>> remove_unfinished(Time before) override;

private:
    // `call` begins only when it is let through.
    template <class T>
    Task<Result<T>> ask(Task<Result<T>> call);
    void note(std::optional<Code> refusal);

    const std::string name_;
    const std::unique_ptr<BlobStore> store_;
    Dependency itself_;
};

}  // namespace comfyd::assets
