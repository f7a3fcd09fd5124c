#include "app/model_links.hpp"

#include <utility>
#include <variant>

#include "agent/content_ticket.hpp"
#include "api/dialects/models/models.hpp"
#include "app/data_folder.hpp"
#include "assets/blob_stores.hpp"
#include "models/source.hpp"

namespace comfyd::app {
namespace {

constexpr std::chrono::hours kLife{1};

// The whole bucket, by links: what is ours in it is one prefix.
assets::StoreSetting as_source(assets::StoreSetting setting) {
    for (const char* ours :
         {"prefix", "links", "storage_class", "archive_class", "glacier_class"}) {
        setting.options.erase(ours);
    }
    return setting;
}

}  // namespace

Result<std::unique_ptr<ModelLinks>> ModelLinks::make(
    const Config& config, Clock& clock, Pool& pool
) {
    std::unique_ptr<ModelLinks> links(new ModelLinks(config, clock));
    while (links->origin_.ends_with('/')) {
        links->origin_.pop_back();
    }
    auto key = load_key(config, "model-contents");
    if (!key) {
        return fail(std::move(key.error()));
    }
    links->key_ = std::move(*key);
    for (const assets::StoreSetting& setting : config.stores) {
        const auto bucket = setting.options.find("bucket");
        const bool is_new = setting.provider == "s3" && bucket != setting.options.end() &&
                            !links->buckets_.contains(bucket->second);
        if (!is_new) {
            continue;
        }
        auto store = assets::make_blob_store(as_source(setting), clock, pool);
        if (!store) {
            return fail(std::move(store.error()));
        }
        links->buckets_.emplace(bucket->second, std::move(*store));
    }
    return links;
}

Result<> ModelLinks::check(const std::string& source) const {
    const auto parsed = models::parse_source(source);
    if (!parsed) {
        return fail(parsed.error());
    }
    if (parsed->kind == models::Source::Kind::bucket && !buckets_.contains(parsed->bucket)) {
        return fail(
            Code::invalid_argument,
            "no store of the configuration has the bucket '" + parsed->bucket + "'",
            {{"field", "source"}}
        );
    }
    return {};
}

bool ModelLinks::is_good_ticket(
    std::string_view sha256, std::string_view until, std::string_view ticket
) const {
    return agent::is_good_ticket(key_, sha256, until, ticket, clock_.now());
}

Task<Result<std::string>> ModelLinks::link_of(std::string source) {
    if (auto checked = check(source); !checked) {
        co_return fail(Code::not_found, checked.error().message);
    }
    const auto parsed = models::parse_source(source);
    if (parsed->kind == models::Source::Kind::upload) {
        const std::string ticketed =
            agent::content_address(key_, parsed->sha256, clock_.now() + kLife);
        co_return origin_ + api::model_content_path(parsed->sha256) +
            ticketed.substr(ticketed.find('?'));
    }
    if (parsed->kind != models::Source::Kind::bucket) {
        co_return fail(Code::not_found, "'" + source + "' needs no link");
    }
    assets::LinkTerms terms;
    terms.life = kLife;
    auto place = co_await buckets_.find(parsed->bucket)->second->find(parsed->key, terms);
    if (!place) {
        co_return fail(std::move(place.error()));
    }
    const auto* link = *place ? std::get_if<assets::Redirect>(&**place) : nullptr;
    if (link == nullptr) {
        co_return fail(
            *place ? Code::output_unavailable : Code::not_found,
            *place ? "'" + source + "' is archived, and was asked to be brought back"
                   : "there is no '" + source + "'"
        );
    }
    co_return link->url;
}

}  // namespace comfyd::app
