// The keys of one issuer, fetched from its address and fetched again before they are out of date:
// in the background at 80 % of the time that the issuer grants, and at once when a token names a
// key that is not among them, but for that not more often than every half minute. When a fetch
// fails, the old keys stay good for a day. An issuer that is away is looked for in the background,
// at least every half minute; no request makes us ask it then.
//
// Lives on one executor; now() and newer() may be called on any.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "auth/jwt/key_set.hpp"
#include "auth/jwt/token.hpp"
#include "base/dependency.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "net/client.hpp"

namespace comfyd::auth::jwt {

// A change of the keys is another version.
struct IssuedKeys {
    KeySet keys;
    std::uint64_t version = 0;
    Time fetched_at{};
};
using IssuedKeysPtr = std::shared_ptr<const IssuedKeys>;

class IssuerKeys {
public:
    struct Options {
        std::string issuer;
        std::string jwks_url{};  // empty: as {issuer}/.well-known/openid-configuration says
        std::string ca_file{};
        Millis patience{2'000};       // of a token whose key is not known
        std::string name = "issuer";  // as a dependency
    };
    // By which times are measured, not told; `clock` outlives it.
    IssuerKeys(Executor executor, Options options, const Clock& clock = SteadyClock::of_process());
    ~IssuerKeys();

    // Both on the executor.
    void start();
    Task<> stop();

    IssuedKeysPtr now() const;  // nullptr: none were had, or too long ago
    // Those of a fetch that ends after the call, where one may be made.
    Task<IssuedKeysPtr> newer();
    // Whether one of its keys has signed it, which lives until the answer. Code::unauthorized;
    // Code::upstream_error when the keys were never had. Any executor.
    Task<Result<>> check_signature(const Token& token);

    struct Counts {
        std::uint64_t fetches = 0;
        std::uint64_t failures = 0;
    };
    Counts counts() const;

    // For all that is asked of the issuer. Any thread.
    Dependency& itself() { return itself_; }
    const Dependency& itself() const { return itself_; }

private:
    Task<> keep_up();
    Task<Result<Millis>> fetch();  // how long they may be kept
    void note(const Result<Millis>& fetched);
    Task<Result<std::string>> find_address();
    Task<> wait_for_fetch();
    void put(KeySet keys, const std::string& document);

    Executor executor_;
    Options options_;
    const Clock& clock_;
    Dependency itself_;
    net::Client client_;
    std::optional<TaskGroup> group_;  // from start() to stop()
    Signal wanted_;
    Signal fetched_;
    bool is_fetching_ = false;
    bool is_failing_ = false;  // the latest fetch did
    std::optional<Time> begun_at_;
    std::string document_;  // of the keys
    mutable Mutex mutex_;
    IssuedKeysPtr keys_ COMFYD_GUARDED_BY(mutex_);
    Counts counts_ COMFYD_GUARDED_BY(mutex_);
};

}  // namespace comfyd::auth::jwt
