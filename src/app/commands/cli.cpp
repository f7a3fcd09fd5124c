#include "app/commands/cli.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/application.hpp"
#include "app/commands/assets_command.hpp"
#include "app/commands/audit_command.hpp"
#include "app/commands/batches_command.hpp"
#include "app/commands/cluster_command.hpp"
#include "app/commands/convert_command.hpp"
#include "app/commands/engine_command.hpp"
#include "app/commands/explain_command.hpp"
#include "app/commands/fleet_command.hpp"
#include "app/commands/identity_commands.hpp"
#include "app/commands/jobs_command.hpp"
#include "app/commands/ledger_command.hpp"
#include "app/commands/media_command.hpp"
#include "app/commands/models_command.hpp"
#include "app/commands/notify_command.hpp"
#include "app/commands/picture_command.hpp"
#include "app/commands/run_command.hpp"
#include "app/commands/sandbox_command.hpp"
#include "app/commands/simulate_command.hpp"
#include "app/commands/stop_signals.hpp"
#include "app/commands/validate_command.hpp"
#include "app/commands/webhooks_command.hpp"
#include "app/commands/worker_command.hpp"
#include "app/config/config.hpp"
#include "app/config/edit_distance.hpp"
#include "app/local_comfyui.hpp"
#include "base/foreign_text.hpp"
#include "base/log.hpp"
#include "base/service_manager.hpp"

namespace comfyd::app {
namespace {

int complain(const Error& error) {
    std::fprintf(stderr, "comfyd: %s\n", error.message.c_str());
    switch (error.code) {
        case Code::config_invalid:
        case Code::invalid_argument:
            return kExitUsage;
        default:
            return kExitUnavailable;
    }
}

// The flags that `serve` and `config` share.
struct ServeFlags {
    std::string config_file;
    std::string listen;
    std::string frontend;
    std::string comfyui;
    std::string data;
    std::string ledger;
    std::string events;
    std::string log_level;
    std::vector<std::string> workers;
    std::vector<std::string> settings;
    bool no_engine = false;

    void add_to(CLI::App& command) {
        command.add_option("--config", config_file, "Configuration file (YAML)")->type_name("FILE");
        command
            .add_option(
                "--listen",
                listen,
                "Address and port; port 0 takes a free one (default 127.0.0.1:8080)"
            )
            ->type_name("HOST:PORT");
        command
            .add_option(
                "--data", data, "Folder for everything that is stored (default ./comfyd-data)"
            )
            ->type_name("DIR");
        command.add_option("--worker", workers, "A ComfyUI server; may be repeated")
            ->type_name("URL");
        command
            .add_option(
                "--comfyui",
                comfyui,
                "Start ComfyUI on the GPUs of this computer: the folder of its main.py"
            )
            ->type_name("DIR");
        command
            .add_option("--frontend", frontend, "ComfyUI's editor (its built files), served at /")
            ->type_name("DIR");
        command
            .add_option("--ledger", ledger, "PostgreSQL that several nodes share (postgres://…)")
            ->type_name("URL");
        command.add_option("--events", events, "Redis over which they tell each other (redis://…)")
            ->type_name("URL");
        command.add_flag("--no-engine", no_engine, "Do not run model-free workflows inside comfyd");
        command.add_option("--log-level", log_level, "debug, info, warning or error")
            ->type_name("LEVEL");
        command
            .add_option(
                "--set", settings, "Any setting, for example limits.queue=1000; may be repeated"
            )
            ->type_name("KEY=VALUE");
        command.footer("Settings (file key, environment variable):\n" + describe_settings());
    }

    Result<Config> load() const {
        ConfigSources sources;
        if (!config_file.empty()) {
            sources.file = config_file;
        } else if (const char* from_environment = std::getenv("COMFYD_CONFIG")) {
            sources.file = from_environment;
        }
        sources.environment = [](const std::string& name) -> std::optional<std::string> {
            const char* value = std::getenv(name.c_str());
            return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
        };
        const auto flag = [&sources](const char* key, const std::string& value) {
            if (!value.empty()) {
                sources.flags.emplace_back(key, value);
            }
        };
        flag("listen", listen);
        flag("data", data);
        flag("frontend.dir", frontend);
        flag("comfyui.dir", comfyui);
        flag("ledger", ledger);
        flag("events", events);
        flag("log.level", log_level);
        if (no_engine) {
            sources.flags.emplace_back("engine.enabled", "false");
        }
        for (const std::string& worker : workers) {
            sources.flags.emplace_back("worker", worker);
        }
        for (const std::string& setting : settings) {
            const auto equals = setting.find('=');
            if (equals == std::string::npos) {
                return fail(Code::config_invalid, "--set needs KEY=VALUE, not '" + setting + "'");
            }
            sources.flags.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
        }
        return load_config(sources);
    }
};

int serve(const ServeFlags& flags) {
    auto config = flags.load();
    if (!config) {
        return complain(config.error());
    }
    if (auto checked = check_config(*config); !checked) {
        return complain(checked.error());
    }
    if (auto added = add_local_comfyui(*config); !added) {
        return complain(added.error());
    }
    log::configure(config->log_level, config->log_format);
    log::hide_foreign_text(config->log_redact_prompts);
    const StopSignals stop_signals;
    auto application = Application::start(std::move(*config));
    if (!application) {
        return complain(application.error());
    }
    std::printf("listening on %s\n", (*application)->url().c_str());
    std::fflush(stdout);
    tell_service_manager("READY=1");
    stop_signals.wait();
    tell_service_manager("STOPPING=1");
    (*application)->stop();
    return kExitOk;
}

int print_config(const ServeFlags& flags) {
    auto config = flags.load();
    if (!config) {
        return complain(config.error());
    }
    std::fputs(show_config(*config).c_str(), stdout);
    if (auto checked = check_config(*config); !checked) {
        return complain(checked.error());
    }
    return kExitOk;
}

int test_channel(const ServeFlags& flags, const NotifyTestFlags& wanted) {
    auto config = flags.load();
    if (!config) {
        return complain(config.error());
    }
    if (auto checked = check_config(*config); !checked) {
        return complain(checked.error());
    }
    return run_notify_test(*config, wanted);
}

int copy_assets(const AssetsCopyFlags& flags, const ServeFlags& settings) {
    auto config = settings.load();
    if (!config) {
        return complain(config.error());
    }
    return run_assets_copy(flags, *config);
}

// What to say when the first word is no command; empty: it is one, or there is none.
std::string unknown_command(const CLI::App& program, int argc, char** argv) {
    const std::string word = argc > 1 ? argv[1] : "";
    if (word.empty() || word.starts_with('-')) {
        return "";
    }
    constexpr std::size_t kSlipsMax = 2;
    std::string all;
    std::string nearest;
    std::size_t nearest_distance = kSlipsMax + 1;
    for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) {
        const std::size_t distance = edit_distance(word, command->get_name());
        if (distance == 0) {
            return "";
        }
        if (distance < nearest_distance) {
            nearest_distance = distance;
            nearest = command->get_name();
        }
        all += (all.empty() ? "" : ", ") + command->get_name();
    }
    std::error_code ignored;
    if (std::filesystem::exists(word, ignored)) {
        nearest = "run " + word;
    }
    return "comfyd: there is no command '" + word + "'" +
           (nearest.empty() ? "" : "; did you mean `comfyd " + nearest + "`?") +
           "\nThe commands are " + all + "; `comfyd --help` says what they do.\n";
}

}  // namespace

int run_command_line(int argc, char** argv) {
    CLI::App program(
        "comfyd turns any set of ComfyUI machines into one serverless API.\n"
        "Start it with `comfyd serve`, then run a workflow with `comfyd run workflow.json`."
    );
    program.require_subcommand(1);
    program.set_version_flag("--version", "comfyd " COMFYD_VERSION);

    ServeFlags serve_flags;
    CLI::App* serve_command = program.add_subcommand("serve", "Serve the API and run jobs");
    serve_flags.add_to(*serve_command);

    ServeFlags config_flags;
    CLI::App* config_command = program.add_subcommand(
        "config", "Print the effective configuration, secrets masked, and check it"
    );
    config_flags.add_to(*config_command);

    RunOptions run_options;
    CLI::App* run_command =
        program.add_subcommand("run", "Run a workflow on a comfyd server and fetch its outputs");
    run_command
        ->add_option(
            "file",
            run_options.file,
            "Workflow in API format or as the editor saves it, or a PNG or WebP picture that "
            "ComfyUI saved; - reads standard input. Where there is no such file: a workflow that "
            "the server has stored, NAME, NAME@VERSION or NAME@LABEL"
        )
        ->required()
        ->type_name("FILE");
    run_command
        ->add_option(
            "--param",
            run_options.parameters,
            "Set an input, for example prompt=\"a cat\", 6.text=\"a cat\" or seed=random; may be "
            "repeated"
        )
        ->type_name("NAME=VALUE");
    run_command
        ->add_option(
            "--csv",
            run_options.table,
            "Run it once for each row of this table, whose columns are parameters: CSV, JSONL or a "
            "JSON array. Begun again after an interruption, it goes on"
        )
        ->type_name("TABLE");
    run_command
        ->add_option("-o,--output", run_options.directory, "Folder for the outputs (default: out)")
        ->type_name("DIR");
    run_command
        ->add_option(
            "--url",
            run_options.url,
            "The comfyd server (default http://127.0.0.1:8080, or COMFYD_URL)"
        )
        ->type_name("URL");
    run_command->add_option("--key", run_options.key, "API key (default: COMFYD_KEY)")
        ->type_name("KEY");
    run_command->add_option("--priority", run_options.priority, "1 (last) to 10 (first); default 5")
        ->type_name("N");
    run_command->add_option("--pool", run_options.pool, "Only workers of this pool may run it")
        ->type_name("NAME");
    run_command->add_option("--gpu", run_options.gpu, "Only on a GPU of this kind (\"RTX 4090\")")
        ->type_name("KIND");
    run_command
        ->add_option("--gpu-memory", run_options.gpu_memory_gb, "Only on a GPU with so much memory")
        ->type_name("GB");
    run_command->add_option("--region", run_options.region, "Only on workers that stand there")
        ->type_name("NAME");
    run_command->footer(
        "Exit code: 0 completed, 1 failed, 2 refused, 3 cancelled or expired, 4 server not "
        "reachable."
    );

    ConvertFlags convert_flags;
    CLI::App* convert_command = program.add_subcommand(
        "convert", "Write a workflow of the editor, or that of a picture, in API format"
    );
    add_convert_flags(*convert_command, convert_flags);

    ValidateFlags validate_flags;
    CLI::App* validate_command = program.add_subcommand(
        "validate", "Say what is wrong with a workflow, and what running it would take"
    );
    add_validate_flags(*validate_command, validate_flags);

    EngineFlags engine_flags;
    CLI::App* engine_command = program.add_subcommand(
        "engine", "Serve model-free nodes as a ComfyUI server of its own, without a queue on disk"
    );
    add_engine_flags(*engine_command, engine_flags);

    WorkerFlags worker_flags;
    CLI::App* worker_command = program.add_subcommand(
        "worker", "Run a ComfyUI, watch it, and let only those use it who have its token"
    );
    add_worker_flags(*worker_command, worker_flags);
    ServeFlags notify_flags;
    NotifyTestFlags notify_test_flags;
    CLI::App* notify_command =
        program.add_subcommand("notify", "Mails and short messages that tell of jobs");
    notify_command->require_subcommand(1);
    CLI::App* notify_test_command =
        notify_command->add_subcommand("test", "Send a sample by a channel of the configuration");
    add_notify_test_flags(*notify_test_command, notify_test_flags);
    notify_flags.add_to(*notify_test_command);
    MediaFlags media_flags;
    CLI::App* media_command = program.add_subcommand("media");
    add_media_flags(*media_command, media_flags);
    PictureFlags picture_flags;
    CLI::App* picture_command = program.add_subcommand("picture");
    add_picture_flags(*picture_command, picture_flags);

    SimulateFlags simulate_flags;
    CLI::App* simulate_command = program.add_subcommand(
        "simulate", "Run a recorded or made-up day on any fleet, in virtual time"
    );
    add_simulate_flags(*simulate_command, simulate_flags);

    JobsFlags jobs_flags;
    CLI::App* jobs_command = program.add_subcommand(
        "jobs", "What was tried of a job; failed jobs: list, run again with changes, purge"
    );
    add_jobs_flags(*jobs_command, jobs_flags);

    ExplainFlags explain_flags;
    CLI::App* explain_command =
        program.add_subcommand("explain", "Say why a job waits, and what would change it");
    add_explain_flags(*explain_command, explain_flags);
    ClusterFlags cluster_flags;
    CLI::App* cluster_command =
        program.add_subcommand("cluster", "Show which nodes are one service, and who leads");
    add_cluster_flags(*cluster_command, cluster_flags);

    FleetFlags fleet_flags;
    CLI::App* fleet_command = program.add_subcommand(
        "fleet", "The machines that comfyd starts by itself: pools, sizes, events, logs"
    );
    add_fleet_flags(*fleet_command, fleet_flags);

    ModelsFlags models_flags;
    CLI::App* models_command = program.add_subcommand(
        "models", "The register of models: which there are, their versions, where they are had from"
    );
    add_models_flags(*models_command, models_flags);

    WebhooksFlags webhooks_flags;
    CLI::App* webhooks_command = program.add_subcommand(
        "webhooks", "Show endpoints and deliveries; send dead letters again or throw them away"
    );
    add_webhooks_flags(*webhooks_command, webhooks_flags);
    KeysFlags keys_flags;
    CLI::App* keys_command =
        program.add_subcommand("keys", "Make, list, rotate and revoke a server's API keys");
    add_keys_flags(*keys_command, keys_flags);
    TenantsFlags tenants_flags;
    CLI::App* tenants_command =
        program.add_subcommand("tenants", "Make tenants of a server, and say what holds for them");
    add_tenants_flags(*tenants_command, tenants_flags);
    CLI::App* assets_command = program.add_subcommand("assets", "Look after outputs and uploads");
    assets_command->require_subcommand(1);
    AssetsCopyFlags assets_copy_flags;
    ServeFlags assets_copy_config;
    CLI::App* assets_copy_command =
        assets_command->add_subcommand("copy", "Move what lies in one store into another");
    add_assets_copy_flags(*assets_copy_command, assets_copy_flags);
    assets_copy_config.add_to(*assets_copy_command);
    AssetsRetentionFlags assets_retention_flags;
    CLI::App* assets_retention_command = assets_command->add_subcommand(
        "retention", "List what a server will remove, or move to cheaper storage"
    );
    add_assets_retention_flags(*assets_retention_command, assets_retention_flags);
    BatchesFlags batches_flags;
    CLI::App* batches_command =
        program.add_subcommand("batches", "Look after runs with many sets of parameters");
    add_batches_flags(*batches_command, batches_flags);

    AuditFlags audit_flags;
    CLI::App* audit_command =
        program.add_subcommand("audit", "Check an audit log, and show what it has");
    add_audit_flags(*audit_command, audit_flags);
    SandboxFlags sandbox_flags;
    CLI::App* sandbox_command =
        program.add_subcommand("sandbox", "Say how this system confines programs, and run one so");
    add_sandbox_flags(*sandbox_command, sandbox_flags);

    LedgerCopyFlags ledger_copy_flags;
    CLI::App* ledger_command = program.add_subcommand("ledger", "Look after what is stored");
    ledger_command->require_subcommand(1);
    CLI::App* ledger_copy_command = ledger_command->add_subcommand(
        "copy", "Move everything from SQLite into an empty PostgreSQL database"
    );
    add_ledger_copy_flags(*ledger_copy_command, ledger_copy_flags);
    LedgerRestoredFlags ledger_restored_flags;
    CLI::App* ledger_restored_command = ledger_command->add_subcommand(
        "restored", "Make a database that comes from a back-up ready for its nodes"
    );
    add_ledger_restored_flags(*ledger_restored_command, ledger_restored_flags);

    CLI::App* version_command = program.add_subcommand("version", "Print the version");

    if (const std::string message = unknown_command(program, argc, argv); !message.empty()) {
        std::fputs(message.c_str(), stderr);
        return kExitUsage;
    }
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        const int code = program.exit(error);
        return code == 0 ? kExitOk : kExitUsage;
    }
    if (version_command->parsed()) {
        std::puts("comfyd " COMFYD_VERSION);
        return kExitOk;
    }
    if (config_command->parsed()) {
        return print_config(config_flags);
    }
    if (run_command->parsed()) {
        return run_workflow(run_options);
    }
    if (convert_command->parsed()) {
        return run_convert(convert_flags);
    }
    if (batches_command->parsed()) {
        return run_batches(std::move(batches_flags));
    }
    if (fleet_command->parsed()) {
        return run_fleet(std::move(fleet_flags));
    }
    if (models_command->parsed()) {
        return run_models(std::move(models_flags));
    }
    if (cluster_command->parsed()) {
        return run_cluster(std::move(cluster_flags));
    }
    if (webhooks_command->parsed()) {
        return run_webhooks(std::move(webhooks_flags));
    }
    if (keys_command->parsed()) {
        return run_keys(std::move(keys_flags));
    }
    if (tenants_command->parsed()) {
        return run_tenants(std::move(tenants_flags));
    }
    if (jobs_command->parsed()) {
        return run_jobs(std::move(jobs_flags));
    }
    if (explain_command->parsed()) {
        return run_explain(std::move(explain_flags));
    }
    if (validate_command->parsed()) {
        return run_validate(validate_flags);
    }
    if (assets_copy_command->parsed()) {
        return copy_assets(assets_copy_flags, assets_copy_config);
    }
    if (assets_retention_command->parsed()) {
        return run_assets_retention(assets_retention_flags);
    }
    if (ledger_copy_command->parsed()) {
        return run_ledger_copy(ledger_copy_flags);
    }
    if (ledger_restored_command->parsed()) {
        return run_ledger_restored(ledger_restored_flags);
    }
    if (engine_command->parsed()) {
        return run_engine(engine_flags);
    }
    if (worker_command->parsed()) {
        return run_worker(worker_flags);
    }
    if (notify_test_command->parsed()) {
        return test_channel(notify_flags, notify_test_flags);
    }
    if (audit_command->parsed()) {
        return run_audit(audit_flags);
    }
    if (sandbox_command->parsed()) {
        return run_sandbox(sandbox_flags);
    }
    if (media_command->parsed()) {
        return run_media(media_flags);
    }
    if (picture_command->parsed()) {
        return run_picture(picture_flags);
    }
    if (simulate_command->parsed()) {
        return run_simulate(std::move(simulate_flags));
    }
    return serve(serve_flags);
}

}  // namespace comfyd::app
