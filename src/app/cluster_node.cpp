#include "app/cluster_node.hpp"

#include <set>
#include <utility>

#include <boost/asio/post.hpp>

#include "base/hop.hpp"
#include "base/log.hpp"
#include "cluster/make_bus.hpp"
#include "cluster/questions.hpp"

namespace comfyd::app {
namespace {

constexpr Millis kTryAgain{500};

std::vector<std::string> domains_of(const Config& config) {
    std::set<std::string> domains{"main"};
    for (const std::string& entry : config.cluster_domains) {
        domains.insert(entry.substr(entry.find('=') + 1));
    }
    return {domains.begin(), domains.end()};
}

}  // namespace

struct ClusterNode::Led {
    std::unique_ptr<jobs::Ledger> ledger;
    std::shared_ptr<Office> office;
};

ClusterNode::ClusterNode(
    const Parts& parts, std::unique_ptr<cluster::Bus> bus, const Config& config
)
    : p_(parts),
      domains_(domains_of(config)),
      bus_(std::move(bus)),
      mail_(parts.core, *bus_),
      hub_(parts.core, mail_, parts.storage, *parts.storage.shared()),
      others_({parts.core, parts.storage, *parts.storage.shared(), *parts.storage.leases(), mail_}),
      classes_(parts.core, parts.storage, domains_) {}

ClusterNode::~ClusterNode() = default;

Result<std::unique_ptr<ClusterNode>> ClusterNode::make(const Parts& parts, const Config& config) {
    const NodeId node = NodeId::make(parts.clock.now());
    auto bus = cluster::make_bus(parts.bus, config.events, config.cluster_name, node);
    if (!bus) {
        return fail(std::move(bus.error()));
    }
    return std::unique_ptr<ClusterNode>(new ClusterNode(parts, std::move(*bus), config));
}

void ClusterNode::start(jobs::Service& service, fleet::ClassCache& cache, MakeOffice make_office) {
    service_ = &service;
    make_office_ = std::move(make_office);
    cluster::answer_questions(mail_, service.here());
    mail_.on<cluster::Poke>([this](NodeId, const cluster::Poke& poke) {
        service_->look_for_newcomers(poke.domain);
    });
    hub_.start();
    mail_.start();
    boost::asio::post(p_.bus, [bus = bus_.get()] { bus->start(); });
    others_.start();
    classes_.start(cache);
    for (const std::string& domain : domains_) {
        cluster::LeadHooks hooks;
        hooks.on_taken = [this, domain](
                             cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust
                         ) { return begin_lead(domain, std::move(taken), std::move(trust)); };
        hooks.on_lost = [this, domain](cluster::LeadEnd why) { return end_lead(domain, why); };
        hooks.queued = [this, domain] { return service_->queued_in(domain); };
        leads_.push_back(std::make_unique<cluster::Lead>(
            p_.core, *p_.storage.leases(), boot_clock_, domain, mail_.self(), std::move(hooks)
        ));
        leads_.back()->start();
    }
    p_.storage.leases()->on_session_lost([this] {
        boost::asio::post(p_.core, [this] {
            for (const auto& lead : leads_) {
                lead->session_lost();
            }
        });
    });
}

Task<> ClusterNode::resign() {
    p_.storage.leases()->on_session_lost({});
    for (const auto& lead : leads_) {
        co_await lead->resign();
    }
    leads_.clear();
}

Task<> ClusterNode::stop() {
    co_await classes_.stop();
    co_await others_.stop();
    co_await hub_.stop();
    co_await mail_.stop();
    co_await await_on(p_.bus, bus_->stop());
}

// An office that cannot be opened now is tried again for as long as the lead is ours.
Task<> ClusterNode::begin_lead(
    std::string domain, cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust
) {
    log::info("leading", {{"domain", domain}, {"epoch", taken.term.epoch}});
    while (trust->holds()) {
        auto led = std::make_unique<Led>();
        led->ledger = p_.storage.shared()->under(taken.term);
        auto made = make_office_(trust);
        if (made) {
            led->office = std::move(*made);
            auto opened = co_await led->office->open(domain, *led->ledger, p_.storage.shared());
            if (opened) {
                fleet::Fleet& fleet = led->office->fleet();
                led_[domain] = std::move(led);
                classes_.set_led(domain, [&fleet] { return fleet.catalogue(); });
                tell_hub();
                co_return;
            }
            co_await led->office->close(Millis(0));
            log::warning(
                "a domain cannot be led yet",
                {{"domain", domain}, {"error", opened.error().message}}
            );
        } else {
            log::error(
                "a domain cannot be led", {{"domain", domain}, {"error", made.error().message}}
            );
        }
        const bool goes_on = co_await sleep_for(kTryAgain);
        if (!goes_on) {
            co_return;
        }
    }
}

Task<> ClusterNode::end_lead(std::string domain, cluster::LeadEnd why) {
    log::info("no longer leading", {{"domain", domain}, {"why", cluster::to_string(why)}});
    classes_.set_not_led(domain);
    const auto led = led_.extract(domain);
    tell_hub();
    if (led) {
        co_await led.mapped()->office->close(Millis(0));
    }
}

void ClusterNode::tell_hub() {
    hub_.lead_all(led_.size() == domains_.size());
}

std::shared_ptr<Office> ClusterNode::office_of(const std::string& worker) const {
    for (const auto& [domain, led] : led_) {
        if (led->office->fleet().find(worker)) {
            return led->office;
        }
    }
    return nullptr;
}

std::vector<std::shared_ptr<Office>> ClusterNode::offices() const {
    std::vector<std::shared_ptr<Office>> all;
    for (const auto& [domain, led] : led_) {
        all.push_back(led->office);
    }
    return all;
}

}  // namespace comfyd::app
