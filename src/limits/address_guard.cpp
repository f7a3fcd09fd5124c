#include "limits/address_guard.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "auth/api_key.hpp"
#include "auth/jwt/tokens.hpp"
#include "base/text.hpp"

namespace comfyd::limits {
namespace {

constexpr std::int64_t kGuestMs = 3'600'000;
constexpr double kWrongKeyWeight = 10;
constexpr double kSiteFactor = 4;
constexpr int kCustomerBits = 64;
constexpr int kSiteBits = 48;

// nullopt: of no use for counting, as a unix socket's, or on this machine.
std::optional<boost::asio::ip::address> counted(const std::string& text) {
    boost::system::error_code error;
    const auto parsed = boost::asio::ip::make_address(text, error);
    if (error) {
        return std::nullopt;
    }
    const auto plain = net::without_mapping(parsed);
    return plain.is_loopback() ? std::nullopt : std::optional(plain);
}

// However it is spaced: two spellings of one guess are one.
std::string_view without_scheme(std::string_view credential) {
    credential = trim(credential);
    const auto space = credential.find_first_of(" \t");
    return space == std::string_view::npos ? credential : trim(credential.substr(space));
}

// A signature cannot be guessed, and an issuer's tokens run out every few minutes: only wrong keys
// cost a wait.
bool may_be_guessed(std::string_view credential) {
    return !credential.empty() && !auth::looks_like_token(credential);
}

std::string guesser_of(const boost::asio::ip::address& address, std::string_view credential) {
    return net::network_of(address, kCustomerBits) + ' ' +
           std::string(auth::id_of_key(credential).value_or(std::string_view()));
}

std::string guest_of(const boost::asio::ip::address& address, std::string_view credential) {
    return net::network_of(address, kCustomerBits) + ' ' +
           std::to_string(std::hash<std::string_view>{}(credential));
}

std::vector<Bucket> buckets_of(const boost::asio::ip::address& address, double per_minute_max) {
    std::vector<Bucket> buckets{
        {net::network_of(address, kCustomerBits), per_minute(per_minute_max)}
    };
    if (address.is_v6()) {
        buckets.push_back(
            {net::network_of(address, kSiteBits) + "/48", per_minute(kSiteFactor * per_minute_max)}
        );
    }
    return buckets;
}

tl::unexpected<Error> wait(std::int64_t ms, const char* why) {
    const std::int64_t seconds = std::max<std::int64_t>((ms + 999) / 1000, 1);
    return fail(
        Code::rate_limited,
        std::string(why) + "; try again in " + std::to_string(seconds) + " s",
        {{"allowed", false},
         {"reason", "rate_limit_exceeded"},
         {"retry_after", seconds},
         {"limit", nullptr},
         {"remaining", 0}}
    );
}

}  // namespace

bool AddressGuard::blocks(const std::string& address) const {
    if (rules_.blocked.empty()) {
        return false;
    }
    boost::system::error_code error;
    const auto parsed = boost::asio::ip::make_address(address, error);
    const bool is_blocked = !error && rules_.blocked.contain(parsed);
    blocked_ += is_blocked ? 1 : 0;
    return is_blocked;
}

Result<> AddressGuard::check(const std::string& address, std::string_view credential) const {
    const auto from = counted(address);
    if (!from) {
        return {};
    }
    credential = without_scheme(credential);
    const std::int64_t now = to_unix_ms(clock_.now());
    if (!credential.empty()) {
        const Lock lock(mutex_);
        const std::int64_t* guest = guests_.find(guest_of(*from, credential));
        if (guest != nullptr && *guest > now) {
            return {};
        }
        const Failures* failed =
            may_be_guessed(credential) ? failures_.find(guesser_of(*from, credential)) : nullptr;
        if (failed != nullptr && failed->until_ms > now) {
            ++held_up_;
            // A clock that was set back must not make it longer.
            return wait(
                std::min(failed->until_ms - now, kWaitMaxMs), "too many wrong keys came from here"
            );
        }
    }
    if (rules_.strangers_per_minute <= 0) {
        return {};
    }
    const Weighed weighed =
        strangers_.look(buckets_of(*from, rules_.strangers_per_minute), 1, now * 1000);
    if (!weighed.fits()) {
        ++held_up_;
        return wait(
            weighed.bids[weighed.tightest()].wait / 1000,
            "too many requests without a good key came from here"
        );
    }
    return {};
}

void AddressGuard::welcome(const std::string& address, std::string_view credential) {
    const auto from = counted(address);
    credential = without_scheme(credential);
    if (!from || credential.empty()) {
        return;
    }
    const Lock lock(mutex_);
    guests_.use(guest_of(*from, credential)) = to_unix_ms(clock_.now()) + kGuestMs;
    const std::string guesser = guesser_of(*from, credential);
    if (failures_.find(guesser) != nullptr) {
        failures_.use(guesser) = {};
    }
}

void AddressGuard::turn_away(const std::string& address, std::string_view credential) {
    const auto from = counted(address);
    if (!from) {
        return;
    }
    credential = without_scheme(credential);
    const std::int64_t now = to_unix_ms(clock_.now());
    if (may_be_guessed(credential)) {
        const Lock lock(mutex_);
        Failures& failed = failures_.use(guesser_of(*from, credential));
        if (failed.until_ms + kWaitMaxMs < now) {
            failed.count = 0;  // long ago
        }
        ++failed.count;
        const int beyond = std::clamp(failed.count - kFreeFailures, 0, 20);
        const std::int64_t pause = beyond == 0 ? 0 : std::int64_t{1000} << (beyond - 1);
        failed.until_ms = now + std::min(pause, kWaitMaxMs);
    }
    if (rules_.strangers_per_minute > 0) {
        const double weight = credential.empty() ? 1 : kWrongKeyWeight;
        strangers_.take(buckets_of(*from, rules_.strangers_per_minute), weight, now * 1000);
    }
}

std::size_t AddressGuard::remembered() const {
    const Lock lock(mutex_);
    return failures_.size() + guests_.size() + strangers_.size();
}

}  // namespace comfyd::limits
