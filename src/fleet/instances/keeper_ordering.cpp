// How a machine is ordered: which offer is taken, and who is not asked for a while because he says
// no.
#include <algorithm>
#include <array>
#include <utility>

#include "agent/packs.hpp"
#include "base/crypto.hpp"
#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "fleet/instances/keeper.hpp"
#include "fleet/instances/wants.hpp"

namespace comfyd::fleet {
namespace {

using enum InstanceState;

constexpr Millis kClosedFor = std::chrono::minutes(30);  // a provider that wants money or a key

std::string new_token() {
    std::array<std::uint8_t, 24> bytes{};
    random_bytes(bytes.data(), bytes.size());
    return to_hex(bytes.data(), bytes.size());
}

// Nothing was made, whatever else is wrong.
bool is_clear_no(Code code) {
    return code == Code::out_of_stock || code == Code::balance_empty ||
           code == Code::unauthorized || code == Code::forbidden || code == Code::rate_limited ||
           code == Code::invalid_argument || code == Code::not_found;
}

std::string describe(const Offer& offer, const std::string& provider) {
    std::string text = provider;
    for (const std::string& part : {offer.gpu, offer.region}) {
        text += part.empty() ? "" : ", " + part;
    }
    return text;
}

}  // namespace

Task<> Keeper::create(Step step) {
    const Instance instance = *find(step.instance);
    const PoolSettings pool = *pool_of(instance);
    OfferWish wish = pool.offers.at(step.offer);
    wish.gpus_each = pool.made_from.gpus;
    wish.per_gpu = pool.made_from.per_gpu;
    const auto offer = co_await choose(step, wish);
    if (!offer) {
        co_return;
    }
    auto next = moved(
        instance, creating, p_.clock.now(), "ordered from " + describe(*offer, step.provider)
    );
    next->provider = step.provider;
    next->offer = *offer;
    next->token = new_token();
    next->software = pool.software;
    next->machine.clear();
    next->url.clear();
    auto told = event("creating", next->reason, *next);
    const bool saved = co_await save(*next, std::move(told));
    if (saved && may_act()) {
        co_await order(*next, pool, step);
    }
}

// nullopt: none that would do, and it is written down who rests.
Task<std::optional<Offer>> Keeper::choose(const Step& step, OfferWish wish) {
    MachineProvider* from = provider(step.provider);
    const std::string region = wish.region;
    wish = step.want ? narrowed(wish, *step.want).value_or(wish) : wish;
    auto offers = co_await from->offers(wish);
    if (!offers) {
        co_await refuse(step, std::move(offers.error()), false);
        co_return std::nullopt;
    }
    std::vector<const Offer*> good;
    for (Offer& offer : *offers) {
        const bool is_cheap = !wish.usd_per_hour_max || !offer.usd_per_hour ||
                              *offer.usd_per_hour <= *wish.usd_per_hour_max;
        // What tells no region is where the operator says, and nowhere that somebody asks for.
        offer.region = offer.region.empty() ? region : offer.region;
        const bool is_there = wish.region.empty() || lower(offer.region) == lower(wish.region);
        if (is_cheap && is_there && offer.available != 0) {
            good.push_back(&offer);
        }
    }
    const Offer* best = step.want      ? tightest(good, *step.want)
                        : good.empty() ? nullptr
                                       : good.front();
    if (best == nullptr) {
        const Error none(
            Code::out_of_stock,
            offers->empty() ? "it has nothing of the kind" : "all it has is taken or too dear"
        );
        co_await refuse(step, none, false);
        co_return std::nullopt;
    }
    co_return *best;
}

// The row says `creating` by now: whatever happens from here on, a listing tells what came of it.
Task<> Keeper::order(Instance instance, const PoolSettings& pool, const Step& step) {
    MachineOrder order;
    order.name = instance.name();
    order.fleet = p_.fleet;
    order.instance = instance.id;
    order.pool = instance.pool;
    order.made_from = pool.made_from;
    order.offer = instance.offer;
    if (provider(step.provider)->traits().dials_in) {
        order.secrets["COMFYD_GATEWAY"] = p_.gateway;
    }
    order.secrets["COMFYD_WORKER_TOKEN"] = instance.token;
    order.secrets["COMFYD_INSTANCE"] = instance.id;
    if (!pool.made_from.packs.empty()) {
        order.secrets["COMFYD_PACKS"] = agent::join_packs(pool.made_from.packs);
    }
    auto machine = co_await provider(step.provider)->create(std::move(order));
    if (machine) {
        offers_.succeed(offer_key(step.pool, step.offer, step.want));
        providers_.succeed(step.provider);
        instance.machine = std::move(*machine);
        instance.revision += 1;
        co_await save(std::move(instance));
        list_now_.at(step.provider)->notify();  // what nobody was looking for is there now
    } else if (is_clear_no(machine.error().code)) {
        co_await refuse(step, std::move(machine.error()), true);
    } else if (machine.error().code != Code::cancelled) {
        providers_.fail(step.provider, p_.clock.now(), p_.chance());
        auto told = event("unclear", machine.error().message, instance);
        co_await tell(std::move(told));
        list_now_.at(step.provider)->notify();
    }
}

// It is not asked for a while; the name of the event that tells of it.
std::string Keeper::rest_provider(const std::string& provider, const Error& error) {
    const Time now = p_.clock.now();
    if (error.code == Code::rate_limited) {
        const auto told = json::find_number(error.details, "retry_after");
        constexpr double kOtherwise = 30;
        constexpr double kMost = 3600;
        const double seconds = told && *told ? std::clamp(**told, 1.0, kMost) : kOtherwise;
        const double spread = 1 + p_.chance();
        providers_.rest(
            provider, now + Millis(static_cast<Millis::rep>((seconds + spread) * 1000))
        );
        return "refused";
    }
    if (error.code == Code::balance_empty || error.code == Code::unauthorized ||
        error.code == Code::forbidden) {
        providers_.rest(provider, now + kClosedFor);
        return "provider_closed";
    }
    providers_.fail(provider, now, p_.chance());
    return "refused";
}

// Somebody is not asked for a while; the instance waits for another offer.
Task<> Keeper::refuse(const Step& step, Error error, bool is_ordered) {
    const Time now = p_.clock.now();
    std::string what;
    if (error.code == Code::cancelled) {
        co_return;
    }
    if (error.code == Code::out_of_stock || error.code == Code::not_found ||
        error.code == Code::invalid_argument) {
        offers_.fail(offer_key(step.pool, step.offer, step.want), now, p_.chance());
        what = "out_of_stock";
    } else {
        what = rest_provider(step.provider, error);
    }
    Instance instance = *find(step.instance);
    instance.provider = step.provider;
    auto told = event(what, error.message, instance);
    log::warning(
        "a provider gives no machine",
        {{"provider", step.provider},
         {"pool", step.pool},
         {"code", to_string(error.code)},
         {"error", log::foreign(error.message)}}
    );
    const bool cannot_be = error.code == Code::invalid_argument;
    if (is_ordered && cannot_be) {
        instance.reason = error.message;
        const bool ended = co_await move(instance, failed, error.message, "failed", true);
        if (ended) {
            co_await count_failed_start(std::move(instance));
        }
    } else if (is_ordered) {
        instance.refusals += 1;
        auto next = moved(instance, requested, now, error.message);
        next->provider.clear();
        next->token.clear();
        co_await save(std::move(*next), std::move(told));
    } else {
        find(step.instance)->reason = error.message;
        co_await tell(std::move(told));
    }
}

}  // namespace comfyd::fleet
