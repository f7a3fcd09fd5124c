#include "app/application.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include "api/dashboard.hpp"
#include "api/dialects/batches/batches.hpp"
#include "api/dialects/dialects.hpp"
#include "api/dialects/fleet/fleet.hpp"
#include "api/dialects/guards.hpp"
#include "api/dialects/identity/identity.hpp"
#include "api/dialects/models/models.hpp"
#include "api/dialects/native/board.hpp"
#include "api/dialects/native/native.hpp"
#include "api/router.hpp"
#include "api/services.hpp"
#include "api/webhook_services.hpp"
#include "app/audit_log.hpp"
#include "app/certificate_watch.hpp"
#include "app/config/part_options.hpp"
#include "app/config/serving.hpp"
#include "app/data_folder.hpp"
#include "app/desk.hpp"
#include "app/engine_process.hpp"
#include "app/fleet_announcements.hpp"
#include "app/fleet_desk.hpp"
#include "app/gauges.hpp"
#include "app/identities.hpp"
#include "app/job_metrics.hpp"
#include "app/learned.hpp"
#include "app/limiting.hpp"
#include "app/mail_content.hpp"
#include "app/media_process.hpp"
#include "app/model_links.hpp"
#include "app/model_news.hpp"
#include "app/model_rules.hpp"
#include "app/notifications.hpp"
#include "app/own_addresses.hpp"
#include "app/pictures.hpp"
#include "app/prewarm_study.hpp"
#include "app/retention.hpp"
#include "app/sandbox_status.hpp"
#include "app/stall_log.hpp"
#include "app/uploads.hpp"
#include "app/worker_calls.hpp"
#include "app/worksite.hpp"
#include "assets/links.hpp"
#include "assets/store.hpp"
#include "base/hop.hpp"
#include "base/log.hpp"
#include "base/pool.hpp"
#include "base/sealing.hpp"
#include "base/stall_watch.hpp"
#include "base/steady_clock.hpp"
#include "base/wait_for.hpp"
#include "bulk/keeper.hpp"
#include "jobs/service.hpp"
#include "ledger/storage.hpp"
#include "media/exporter.hpp"
#include "media/finisher.hpp"
#include "media/helpers.hpp"
#include "models/uploads.hpp"
#include "net/address_guard.hpp"
#include "net/io_threads.hpp"
#include "net/open_files.hpp"
#include "net/server.hpp"
#include "net/tls_identity.hpp"
#include "notify/endpoint_book.hpp"
#include "notify/notifier.hpp"
#include "notify/routing.hpp"
#include "observe/metrics.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

unsigned io_thread_count(const Config& config) {
    return config.io_threads > 0 ? static_cast<unsigned>(config.io_threads)
                                 : std::clamp(std::thread::hardware_concurrency(), 1U, 8U);
}

}  // namespace

class Application::Impl {
public:
    explicit Impl(Config config)
        : config_(std::move(config)),
          data_(config_.data),
          files_(files_folder(config_)),
          open_files_(net::raise_open_files_limit()),
          core_("core"),
          stall_log_(clock_),
          stall_watch_(core_.executor(), [this](const Stall& stall) { stalled(stall); }),
          io_(io_thread_count(config_)),
          board_thread_("board"),
          pool_(4),
          media_(std::clamp(std::thread::hardware_concurrency() / 2, 1U, 4U)),
          helpers_(media_helpers(config_)),
          worker_calls_(core_.executor(), is_clustered(config_)),
          routing_(routes_of(config_.notify)) {}

    ~Impl() { stop(); }

    Result<> start() {
        if (auto loaded = load_identity(); !loaded) {
            return loaded;
        }
        if (auto confined = find_sandbox(); !confined) {
            return confined;
        }
        if (auto made = make_data_folder(data_); !made) {
            return made;
        }
        if (auto checked = check_storage(config_); !checked) {
            return checked;
        }
        if (auto opened = open_storage(); !opened) {
            return opened;
        }
        if (auto opened = open_audit_log(); !opened) {
            return opened;
        }
        if (auto made = make_service(); !made) {
            return made;
        }
        if (auto made = make_api(); !made) {
            return made;
        }
        auto endpoint = net::Endpoint::parse(config_.listen);
        if (!endpoint) {
            return fail(std::move(endpoint.error()));
        }
        core_.start();
        stall_watch_.start();
        io_.start();
        board_thread_.start();
        started_ = true;
        if (auto recovered = wait_for(core_.executor(), bring_up()); !recovered) {
            return recovered;
        }
        if (config_.proxies_protocol) {
            server_->demand_proxy_line();
        }
        auto bound = server_->listen(*endpoint, identity_);
        if (!bound) {
            return fail(std::move(bound.error()));
        }
        endpoint_ = *bound;
        ready_ = true;
        return {};
    }

    std::string url() const { return endpoint_.url(); }

    // First of all: what is wrong with it is told before anything is opened.
    Result<> load_identity() {
        if (config_.tls_certificate.empty()) {
            return {};
        }
        auto loaded = net::TlsIdentity::load({config_.tls_certificate, config_.tls_key});
        if (!loaded) {
            return fail(std::move(loaded.error()));
        }
        identity_ = std::move(*loaded);
        certificate_watch_ =
            std::make_unique<CertificateWatch>(retention_executor(), own_clock_, identity_);
        return {};
    }

    Result<> find_sandbox() {
        auto found = SandboxStatus::find(config_);
        if (!found) {
            return fail(std::move(found.error()));
        }
        sandbox_ = std::make_unique<SandboxStatus>(std::move(*found));
        sandbox_->tell();
        config_.sandbox_level = sandbox_->level();
        config_.sandbox_bubblewrap = sandbox_->support().bubblewrap;
        return {};
    }

    Result<> open_audit_log() {
        auto opened = AuditLog::open(config_, retention_executor(), clock_);
        if (!opened) {
            return fail(std::move(opened.error()));
        }
        audit_ = std::move(*opened);
        return {};
    }

    void stop() {
        if (!started_) {
            return;
        }
        started_ = false;
        ready_ = false;
        log::info("stopping", {});
        const auto grace = std::chrono::seconds(config_.shutdown_grace_s);
        // New requests are turned away first; streams end when the hub does, so the jobs stop next
        // and the connections that are left get a short while of their own.
        auto jobs_stopped =
            boost::asio::co_spawn(core_.executor(), bring_down(grace), boost::asio::use_future);
        jobs_stopped.get();
        server_->stop(Millis(3000));
        if (certificate_watch_) {
            wait_for(retention_executor(), certificate_watch_->stop());
        }
        wait_for(retention_executor(), own_addresses_->stop());
        wait_for(retention_executor(), retention_->stop());
        wait_for(retention_executor(), uploads_->stop());
        wait_for(keeper_executor(), stop_keeper());
        wait_for(notifier_executor(), notifier_->stop());
        wait_for(notifier_executor(), endpoints_->stop());
        wait_for(notifier_executor(), identities_->stop());
        wait_for(notifier_executor(), models_->stop());
        wait_for(retention_executor(), limiting_->stop());
        wait_for(board_thread_.executor(), board_->stop());
        if (audit_) {
            audit_->stop();
        }
        io_.stop();
        board_thread_.stop();
        stall_watch_.stop();
        core_.stop();
        notifier_.reset();
        announcer_.reset();
        ledger_->stop();
        log::info("stopped", {});
    }

private:
    Result<> open_storage() {
        ledger::OpenOptions options;
        options.reads_apart = {core_.executor(), &pool_};
        options.secret = config_.cluster_secret;
        options.routing = &routing_;
        auto opened = ledger::open_storage(ledger_url(config_), options, clock_);
        if (!opened) {
            return fail(std::move(opened.error()));
        }
        ledger_ = std::move(*opened);
        auto stores = make_watched_stores(config_, clock_, pool_);
        if (!stores) {
            return fail(std::move(stores.error()));
        }
        assets::StoreOptions store = store_options(config_);
        store.may_store = [this](std::string tenant, std::uint64_t bytes) {
            return limiting_->quotas().may_store(std::move(tenant), bytes);
        };
        assets_ =
            std::make_unique<assets::Store>(store, *ledger_, clock_, pool_, std::move(stores->all));
        stores_elsewhere_ = std::move(stores->elsewhere);
        if (auto ready = assets_->open(); !ready) {
            return ready;
        }
        auto key = load_key(config_, "links");
        if (!key) {
            return fail(std::move(key.error()));
        }
        using Hours = std::chrono::duration<double, std::ratio<3'600>>;
        links_ = std::make_unique<assets::LinkSigner>(
            std::move(*key), std::chrono::round<Millis>(Hours(config_.results_link_hours))
        );
        return {};
    }

    Result<> make_service() {
        models_ = std::make_unique<models::RegisterBook>(
            notifier_executor(), config_.registered_models, *ledger_
        );
        model_news_ = std::make_unique<ModelNews>(*models_);
        model_uploads_ = std::make_unique<models::Uploads>(pool_, files_ / "models");
        auto links = ModelLinks::make(config_, clock_, pool_);
        if (!links) {
            return fail(std::move(links.error()));
        }
        model_links_ = std::move(*links);
        auto site = Worksite::make(
            {core_.executor(),
             board_thread_.executor(),
             io_,
             clock_,
             *ledger_,
             *assets_,
             pool_,
             config_,
             worker_calls_.switchboard(),
             worker_calls_,
             *model_news_,
             [this](std::string source) { return model_links_->link_of(std::move(source)); }}
        );
        if (!site) {
            return fail(std::move(site.error()));
        }
        site_ = std::move(*site);
        jobs::ServiceOptions options = service_options(config_);
        options.pace = &SteadyClock::of_process();
        options.outputs_kept = outputs_kept_in(*assets_);
        options.permit = [this](std::string tenant, std::string tier) {
            return limiting_->quotas().may_submit(std::move(tenant), std::move(tier));
        };
        options.terms_of = [this](const std::string& tenant, const std::string& tier) {
            return limiting_->terms_of(tenant, tier);
        };
        finisher_ = std::make_unique<media::Finisher>(
            *assets_, pool_, helpers_, config_.outputs_thumbnails
        );
        auto key = load_key(config_, "requests");
        if (!key) {
            return fail(std::move(key.error()));
        }
        sealing_ = std::make_shared<const Sealing>(*key);
        exporter_ = std::make_unique<media::Exporter>(
            *assets_, *sealing_, clock_, pool_, export_options(config_)
        );
        options.finish_outputs =
            [this](jobs::Job job, std::vector<jobs::Output> outputs, std::stop_token stop) {
                return job.dialect_data.contains(media::kExportMember)
                           ? finish_and_export(std::move(job), std::move(outputs), std::move(stop))
                           : finisher_->finish(std::move(job), std::move(outputs), std::move(stop));
            };
        service_ = std::make_unique<jobs::Service>(
            core_.executor(), clock_, *ledger_, site_->hub(), options, site_->elsewhere()
        );
        if (auto set = site_->set_service(*service_); !set) {
            return set;
        }
        endpoints_ =
            std::make_unique<notify::EndpointBook>(notifier_executor(), clock_, *ledger_, routing_);
        notifier_ = make_notifier(
            notifier_executor(),
            clock_,
            *ledger_,
            config_,
            *endpoints_,
            services_,
            mail_content(services_, *assets_, media_)
        );
        Retention::Options retention;
        retention.kept_for = kept_for(config_);
        retention.engine_folders = engine_folders(config_, data_);
        retention.is_ours = keeps_house();
        retention.tell = [this](const Retention::Removed& removed) {
            metrics_.purged(removed.jobs, removed.files);
        };
        retention_ = std::make_unique<Retention>(
            retention_executor(), clock_, pool_, *ledger_, *assets_, std::move(retention)
        );
        Uploads::Options uploads;
        uploads.has_stores = !config_.stores.empty();
        uploads.is_ours = keeps_house();
        uploads_ = std::make_unique<Uploads>(retention_executor(), *assets_, std::move(uploads));
        learned_ = std::make_unique<Learned>(
            core_.executor(), pool_, *ledger_, service_->predictor(), site_->node_costs()
        );
        prewarm_study_ = std::make_unique<PrewarmStudy>(
            PrewarmStudy::Parts{
                core_.executor(), clock_, *service_, config_, [this] { return site_->offices(); }
            },
            is_clustered(config_) ? fs::path() : data_
        );
        tell_of_jobs(*service_, *notifier_, routing_);
        count_jobs(*service_, metrics_, !config_.metrics_open);
        return {};
    }

    Task<Result<std::vector<jobs::Output>>> finish_and_export(
        jobs::Job job, std::vector<jobs::Output> outputs, std::stop_token stop
    ) {
        auto finished = co_await finisher_->finish(job, std::move(outputs), stop);
        if (finished) {
            finished =
                co_await exporter_->bring(std::move(job), std::move(*finished), std::move(stop));
        }
        co_return finished;
    }

    admission::Rules admission_rules() {
        admission::Rules rules = app::admission_rules(config_);
        rules.plan.model_sizes = registered_sizes(*models_, rules.plan.model_sizes);
        rules.plan.model_files = read_files(*models_, model_news_->files());
        rules.plan.history = [this](const workflow::Graph& graph, const workflow::Plan& plan) {
            return learned_->past(graph, plan);
        };
        return rules;
    }

    Result<> make_api() {
        identities_ = std::make_unique<Identities>(Identities::Parts{
            notifier_executor(), core_.executor(), clock_, *ledger_, *ledger_, config_
        });
        own_addresses_ = std::make_unique<OwnAddresses>(retention_executor(), config_);
        // That they can be read was checked with the rest of the configuration.
        static_cast<void>(net::AddressGuard::of_process().set_nat64(config_.guard_nat64));
        router_ = std::make_unique<api::Router>(identities_->authenticator(), metrics_, clock_);
        admission::Rules rules = admission_rules();
        auto models = model_rules(config_, *models_, model_news_->files());
        if (!models) {
            return fail(std::move(models.error()));
        }
        rules.models = std::move(*models);
        identities_->keep(rules.tenants, site_->node(), [this] {
            boost::asio::post(core_.executor(), [this] {
                service_->set_tenants(limiting_->all_terms());
            });
        });
        auto limiting = Limiting::make(
            {retention_executor(),
             core_.executor(),
             clock_,
             pool_,
             config_,
             identities_->directory(),
             *service_,
             *ledger_,
             {data_, files_},
             keeps_house()}
        );
        if (!limiting) {
            return fail(std::move(limiting.error()));
        }
        limiting_ = std::move(*limiting);
        router_->set_limits(limiting_->rates(), limiting_->addresses());
        router_->set_rules(
            {config_.cors_origins,
             config_.key_in_query,
             host_rules(config_),
             public_origin(config_),
             identities_->sessions(),
             audit_ ? &audit_->journal() : nullptr,
             config_.audit_extent}
        );
        services_.reset(new api::Services{
            make_desk(
                {*service_, *assets_, site_->machines(), clock_},
                std::move(rules),
                std::make_shared<admission::FileNames>(files_ / "native", pool_)
            ),
            *links_,
            *ledger_,
            [this] { return ready(); },
            [this] { return metrics_text(); },
            [this](std::string worker, bool draining) {
                return site_->machines().set_draining(std::move(worker), draining);
            },
            metrics_,
            api_options(config_)
        });
        if (ClusterNode* node = site_->node()) {
            services_->describe_cluster = [node] { return node->describe(); };
        }
        services_->webhooks = std::make_shared<const api::WebhookServices>(
            api::WebhookServices{*endpoints_, *ledger_, *notifier_, fleet_event_names()}
        );
        services_->answers =
            std::make_shared<api::AnswerShelf>([this] { return ledger_->changes(); });
        services_->options.sealing = sealing_;
        make_keeper();
        api::add_operations(*router_, *services_);
        api::add_dashboard(*router_, services_->options);
        api::add_admin(*router_, *services_);
        fleet_desk_ = std::make_unique<FleetDesk>(FleetDesk::Parts{
            core_.executor(),
            clock_,
            *ledger_,
            config_,
            [this] { return site_->offices(); },
            *model_news_
        });
        api::add_fleet(*router_, fleet_desk_->services());
        api::add_gpus(*router_, *services_);
        api::add_scale(*router_, *services_);
        api::add_forecast(*router_, *services_, fleet_desk_->services());
        model_services_.reset(new api::ModelServices{
            *models_,
            clock_,
            *model_uploads_,
            [this](const std::string& source) { return model_links_->check(source); },
            [this](std::string_view sha256, std::string_view until, std::string_view ticket) {
                return model_links_->is_good_ticket(sha256, until, ticket);
            }
        });
        api::add_models(*router_, *model_services_);
        api::add_identity(*router_, identities_->services());
        identities_->set_addresses(limiting_->addresses());
        api::add_login(*router_, identities_->login());
        api::add_guards(
            *router_,
            {[this] { return sandbox_->describe(); },
             [this] { return audit_ ? audit_->describe() : json::object{{"enabled", false}}; }}
        );
        api::add_stream_tickets(*router_, *services_);
        api::add_comfy_v2(*router_, *services_);
        api::add_dead_letters(*router_, *services_);
        api::add_workflows(*router_, *services_);
        api::add_stats(*router_, *services_);
        api::add_comfyui_execute(*router_, *services_);
        api::add_tasks(*router_, *services_);
        api::add_runpod(*router_, *services_);
        api::add_webhooks(*router_, *services_);
        api::add_worker_calls(*router_, *worker_calls_.switchboard());
        api::add_batches(*router_, *batch_tools_);
        board_ = api::add_native(
            *router_,
            *services_,
            {board_thread_.executor(),
             pool_,
             media_,
             files_ / "native",
             config_.frontend_dir,
             convert_picture,
             replace_alpha}
        );
        const net::ServerLimits limits = server_limits(config_, open_files_);
        if (has_fewer_than_asked_for(config_, limits)) {
            log::warning(
                "fewer connections than configured: the system allows few open files",
                {{"connections", limits.connections_max}, {"open_files", open_files_}}
            );
        }
        auto handle = [this](net::Exchange& exchange) { return router_->handle(exchange); };
        auto proxies = net::TrustedProxies::parse(config_.proxies_trusted, config_.proxies_header);
        server_ = std::make_unique<net::Server>(
            io_.contexts(), limits, std::move(handle), std::move(*proxies)
        );
        return {};
    }

    // Whether this node does what one of several does; empty: it is alone.
    std::function<bool()> keeps_house() {
        const ClusterNode* node = site_->node();
        return node == nullptr ? std::function<bool()>() : [node] { return node->keeps_house(); };
    }

    void make_keeper() {
        announcer_ = make_announcer(keeper_executor(), clock_, config_, *endpoints_);
        bulk::KeeperOptions options = keeper_options(config_);
        options.is_ours = keeps_house();
        bulk::TenderTools tools{
            keeper_executor(),
            *ledger_,
            *services_,
            messengers_of(*announcer_, *endpoints_),
            [this](const std::string& dialect) { metrics_.job_submitted(dialect); }
        };
        fleet_news_ = make_fleet_news(
            keeper_executor(), clock_, *ledger_, config_, *announcer_, *endpoints_, options.is_ours
        );
        keeper_ = std::make_unique<bulk::Keeper>(std::move(tools), std::move(options));
        batch_tools_.reset(new api::BatchTools{
            *services_,
            *ledger_,
            [this](jobs::BulkId id) { keeper_->wake(id); },
            config_.batches_items_max
        });
    }

    Task<> stop_keeper() {
        co_await keeper_->stop();
        co_await fleet_news_->stop();
        announcer_->close();
    }

    Task<Result<>> bring_up() {
        // Before the first change of a job: who is told of it is known then.
        auto known = co_await endpoints_->refresh();
        if (!known) {
            co_return fail(std::move(known.error()));
        }
        auto identified = co_await identities_->open();
        if (!identified) {
            co_return fail(std::move(identified.error()));
        }
        auto registered = co_await models_->refresh();
        if (!registered) {
            co_return fail(std::move(registered.error()));
        }
        co_await limiting_->open();
        service_->set_tenants(limiting_->all_terms());
        worker_calls_.start(site_->machines());
        co_await learned_->start();
        prewarm_study_->start();
        auto opened = co_await site_->open(*learned_);
        if (!opened) {
            co_return fail(std::move(opened.error()));
        }
        boost::asio::post(notifier_executor(), [this] {
            endpoints_->start();
            identities_->start();
            models_->start();
            notifier_->start();
            notifier_->wake();
        });
        boost::asio::post(retention_executor(), [this] {
            retention_->start();
            uploads_->start();
            own_addresses_->start();
            limiting_->start();
            if (audit_) {
                audit_->start();
            }
            if (certificate_watch_) {
                certificate_watch_->start();
            }
        });
        boost::asio::post(keeper_executor(), [this] {
            keeper_->start();
            fleet_news_->start();
        });
        co_return Result<>();
    }

    Task<bool> bring_down(Millis grace) {
        worker_calls_.stop();
        co_await prewarm_study_->stop();
        co_await site_->resign();
        co_await service_->stop(grace);
        co_await learned_->stop();
        co_await site_->close();
        co_return true;
    }

    Result<> ready() const {
        if (!ready_) {
            return fail(Code::shutting_down, "comfyd is starting or stopping");
        }
        return ledger_->healthy();
    }

    Task<std::string> metrics_text() {
        auto readings = co_await take_readings(
            {*service_, *ledger_, *notifier_, *server_, site_->machines(), stores_elsewhere_, clock_
            }
        );
        ClusterReadings cluster;
        if (ClusterNode* node = site_->node()) {
            cluster = co_await node->readings();
        }
        const auto machines = co_await fleet_desk_->readings();
        const auto fill = [&](observe::Metrics::Gauges& gauges) {
            collect(readings, gauges);
            collect(machines, gauges);
            collect(cluster, gauges);
            identities_->collect(gauges);
            limiting_->collect(gauges);
            model_news_->collect(gauges);
            sandbox_->collect(gauges);
            prewarm_study_->collect(gauges);
            if (audit_) {
                audit_->collect(gauges);
            }
        };
        co_return metrics_.render(fill);
    }

    void stalled(const Stall& stall) {
        metrics_.core_stalled(std::chrono::duration<double>(stall.length).count());
        stall_log_.tell(stall);
    }

    Executor keeper_executor() { return io_.contexts().back()->get_executor(); }
    Executor retention_executor() { return io_.contexts().back()->get_executor(); }
    Executor notifier_executor() { return io_.contexts().front()->get_executor(); }

    Config config_;
    fs::path data_;           // of this process
    fs::path files_;          // that all nodes see
    std::size_t open_files_;  // that the process may have
    SystemClock own_clock_;
    cluster::SharedClock clock_{own_clock_};  // its own, where it is alone
    observe::Metrics metrics_;
    net::IoThread core_;
    StallLog stall_log_;
    StallWatch stall_watch_;
    net::IoThreads io_;
    net::IoThread board_thread_;  // tells a crowd, which must not hold up workers' sockets
    Pool pool_;   // after the contexts: its threads post to them until they are joined
    Pool media_;  // pictures may take long: they hold up no file and no job
    media::Helpers helpers_;
    WorkerCalls worker_calls_;
    notify::Routing routing_;
    std::unique_ptr<ledger::Storage> ledger_;
    std::unique_ptr<assets::Store> assets_;
    std::vector<const assets::BreakerStore*> stores_elsewhere_;  // of assets_
    std::unique_ptr<SandboxStatus> sandbox_;
    std::unique_ptr<AuditLog> audit_;  // null: there is none
    std::unique_ptr<assets::LinkSigner> links_;
    std::unique_ptr<media::Finisher> finisher_;
    std::shared_ptr<const Sealing> sealing_;
    std::unique_ptr<media::Exporter> exporter_;
    std::unique_ptr<models::RegisterBook> models_;
    std::unique_ptr<ModelNews> model_news_;  // before the site, whose workers tell it
    std::unique_ptr<models::Uploads> model_uploads_;
    std::unique_ptr<ModelLinks> model_links_;
    std::unique_ptr<Worksite> site_;  // before the service, which has its hub
    std::unique_ptr<jobs::Service> service_;
    std::unique_ptr<Retention> retention_;
    std::unique_ptr<Uploads> uploads_;
    std::unique_ptr<Learned> learned_;
    std::unique_ptr<PrewarmStudy> prewarm_study_;
    std::unique_ptr<notify::EndpointBook> endpoints_;
    std::unique_ptr<notify::Notifier> notifier_;
    std::unique_ptr<Identities> identities_;
    std::unique_ptr<OwnAddresses> own_addresses_;
    std::unique_ptr<Limiting> limiting_;
    std::unique_ptr<api::ModelServices> model_services_;
    std::unique_ptr<FleetDesk> fleet_desk_;
    std::unique_ptr<api::Services> services_;
    std::unique_ptr<notify::WebhookChannel> announcer_;
    std::unique_ptr<bulk::Keeper> keeper_;
    std::unique_ptr<FleetNews> fleet_news_;
    std::unique_ptr<api::BatchTools> batch_tools_;
    std::unique_ptr<api::Router> router_;
    std::shared_ptr<api::native::Board> board_;   // shared with the routes of its dialect
    std::shared_ptr<net::TlsIdentity> identity_;  // none: plain HTTP
    std::unique_ptr<CertificateWatch> certificate_watch_;
    std::unique_ptr<net::Server> server_;
    net::Endpoint endpoint_;
    std::atomic<bool> ready_{false};
    bool started_ = false;
};

Application::Application(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Application::~Application() = default;

Result<std::unique_ptr<Application>> Application::start(Config config) {
    auto impl = std::make_unique<Impl>(std::move(config));
    if (auto started = impl->start(); !started) {
        return fail(std::move(started.error()));
    }
    return std::unique_ptr<Application>(new Application(std::move(impl)));
}

std::string Application::url() const {
    return impl_->url();
}
void Application::stop() {
    impl_->stop();
}

}  // namespace comfyd::app
