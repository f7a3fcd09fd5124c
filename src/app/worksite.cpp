#include "app/worksite.hpp"

#include <utility>

#include <boost/asio/post.hpp>

#include "app/cluster_machines.hpp"
#include "app/config/part_options.hpp"
#include "app/data_folder.hpp"
#include "app/shared_folder.hpp"
#include "events/local_hub.hpp"

namespace comfyd::app {
namespace {

const std::string kOwnDomain = "main";

}  // namespace

Worksite::Worksite(const Parts& parts)
    : p_(parts), classes_(parts.pool, [this](auto name, auto told) {
          if (node_) {
              node_->classes().keep(std::move(name), std::move(told));
          } else if (board_) {
              board_->keep(std::move(name), std::move(told));
          }
      }) {
    net::ClientOptions options;
    options.lines = p_.lines;
    for (auto* context : p_.io.contexts()) {
        clients_.push_back(std::make_unique<net::Client>(context->get_executor(), options));
    }
}

Worksite::~Worksite() = default;

Result<std::unique_ptr<Worksite>> Worksite::make(const Parts& parts) {
    std::unique_ptr<Worksite> site(new Worksite(parts));
    auto key = load_key(parts.config, "workers");
    if (!key) {
        return fail(std::move(key.error()));
    }
    site->folders_ = {std::move(*key), asks_who(parts.config)};
    auto identities = worker_identities(parts.config);
    if (!identities) {
        return fail(std::move(identities.error()));
    }
    site->certificates_ = std::make_unique<WorkerCertificates>(
        parts.io.contexts().back()->get_executor(), site->lanes(), std::move(*identities)
    );
    if (auto used = site->certificates_->use(); !used) {
        return fail(std::move(used.error()));
    }
    if (!is_clustered(parts.config)) {
        site->own_hub_ = std::make_unique<events::LocalHub>(parts.core);
        if (!parts.config.fleet.pools.empty()) {
            site->board_ = std::make_unique<ClassBoard>(
                parts.core,
                parts.ledger,
                parts.pool,
                std::vector<std::string>{kOwnDomain},
                software_of_pools(parts.config)
            );
        }
        return site;
    }
    auto node = ClusterNode::make(
        {parts.core, parts.bus, parts.clock, parts.pool, parts.ledger}, parts.config
    );
    if (!node) {
        return fail(std::move(node.error()));
    }
    site->node_ = std::move(*node);
    return site;
}

Result<> Worksite::set_service(jobs::Service& service) {
    service_ = &service;
    if (node_) {
        machines_ = std::make_unique<ClusterMachines>(p_.core, *node_);
        return {};
    }
    auto made = make_office(nullptr);
    if (!made) {
        return fail(std::move(made.error()));
    }
    office_ = std::move(*made);
    machines_ = std::make_unique<OwnMachines>(p_.core, *office_);
    return {};
}

std::shared_ptr<const workflow::Catalogue> Worksite::last_known_classes() const {
    return node_    ? node_->classes().catalogue()
           : board_ ? board_->catalogue()
                    : std::make_shared<const workflow::Catalogue>(
                          std::vector<workflow::Catalogue::Entry>()
                      );
}

std::vector<fleet::Lane> Worksite::lanes() {
    std::vector<fleet::Lane> lanes;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
        lanes.push_back({p_.io.contexts()[i]->get_executor(), *clients_[i]});
    }
    return lanes;
}

Result<std::unique_ptr<Office>> Worksite::make_office(fleet::MandatePtr mandate) {
    const std::string domain = mandate ? mandate->domain : kOwnDomain;
    return Office::make(
        {p_.core,
         p_.clock,
         lanes(),
         p_.assets,
         p_.pool,
         classes_,
         node_costs_,
         *service_,
         p_.ledger,
         p_.ledger,
         p_.callers,
         [this] { return last_known_classes(); },
         p_.model_news,
         p_.link_of,
         std::move(mandate)},
        p_.config,
        folders_,
        domain
    );
}

std::vector<std::shared_ptr<Office>> Worksite::offices() const {
    if (node_) {
        return node_->offices();
    }
    return office_ ? std::vector{office_} : std::vector<std::shared_ptr<Office>>();
}

Task<Result<>> Worksite::open(Learned& learned) {
    co_await certificates_->start();
    if (!node_) {
        if (board_) {
            board_->start(classes_);
            co_await board_->recall();
        }
        auto opened = co_await office_->open(p_.ledger);
        if (board_) {
            fleet::Fleet& fleet = office_->fleet();
            board_->set_led(kOwnDomain, [&fleet] { return fleet.catalogue(); });
        }
        co_return opened;
    }
    auto shared = co_await check_shared_folder(p_.ledger, files_folder(p_.config), p_.pool);
    if (shared) {
        node_->start(
            *service_,
            classes_,
            {.make_office = [this](auto mandate) { return make_office(std::move(mandate)); },
             .prepare = [this, &learned] { return prepare_lead(learned); }}
        );
    }
    co_return shared;
}

// What other nodes have learned is read, and looked whether this one sees what they see.
Task<Result<>> Worksite::prepare_lead(Learned& learned) {
    auto shared = co_await check_shared_folder(p_.ledger, files_folder(p_.config), p_.pool);
    if (shared) {
        co_await learned.recall();
    }
    co_return shared;
}

Task<> Worksite::resign() {
    if (node_) {
        co_await node_->resign();
    }
}

Task<> Worksite::close() {
    co_await certificates_->stop();
    if (node_) {
        co_await node_->stop();
    } else {
        if (board_) {
            co_await board_->stop();
        }
        co_await office_->close(Millis(0));
    }
    for (std::size_t i = 0; i < clients_.size(); ++i) {
        net::Client* client = clients_[i].get();
        boost::asio::post(*p_.io.contexts()[i], [client] { client->close_idle(); });
    }
}

}  // namespace comfyd::app
