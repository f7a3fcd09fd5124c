#include "app/cluster_node.hpp"

#include <unistd.h>

#include <utility>

#include <boost/asio/post.hpp>

#include "app/workers.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"
#include "cluster/make_bus.hpp"
#include "cluster/questions.hpp"

namespace comfyd::app {
namespace {

std::string own_name() {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return std::string(host) + "-" + std::to_string(::getpid());
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
      name_(config.cluster_node.empty() ? own_name() : config.cluster_node),
      domains_(domains_of(config)),
      may_lead_(config.cluster_leads.empty() ? domains_ : config.cluster_leads),
      bus_(std::move(bus)),
      mail_(parts.core, *bus_),
      hub_(parts.core, mail_, parts.storage, *parts.storage.shared()),
      others_({parts.core, parts.storage, *parts.storage.shared(), *parts.storage.leases(), mail_}),
      classes_(parts.core, parts.storage, parts.pool, domains_, software_of_pools(config)),
      roll_call_({parts.core, parts.clock, *parts.storage.nodes(), mail_.self(), [this] {
                      return about();
                  }}) {}

ClusterNode::~ClusterNode() = default;

Result<std::unique_ptr<ClusterNode>> ClusterNode::make(const Parts& parts, const Config& config) {
    const NodeId node = NodeId::make(parts.clock.now());
    auto bus = cluster::make_bus(parts.bus, config.events, config.cluster_name, node);
    if (!bus) {
        return fail(std::move(bus.error()));
    }
    return std::unique_ptr<ClusterNode>(new ClusterNode(parts, std::move(*bus), config));
}

void ClusterNode::start(jobs::Service& service, fleet::ClassCache& cache, Hooks hooks) {
    service_ = &service;
    hooks_ = std::move(hooks);
    cluster::answer_questions(mail_, service.here());
    mail_.on<cluster::Poke>([this](NodeId, const cluster::Poke& poke) {
        service_->look_for_newcomers(poke.domain);
    });
    mail_.on<cluster::Freed>([this](NodeId, const cluster::Freed& freed) {
        if (const auto lead = leads_.find(freed.domain); lead != leads_.end()) {
            lead->second->may_be_free();
        }
    });
    hub_.start();
    mail_.start();
    boost::asio::post(p_.bus, [bus = bus_.get()] { bus->start(); });
    others_.start();
    classes_.start(cache);
    roll_call_.start();
    for (const std::string& domain : may_lead_) {
        cluster::LeadHooks lead_hooks;
        lead_hooks.on_taken = [this, domain](
                                  cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust
                              ) { return begin_lead(domain, std::move(taken), std::move(trust)); };
        lead_hooks.on_lost = [this, domain](cluster::LeadEnd) { return end_lead(domain); };
        lead_hooks.queued = [this, domain] { return service_->queued_in(domain); };
        auto& lead = leads_[domain];
        lead = std::make_unique<cluster::Lead>(
            p_.core, *p_.storage.leases(), boot_clock_, domain, mail_.self(), std::move(lead_hooks)
        );
        lead->start();
    }
    p_.storage.leases()->on_session_lost([this] {
        boost::asio::post(p_.core, [this] {
            for (const auto& [domain, lead] : leads_) {
                lead->session_lost();
            }
        });
    });
}

Task<> ClusterNode::resign() {
    p_.storage.leases()->on_session_lost({});
    for (const auto& [domain, lead] : leads_) {
        const bool did_lead = lead->leads();
        co_await lead->resign();
        if (did_lead) {
            mail_.tell_all(cluster::Freed{domain});
        }
    }
    leads_.clear();
}

Task<> ClusterNode::stop() {
    co_await roll_call_.stop();
    co_await classes_.stop();
    co_await others_.stop();
    co_await hub_.stop();
    co_await mail_.stop();
    co_await await_on(p_.bus, bus_->stop());
}

// A lead that was let go is not told that it has ended.
fleet::MandatePtr ClusterNode::make_mandate(
    const cluster::Taken& taken, std::shared_ptr<const cluster::Trust> trust
) {
    auto mandate = std::make_shared<fleet::Mandate>();
    mandate->domain = taken.term.domain;
    mandate->epoch = taken.term.epoch;
    mandate->node = taken.term.node;
    mandate->may_send = [trust = std::move(trust)] { return trust->holds(); };
    mandate->refused = [this, term = taken.term] {
        boost::asio::post(p_.core, [this, term] {
            if (const auto lead = leads_.find(term.domain); lead != leads_.end()) {
                lead->second->refused(term.epoch);
            }
        });
    };
    mandate->quiet_at = std::chrono::steady_clock::now() + taken.quiet_in;
    return mandate;
}

// Who cannot open an office leaves the lead to others.
Task<> ClusterNode::begin_lead(
    std::string domain, cluster::Taken taken, std::shared_ptr<const cluster::Trust> trust
) {
    taken_.insert(domain);
    tell_hub();  // before anything is published under the term
    auto led = std::make_unique<Led>();
    led->ledger = p_.storage.shared()->under(taken.term);
    auto opened = co_await open_office(*led, make_mandate(taken, std::move(trust)));
    if (!opened) {
        log::error("cannot lead", {{"domain", domain}, {"error", opened.error().message}});
        leads_.at(domain)->let_go();
        co_return;
    }
    fleet::Fleet& fleet = led->office->fleet();
    led_[domain] = std::move(led);
    classes_.set_led(domain, [&fleet] { return fleet.catalogue(); });
    keeps_house_ = led_.contains(domains_.front());
}

Task<Result<>> ClusterNode::open_office(Led& led, fleet::MandatePtr mandate) {
    auto prepared = co_await hooks_.prepare();
    if (!prepared) {
        co_return fail(std::move(prepared.error()));
    }
    auto made = hooks_.make_office(std::move(mandate));
    if (!made) {
        co_return fail(std::move(made.error()));
    }
    led.office = std::move(*made);
    auto opened = co_await led.office->open(*led.ledger, p_.storage.shared());
    if (!opened) {
        co_await led.office->close(Millis(0));
    }
    co_return opened;
}

Task<> ClusterNode::end_lead(std::string domain) {
    classes_.set_not_led(domain);
    const auto led = led_.extract(domain);
    keeps_house_ = led_.contains(domains_.front());
    taken_.erase(domain);
    tell_hub();
    if (led) {
        co_await led.mapped()->office->close(Millis(0));
    }
}

void ClusterNode::tell_hub() {
    hub_.lead_all(taken_.size() == domains_.size());
}

Task<ClusterReadings> ClusterNode::readings() {
    return call_on(p_.core, [this] {
        ClusterReadings readings;
        for (const auto& [domain, lead] : leads_) {
            readings.domains.push_back(
                {domain, lead->leads(), lead->counts(), service_->lag_of(domain)}
            );
        }
        readings.clock_ahead = roll_call_.clock_ahead();
        readings.bus_is_up = bus_->is_up();
        readings.bus_breaker = bus_->breaker();
        readings.bus = bus_->counts();
        return readings;
    });
}

Task<Result<json::object>> ClusterNode::describe() {
    auto leases = co_await p_.storage.leases()->all();
    if (!leases) {
        co_return fail(std::move(leases.error()));
    }
    json::array domains;
    for (const cluster::Lease& lease : *leases) {
        const bool is_led = lease.term.node != NodeId{};
        domains.emplace_back(json::object{
            {"domain", lease.term.domain},
            {"epoch", lease.term.epoch},
            {"leader", is_led ? json::value(lease.term.node.to_string()) : json::value(nullptr)},
            {"is_this_node", lease.term.node == mail_.self()},
            {"lease_ends_in_ms", lease.expires_in.count()},
            {"queued", lease.queued},
        });
    }
    auto nodes = co_await list_nodes();
    if (!nodes) {
        co_return fail(std::move(nodes.error()));
    }
    co_return json::object{
        {"clustered", true},
        {"node", {{"id", mail_.self().to_string()}, {"name", name_}, {"version", COMFYD_VERSION}}},
        {"nodes", std::move(*nodes)},
        {"domains", std::move(domains)},
        {"bus", {{"up", bus_->is_up()}, {"problem", bus_->problem()}}},
    };
}

Task<Result<json::array>> ClusterNode::list_nodes() {
    auto nodes = co_await p_.storage.nodes()->roster();
    if (!nodes) {
        co_return fail(std::move(nodes.error()));
    }
    json::array listed;
    for (cluster::RosterEntry& entry : *nodes) {
        json::object node = std::move(entry.about);
        node["id"] = entry.node.to_string();
        node["seen_ms_ago"] = entry.seen_ago.count();
        node["is_this_node"] = entry.node == mail_.self();
        listed.push_back(std::move(node));
    }
    co_return listed;
}

json::object ClusterNode::about() const {
    json::object leads;
    for (const auto& [domain, led] : led_) {
        leads[domain] = {{"lag_ms", service_->lag_of(domain).count()}};
    }
    const auto ahead = roll_call_.clock_ahead();
    return {
        {"name", name_},
        {"version", COMFYD_VERSION},
        {"leads", std::move(leads)},
        {"clock_ahead_ms", ahead ? json::value(ahead->count()) : json::value(nullptr)},
        {"bus_up", bus_->is_up()},
    };
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
