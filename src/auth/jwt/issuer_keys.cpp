#include "auth/jwt/issuer_keys.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/assert.hpp"
#include "base/hop.hpp"
#include "base/json_unique.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"
#include "base/text.hpp"

namespace comfyd::auth::jwt {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::uint64_t kAnswerBytesMax = 256 * 1024;
constexpr Millis kAnswerTimeout{5'000};
constexpr seconds kCoolDown{30};
constexpr Millis kUsualLife = minutes(10);
constexpr Millis kLifeMin = minutes(1);
constexpr Millis kLifeMax = hours(24);
constexpr hours kGoodWithoutFetch{24};
constexpr Millis kFirstRetry{1'000};
constexpr Millis kRetryMax = minutes(5);

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

bool may_fetch_keys_from(std::string_view url) {
    const auto parsed = net::Url::parse(url);
    if (!parsed || parsed->scheme == "https") {
        return parsed.has_value();
    }
    const std::string& host = parsed->host;
    const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
    return parsed->scheme == "http" &&
           (host == "localhost" || host == "::1" || (is_number && host.starts_with("127.")));
}

IssuerKeys::IssuerKeys(Executor executor, Options options, Clock& clock)
    : executor_(executor),
      options_(std::move(options)),
      clock_(clock),
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
    const bool may_fetch = group_ && (!begun_at_ || clock_.now() >= *begun_at_ + kCoolDown);
    if (!is_fetching_ && !may_fetch) {
        co_return;
    }
    wanted_.notify();
    const bool is_done = co_await fetched_.wait_for(options_.patience);
    static_cast<void>(is_done);
}

Task<> IssuerKeys::keep_up() {
    bool go_on = true;
    Millis retry = kFirstRetry;
    while (go_on) {
        is_fetching_ = true;
        begun_at_ = clock_.now();
        auto life = co_await fetch();
        is_fetching_ = false;
        fetched_.notify();
        {
            const Lock lock(mutex_);
            ++counts_.fetches;
            counts_.failures += life ? 0 : 1;
        }
        if (!life && life.error().code != Code::cancelled && retry == kFirstRetry) {
            log::warning(
                "the keys of the issuer of tokens cannot be had",
                {{"issuer", options_.issuer}, {"error", life.error().message}}
            );
        }
        const Millis pause = life ? *life * 8 / 10 : retry;
        retry = life ? kFirstRetry : std::min(retry * 2, kRetryMax);
        const bool was_asked = co_await wanted_.wait_for(pause);
        static_cast<void>(was_asked);
        const bool is_over = co_await is_cancelled();
        go_on = !is_over;
    }
}

Task<Result<net::ClientResponse>> IssuerKeys::get(std::string url) {
    net::ClientRequest request;
    request.url = std::move(url);
    request.timeout = kAnswerTimeout;
    request.response_bytes_max = kAnswerBytesMax;
    request.headers.set("Accept", "application/json");
    auto answer = co_await client_.send(std::move(request));
    if (answer && answer->status != 200) {
        co_return fail(
            Code::upstream_error, "it answered with status " + std::to_string(answer->status)
        );
    }
    co_return answer;
}

Task<Result<std::string>> IssuerKeys::find_address() {
    if (!options_.jwks_url.empty()) {
        co_return options_.jwks_url;
    }
    std::string url = options_.issuer;
    while (url.ends_with('/')) {
        url.pop_back();
    }
    auto answer = co_await get(url + "/.well-known/openid-configuration");
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    const auto about = json::parse_unique_object(answer->body);
    const auto issuer = about ? json::find_string(*about, "issuer") : fail(about.error());
    const auto address = about ? json::find_string(*about, "jwks_uri") : fail(about.error());
    if (!issuer || !*issuer || !address || !*address) {
        co_return fail(Code::protocol_error, "its openid-configuration has no issuer or jwks_uri");
    }
    if (**issuer != options_.issuer) {
        co_return fail(Code::protocol_error, "it calls itself by another name: " + **issuer);
    }
    co_return **address;
}

Task<Result<Millis>> IssuerKeys::fetch() {
    auto address = co_await find_address();
    if (!address) {
        co_return fail(std::move(address.error()));
    }
    if (!may_fetch_keys_from(*address)) {
        co_return fail(Code::protocol_error, "its keys do not come by https");
    }
    auto answer = co_await get(std::move(*address));
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
