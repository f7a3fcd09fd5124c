#include "auth/jwt/issuer_keys.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "auth/oidc/discovery.hpp"
#include "base/assert.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "base/text.hpp"

namespace comfyd::auth::jwt {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kCoolDown{30};
constexpr Millis kUsualLife = minutes(10);
constexpr Millis kLifeMin = minutes(1);
constexpr Millis kLifeMax = hours(24);
constexpr hours kGoodWithoutFetch{24};
constexpr Millis kRetry{1'000};
// Whoever has a new key waits no longer for it than without the breaker.
constexpr CircuitBreaker::Limits kBreaker{
    .failures = 5, .open_first = seconds(10), .open_max = kCoolDown
};

// "max-age" of Cache-Control.
Millis life_of(const net::Headers& headers) {
    const std::string control = lower(headers.get("Cache-Control"));
    constexpr std::string_view kName = "max-age=";
    const auto at = control.find(kName);
    if (at == std::string::npos) {
        return kUsualLife;
    }
    const char* const begin = control.data() + at + kName.size();
    std::int64_t age = 0;
    const auto read = std::from_chars(begin, control.data() + control.size(), age);
    if (read.ec != std::errc()) {
        return read.ec == std::errc::result_out_of_range ? kLifeMax : kUsualLife;
    }
    const auto longest = std::chrono::duration_cast<seconds>(kLifeMax).count();
    return std::clamp<Millis>(
        seconds(std::clamp<std::int64_t>(age, 0, longest)), kLifeMin, kLifeMax
    );
}

}  // namespace

IssuerKeys::IssuerKeys(Executor executor, Options options, const Clock& clock)
    : executor_(executor),
      options_(std::move(options)),
      clock_(clock),
      itself_(options_.name, kBreaker, clock),
      client_(executor, {.ca_file = options_.ca_file}),
      wanted_(executor),
      fetched_(executor) {}

IssuerKeys::~IssuerKeys() = default;

void IssuerKeys::start() {
    COMFYD_ON(executor_);
    COMFYD_ASSERT(!group_);
    is_fetching_ = true;  // whoever asks before the first fetch began waits for it
    group_.emplace(executor_);
    group_->spawn("issuer keys", keep_up());
}

Task<> IssuerKeys::stop() {
    COMFYD_ON(executor_);
    if (group_) {
        group_->cancel();
        co_await group_->join();
        group_.reset();
    }
    is_fetching_ = false;
    fetched_.notify();
    client_.close_idle();
}

IssuedKeysPtr IssuerKeys::now() const {
    const Lock lock(mutex_);
    const bool is_good = keys_ && clock_.now() < keys_->fetched_at + kGoodWithoutFetch;
    return is_good ? keys_ : nullptr;
}

IssuerKeys::Counts IssuerKeys::counts() const {
    const Lock lock(mutex_);
    return counts_;
}

Task<IssuedKeysPtr> IssuerKeys::newer() {
    co_await await_on(executor_, wait_for_fetch());
    co_return now();
}

Task<> IssuerKeys::wait_for_fetch() {
    COMFYD_ON(executor_);
    const bool may_fetch = group_ && itself_.state() != CircuitBreaker::State::open &&
                           (!begun_at_ || clock_.now() >= *begun_at_ + kCoolDown);
    if (!is_fetching_ && !may_fetch) {
        co_return;
    }
    wanted_.notify();
    const bool is_done = co_await fetched_.wait_for(options_.patience);
    static_cast<void>(is_done);
}

Task<> IssuerKeys::keep_up() {
    bool go_on = true;
    while (go_on) {
        is_fetching_ = true;
        begun_at_ = clock_.now();
        auto life = co_await fetch();
        is_fetching_ = false;
        note(life);
        fetched_.notify();
        const Millis pause = life ? *life * 8 / 10 : std::max(kRetry, itself_.wait());
        const bool was_asked = co_await wanted_.wait_for(pause);
        static_cast<void>(was_asked);
        const bool is_over = co_await is_cancelled();
        go_on = !is_over;
    }
}

void IssuerKeys::note(const Result<Millis>& fetched) {
    if (!fetched && fetched.error().code == Code::cancelled) {
        return;
    }
    {
        const Lock lock(mutex_);
        ++counts_.fetches;
        counts_.failures += fetched ? 0 : 1;
    }
    const bool is_first = !std::exchange(is_failing_, !fetched) && !fetched;
    if (fetched) {
        itself_.succeeded();
    } else {
        itself_.failed();
    }
    if (is_first) {
        log::warning(
            "the keys of the issuer of tokens cannot be had",
            {{"issuer", options_.issuer}, {"error", fetched.error().message}}
        );
    }
}

Task<Result<std::string>> IssuerKeys::find_address() {
    if (!options_.jwks_url.empty()) {
        co_return options_.jwks_url;
    }
    auto about = co_await oidc::discover(client_, options_.issuer);
    if (!about) {
        co_return fail(std::move(about.error()));
    }
    auto address = oidc::address_in(*about, "jwks_uri");
    co_return address;
}

Task<Result<Millis>> IssuerKeys::fetch() {
    auto address = co_await find_address();
    if (!address) {
        co_return fail(std::move(address.error()));
    }
    if (!oidc::is_safe_address(*address)) {
        co_return fail(Code::protocol_error, "its keys do not come by https");
    }
    auto answer = co_await oidc::get(client_, std::move(*address));
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    auto keys = KeySet::parse(answer->body);
    if (!keys) {
        co_return fail(std::move(keys.error()));
    }
    put(std::move(*keys), answer->body);
    co_return life_of(answer->headers);
}

Task<Result<>> IssuerKeys::check_signature(const Token& token) {
    if (token.algorithm == Algorithm::hs256) {
        co_return invalid_token("its algorithm is not accepted");
    }
    auto keys = now();
    const PublicKey* key = keys ? keys->keys.find(token.kid, token.algorithm) : nullptr;
    if (key == nullptr) {
        keys = co_await newer();
        key = keys ? keys->keys.find(token.kid, token.algorithm) : nullptr;
    }
    if (!keys) {
        co_return fail(
            Code::upstream_error,
            "the token cannot be checked: the keys of its issuer cannot be had; try again later"
        );
    }
    if (key == nullptr || !key->has_signed(token.signed_text, token.signature)) {
        co_return invalid_token("its signature is not good");
    }
    co_return Result<>();
}

void IssuerKeys::put(KeySet keys, const std::string& document) {
    auto next = std::make_shared<IssuedKeys>();
    next->keys = std::move(keys);
    next->fetched_at = clock_.now();
    const bool is_same = document == document_;
    document_ = document;
    const Lock lock(mutex_);
    const std::uint64_t version = keys_ ? keys_->version : 0;
    next->version = is_same ? version : version + 1;
    keys_ = std::move(next);
}

}  // namespace comfyd::auth::jwt
