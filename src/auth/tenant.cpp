#include "auth/tenant.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#include "base/text.hpp"

namespace comfyd::auth {
namespace {

constexpr std::size_t kNameBytesMax = 128;
constexpr std::size_t kWordsMax = 1000;
constexpr std::size_t kWordBytesMax = 256;
constexpr double kAmountMax = 1e12;

using Text = std::string Tenant::*;
using Flag = bool Tenant::*;
using Whole = std::int64_t Tenant::*;
using Amount = double Tenant::*;
using Limit = std::optional<double> Tenant::*;
using Words = std::vector<std::string> Tenant::*;
using Money = Budget Tenant::*;

struct Member {
    std::string_view name;
    std::variant<Text, Flag, Whole, Amount, Limit, Words, Money> place;
};

constexpr std::array<std::pair<std::string_view, double Budget::*>, 3> kSpans{{
    {"usd_per_hour", &Budget::usd_per_hour},
    {"usd_per_day", &Budget::usd_per_day},
    {"usd_per_month", &Budget::usd_per_month},
}};

constexpr std::array<Member, 20> kMembers{{
    {"tier", &Tenant::tier},
    {"disabled", &Tenant::disabled},
    {"weight", &Tenant::weight},
    {"running_max", &Tenant::running_max},
    {"gpu_seconds_per_day", &Tenant::gpu_seconds_per_day},
    {"requests_per_minute", &Tenant::requests_per_minute},
    {"queued_max", &Tenant::queued_max},
    {"stored_mb_max", &Tenant::stored_mb_max},
    {"gpu_seconds_per_month", &Tenant::gpu_seconds_per_month},
    {"usd_per_day", &Tenant::usd_per_day},
    {"usd_per_month", &Tenant::usd_per_month},
    {"budget", &Tenant::budget},
    {"reuse", &Tenant::reuse},
    {"pool", &Tenant::pool},
    {"store", &Tenant::store},
    {"retention", &Tenant::retention},
    {"denied_nodes", &Tenant::denied_nodes},
    {"allowed_nodes", &Tenant::allowed_nodes},
    {"allowed_pools", &Tenant::allowed_pools},
    {"allowed_stores", &Tenant::allowed_stores},
}};

tl::unexpected<Error> wrong(std::string_view member, const std::string& what) {
    return fail(
        Code::invalid_argument,
        "a tenant's '" + std::string(member) + "' " + what,
        {{"field", member}}
    );
}

std::optional<double> amount_of(const json::value& value) {
    const double amount = value.is_int64()    ? static_cast<double>(value.get_int64())
                          : value.is_uint64() ? static_cast<double>(value.get_uint64())
                          : value.is_double() ? value.get_double()
                                              : -1;
    return amount >= 0 && amount <= kAmountMax ? std::optional(amount) : std::nullopt;
}

bool read_span(std::string_view name, const json::value& value, Budget& into) {
    for (const auto& [span, place] : kSpans) {
        const auto usd = value.is_null() ? std::optional(0.0) : amount_of(value);
        if (span == name && usd) {
            into.*place = *usd;
            return true;
        }
    }
    return false;
}

// Reads one value into its member.
struct Reader {
    std::string_view name;
    const json::value& value;
    Tenant& into;

    Result<> operator()(Text place) const {
        if (!value.is_string() || value.get_string().size() > kWordBytesMax) {
            return wrong(name, "is a short text");
        }
        into.*place = view(value.get_string());
        return {};
    }
    Result<> operator()(Flag place) const {
        if (!value.is_bool()) {
            return wrong(name, "is true or false");
        }
        into.*place = value.get_bool();
        return {};
    }
    Result<> operator()(Whole place) const {
        const auto amount = amount_of(value);
        if (!amount || *amount != std::floor(*amount) || *amount > 1e9) {
            return wrong(name, "is a whole number from 0 to 1000000000");
        }
        into.*place = static_cast<std::int64_t>(*amount);
        return {};
    }
    Result<> operator()(Amount place) const {
        const auto amount = amount_of(value);
        if (!amount) {
            return wrong(name, "is a number, 0 or more");
        }
        into.*place = *amount;
        return {};
    }
    Result<> operator()(Limit place) const {
        const auto amount = amount_of(value);
        if (!amount) {
            return wrong(name, "is a number, 0 or more; without it the tier's limit holds");
        }
        into.*place = amount;
        return {};
    }
    Result<> operator()(Words place) const {
        const json::array* list = value.if_array();
        const bool is_good = list != nullptr && list->size() <= kWordsMax &&
                             std::ranges::all_of(*list, [](const json::value& word) {
                                 return word.is_string() && !word.get_string().empty() &&
                                        word.get_string().size() <= kWordBytesMax;
                             });
        if (!is_good) {
            return wrong(name, "is a list of at most 1000 names");
        }
        std::vector<std::string>& words = into.*place;
        words.clear();
        for (const json::value& word : *list) {
            words.emplace_back(view(word.get_string()));
        }
        return {};
    }
    Result<> operator()(Money place) const {
        Budget budget;
        const json::object* spans = value.if_object();
        const bool is_good =
            spans != nullptr && std::ranges::all_of(*spans, [&budget](const auto& span) {
                return read_span(view(span.key()), span.value(), budget);
            });
        if (!is_good) {
            return wrong(
                name, "is a map with usd_per_hour, usd_per_day or usd_per_month, numbers, 0 or more"
            );
        }
        into.*place = budget;
        return {};
    }
};

json::value shown(const Tenant& tenant, Text place) {
    const std::string& text = tenant.*place;
    return text.empty() ? json::value(nullptr) : json::value(text);
}
json::value shown(const Tenant& tenant, Limit place) {
    const auto& limit = tenant.*place;
    return limit ? json::value(*limit) : json::value(nullptr);
}
json::value shown(const Tenant& tenant, Words place) {
    const auto& words = tenant.*place;
    return json::array(words.begin(), words.end());
}
json::value shown(const Tenant& tenant, Money place) {
    json::object spans;
    for (const auto& [name, span] : kSpans) {
        if (const double usd = tenant.*place.*span; usd > 0) {
            spans[name] = usd;
        }
    }
    return spans.empty() ? json::value(nullptr) : json::value(std::move(spans));
}
template <class Plain>
json::value shown(const Tenant& tenant, Plain place) {
    return tenant.*place;
}

Result<> set(Tenant& tenant, const Member& member, const json::value& value) {
    if (value.is_null()) {
        const Tenant plain;
        std::visit([&](auto place) { tenant.*place = plain.*place; }, member.place);
        return {};
    }
    return std::visit(Reader{member.name, value, tenant}, member.place);
}

const Member* find_member(std::string_view name) {
    const auto found = std::ranges::find(kMembers, name, &Member::name);
    return found == kMembers.end() ? nullptr : &*found;
}

std::string all_members() {
    std::string all;
    for (const Member& member : kMembers) {
        all += ", '" + std::string(member.name) + "'";
    }
    return "'name'" + all;
}

}  // namespace

bool is_tier(std::string_view word) {
    return std::ranges::find(kTiers, word) != kTiers.end();
}

bool is_tenant_name(std::string_view name) {
    return !name.empty() && name.size() <= kNameBytesMax &&
           std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

json::object Tenant::about() const {
    json::object members;
    for (const Member& member : kMembers) {
        members[member.name] =
            std::visit([this](auto place) { return shown(*this, place); }, member.place);
    }
    return members;
}

Result<Tenant> Tenant::with(const json::object& members) const {
    Tenant changed = *this;
    for (const auto& [key, value] : members) {
        const Member* member = find_member(view(key));
        if (member == nullptr) {
            return fail(
                Code::invalid_argument,
                "a tenant has " + all_members() + ", not '" + std::string(view(key)).substr(0, 64) +
                    "'",
                {{"field", key}}
            );
        }
        if (auto done = set(changed, *member, value); !done) {
            return fail(std::move(done.error()));
        }
    }
    if (!changed.tier.empty() && !is_tier(changed.tier)) {
        return wrong("tier", "is free, basic, premium, pro or enterprise");
    }
    if (!(changed.weight > 0 && changed.weight <= 1'000'000)) {
        return wrong("weight", "is above 0 and at most 1000000");
    }
    const auto& pools = changed.allowed_pools;
    if (!pools.empty() && !changed.pool.empty() &&
        std::ranges::find(pools, changed.pool) == pools.end()) {
        return wrong("pool", "must be one of its 'allowed_pools'");
    }
    return changed;
}

Tenant Tenant::restore(const IdentityRecord& record) {
    Tenant tenant;
    tenant.name = record.id;
    tenant.revision = record.revision;
    for (const auto& [name, value] : record.about) {
        if (const Member* member = find_member(view(name))) {
            auto done = set(tenant, *member, value);
            static_cast<void>(done);  // what cannot be read stays at its default
        }
    }
    return tenant;
}

}  // namespace comfyd::auth
