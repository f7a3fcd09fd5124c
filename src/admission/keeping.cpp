#include "admission/keeping.hpp"

#include <algorithm>
#include <utility>

#include "assets/blob_stores.hpp"

namespace comfyd::admission {
namespace {

constexpr std::size_t kPathBytesMax = 512;

tl::unexpected<Error> wrong(std::string field, std::string message) {
    return fail(Code::invalid_argument, std::move(message), {{"field", std::move(field)}});
}

struct Who {
    const std::string& tenant;
    const TenantRulesPtr& own;
};

bool may_use(const std::string& name, const KeepingRules::Store& store, const Who& who) {
    const bool is_for_it = store.tenants.empty() || store.tenants.contains(who.tenant);
    const bool is_limited = who.own && !who.own->stores.empty();
    return is_for_it && (!is_limited || who.own->stores.contains(name) || who.own->store == name);
}

Result<std::string> text_of(const json::object& from, std::string_view key) {
    auto found = json::find_string(from, key);
    if (!found) {
        return fail(std::move(found.error()));
    }
    return std::move(*found).value_or("");
}

// The outputs are to come in the answers, wherever they are kept.
bool is_inline(const json::object& storage) {
    const json::value* provider = json::find(storage, "provider");
    return provider != nullptr && (*provider == "inline" || *provider == "base64");
}

Result<> check_inline(const KeepingRules& rules, const json::object& storage) {
    if (!rules.allows_answers) {
        return wrong(
            "output_config.storage.provider",
            "this server puts no outputs into its answers: leave 'output_config.storage' out, and "
            "get them by their 'url'"
        );
    }
    for (const char* member : {"bucket", "path"}) {
        const json::value* given = json::find(storage, member);
        if (given != nullptr && *given != "") {
            const std::string field = "output_config.storage." + std::string(member);
            return wrong(field, "'" + field + "' means nothing where outputs come in the answer");
        }
    }
    return {};
}

// A folder, as it stands in a key.
Result<std::string> folder_of(std::string path) {
    const auto first = path.find_first_not_of('/');
    const auto last = path.find_last_not_of('/');
    path = first == std::string::npos ? std::string() : path.substr(first, last - first + 1);
    const bool is_plain = std::ranges::all_of(path, [](unsigned char c) {
        return c >= 0x20 && c != 0x7F && c != '\\';
    });
    bool is_good = is_plain && path.size() <= kPathBytesMax;
    for (std::size_t at = 0; is_good && at < path.size();) {
        const auto end = std::min(path.find('/', at), path.size());
        const auto part = path.substr(at, end - at);
        is_good = !part.empty() && part != "." && part != "..";
        at = end + 1;
    }
    if (!is_good) {
        return wrong(
            "output_config.storage.path",
            "'output_config.storage.path' is a folder of at most 512 bytes such as \"renders/may\""
        );
    }
    return path;
}

Result<std::string> find_store(
    const KeepingRules& rules, const Who& who, const json::object& storage
) {
    const auto provider = text_of(storage, "provider");
    const auto bucket = text_of(storage, "bucket");
    if (!provider || !bucket) {
        return fail(provider ? bucket.error() : provider.error());
    }
    if (*provider == assets::kLocalStore) {
        return std::string();
    }
    std::string allowed(assets::kLocalStore);
    for (const auto& [name, store] : rules.stores) {
        if (!may_use(name, store, who)) {
            continue;
        }
        allowed += ", " + name;
        const bool is_meant = provider->empty() || *provider == name || *provider == store.provider;
        if (is_meant && (bucket->empty() || *bucket == store.bucket)) {
            return name;
        }
    }
    return wrong(
        "output_config.storage",
        "no store of this server is what 'output_config.storage' asks for; there are " + allowed
    );
}

std::string usual_store(const KeepingRules& rules, const TenantRulesPtr& own) {
    return own && !own->store.empty() ? own->store : rules.store;
}

Result<std::string> decide_store(
    const KeepingRules& rules, const Who& who, const json::object& storage
) {
    const bool is_named = storage.contains("provider") || storage.contains("bucket");
    auto store = is_named ? find_store(rules, who, storage)
                          : Result<std::string>(usual_store(rules, who.own));
    if (!store) {
        return store;
    }
    const auto path = text_of(storage, "path");
    if (!path) {
        return fail(path.error());
    }
    const auto folder = folder_of(*path);
    if (!folder) {
        return folder;
    }
    return store->empty() || folder->empty() ? *store : *store + "/" + *folder;
}

}  // namespace

bool is_heard(const KeepingRules& rules, const json::object& storage) {
    const json::value* provider = json::find(storage, "provider");
    const bool is_local = provider != nullptr && provider->is_string() &&
                          std::string_view(provider->get_string()) == assets::kLocalStore;
    return !rules.stores.empty() || is_inline(storage) || is_local;
}

Result<jobs::Keeping> decide_keeping(
    const KeepingRules& rules,
    const std::string& tenant,
    const TenantRulesPtr& own,
    const KeepingWish& wish
) {
    jobs::Keeping keeping;
    keeping.store = usual_store(rules, own);
    if (wish.storage != nullptr && is_inline(*wish.storage)) {
        if (auto checked = check_inline(rules, *wish.storage); !checked) {
            return fail(std::move(checked.error()));
        }
        keeping.in_answers = true;
    } else if (wish.storage != nullptr && is_heard(rules, *wish.storage)) {
        auto store = decide_store(rules, {tenant, own}, *wish.storage);
        if (!store) {
            return fail(std::move(store.error()));
        }
        keeping.store = std::move(*store);
    }
    if (keeping.store == assets::kLocalStore) {
        keeping.store.clear();
    }
    auto retention = own ? own->retention.value_or(rules.retention) : rules.retention;
    if (wish.retention) {
        const auto parsed = assets::parse_retention_class(*wish.retention);
        if (!parsed) {
            return wrong("retention", "'retention' is immediate, standard, archive or glacier");
        }
        retention = *parsed;
    }
    if (retention != assets::RetentionClass::standard) {
        keeping.retention = to_string(retention);
        keeping.life = rules.lives.life_of(retention);
        keeping.moves_after = rules.lives.next_move(retention, Millis(0));
    }
    return keeping;
}

}  // namespace comfyd::admission
