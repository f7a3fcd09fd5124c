#include "app/office.hpp"

#include <utility>

#include "app/config/part_options.hpp"
#include "base/log.hpp"

namespace comfyd::app {
namespace {

constexpr Millis kEnginePatience{10'000};

std::string drains_note(const std::string& domain) {
    return "draining/" + domain;
}

fleet::Fleet::Prospects prospects_of(const fleet::PoolSettings& pool, const fleet::Keeper& keeper) {
    fleet::Fleet::Prospects prospects;
    for (const fleet::OfferWish& offer : pool.offers) {
        const fleet::MachineTraits traits = keeper.traits_of(offer.provider);
        std::vector<std::string> gpus = offer.gpus.empty() ? traits.gpus : offer.gpus;
        if (pool.made_from.gpus == 0) {
            gpus = {"cpu"};
        } else if (gpus.empty()) {
            gpus = {""};  // any
        }
        for (const std::string& gpu : gpus) {
            const std::string& region = offer.region.empty() ? traits.region : offer.region;
            prospects.push_back({pool.name, gpu, region, traits.is_local});
        }
    }
    return prospects;
}

}  // namespace

Office::Office(const Parts& parts, std::string domain)
    : parts_(parts), domain_(std::move(domain)) {}
Office::~Office() = default;

Result<std::unique_ptr<Office>> Office::make(
    const Parts& parts,
    const Config& config,
    const fleet::TenantFolders& folders,
    std::string domain
) {
    std::unique_ptr<Office> office(new Office(parts, std::move(domain)));
    fleet::FleetOptions options = fleet_options(config, folders);
    if (parts.mandate) {
        options.mandate = [mandate = parts.mandate] { return mandate; };
    }
    ModelNews& news = parts.model_news;
    options.files_told = [&news](const std::string& worker, json::object files) {
        news.told(worker, files);
    };
    options.fetched_told = [&news](const std::string& worker, fleet::FetchedBytes bytes) {
        news.fetched(worker, bytes);
    };
    options.link_of = parts.link_of;
    options.left = [&news](const std::string& worker) { news.left(worker); };
    office->fleet_ = std::make_unique<fleet::Fleet>(
        parts.core,
        parts.clock,
        parts.lanes,
        parts.assets,
        parts.pool,
        parts.classes,
        parts.node_costs,
        std::move(options)
    );
    const KeptParts kept{
        parts.core,
        parts.clock,
        parts.lanes.front(),
        parts.pool,
        parts.instances,
        parts.callers,
        [jobs = &parts.jobs, led = office->domain_] { return jobs->load_here(led); },
        parts.mandate,
    };
    auto sources = make_worker_providers(config, kept, office->domain_);
    if (!sources) {
        return fail(std::move(sources.error()));
    }
    office->providers_ = std::move(sources->providers);
    office->kept_ = sources->kept;
    for (const auto& provider : office->providers_) {
        if (auto begun = provider->begin(*office->fleet_); !begun) {
            return fail(std::move(begun.error()));
        }
    }
    return office;
}

// Pools that have no worker yet are validated by what those with the same software could last
// run.
void Office::remember_classes() {
    if (kept_ == nullptr) {
        return;
    }
    const auto before = parts_.last_known();
    for (const auto& [name, pool] : kept_->keeper().pools()) {
        std::shared_ptr<const workflow::NodeClasses> known;
        for (const auto& entry : before->workers()) {
            const bool is_alike = entry.pool == name && entry.software == pool.software;
            known = is_alike ? entry.classes : known;
        }
        fleet_->remember_pool(
            name, pool.software, std::move(known), prospects_of(pool, kept_->keeper())
        );
    }
}

Task<Result<>> Office::open(jobs::Ledger& ledger, jobs::SharedLedger* shared) {
    remember_classes();
    for (const auto& provider : providers_) {
        co_await provider->recall();
    }
    co_await drain_again();
    fleet_->start();
    const bool up = co_await fleet_->engines_are_up(kEnginePatience);
    if (!up) {
        log::warning("the engine does not start; jobs wait for it", {});
    }
    auto led = co_await parts_.jobs.lead(domain_, {ledger, *fleet_, shared});
    if (led) {
        for (const auto& provider : providers_) {
            provider->start();
        }
    }
    co_return led;
}

// A worker that is not there any more may come back, and is for whoever looks after it then to
// resume: it stays in the note.
Task<> Office::drain_again() {
    auto note = co_await parts_.notebook.read_note(drains_note(domain_));
    if (!note) {
        log::warning("workers may not drain that should", {{"error", note.error().message}});
        co_return;
    }
    const auto workers = json::parse(note->value_or("[]"));
    if (!workers || !workers->is_array()) {
        co_return;
    }
    for (const json::value& worker : workers->get_array()) {
        if (worker.is_string()) {
            const std::string& id = *draining_.emplace(worker.get_string()).first;
            static_cast<void>(fleet_->drain(id));
        }
    }
}

Task<Result<>> Office::set_draining(std::string worker, bool draining) {
    auto done = draining ? fleet_->drain(worker) : fleet_->resume(worker);
    if (!done) {
        co_return done;
    }
    if (draining) {
        draining_.insert(worker);
    } else {
        draining_.erase(worker);
    }
    const json::array wanted(draining_.begin(), draining_.end());
    auto written =
        co_await parts_.notebook.write_note(drains_note(domain_), json::serialize(wanted));
    co_return written;
}

void Office::hear_stopping(const std::string& worker, bool is_stopping) {
    if (is_stopping) {
        static_cast<void>(fleet_->drain(worker));
    } else if (!draining_.contains(worker)) {
        static_cast<void>(fleet_->resume(worker));
    }
}

Task<> Office::close(Millis grace) {
    co_await parts_.jobs.step_down(domain_, grace);
    for (const auto& provider : providers_) {
        co_await provider->end();
    }
    co_await fleet_->stop();
}

}  // namespace comfyd::app
