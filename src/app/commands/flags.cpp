// The flags of all commands that have a file of their own: in one, because each that knows CLI11
// takes seconds longer to compile.
#include <cstdint>

#include <CLI/CLI.hpp>

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
#include "app/commands/sandbox_command.hpp"
#include "app/commands/simulate_command.hpp"
#include "app/commands/validate_command.hpp"
#include "app/commands/webhooks_command.hpp"
#include "app/commands/worker_command.hpp"

namespace comfyd::app {

void add_batches_flags(CLI::App& command, BatchesFlags& flags) {
    command.require_subcommand(1);
    const auto add = [&command, &flags](const char* name, const char* help, bool takes_id = true) {
        CLI::App* action = command.add_subcommand(name, help);
        action->callback([&flags, name] { flags.action = name; });
        if (takes_id) {
            action->add_option("id", flags.id, "The batch")->required()->type_name("ID");
        }
        action->add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
            ->type_name("URL");
        action->add_option("--key", flags.key, "API key (default COMFYD_KEY)")->type_name("KEY");
        action->add_flag("--json", flags.json, "Print the answer as it came");
        return action;
    };
    add("list", "The newest batches", false);
    add("show", "How far a batch is, and what has failed");
    add("pause", "Start nothing more of it; what runs goes on");
    add("resume", "Go on with one that was paused");
    add("cancel", "Cancel what has not ended");
    add("retry", "Run the items that have failed again");
    add("zip", "Fetch all outputs of one that has ended")
        ->add_option("-o,--output", flags.output, "The file to write (default: batch-ID.zip)")
        ->type_name("FILE");
}

void add_cluster_flags(CLI::App& command, ClusterFlags& flags) {
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key (default COMFYD_KEY)")->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answer as it came");
}

void add_fleet_flags(CLI::App& command, FleetFlags& flags) {
    command
        .add_option(
            "action",
            flags.action,
            "show (pools and machines, the default), events (why each was started or stopped), "
            "decisions (how many machines scaled pools shall have, and why), resize (a pool), "
            "resume (a pool that was paused), remove (a machine, once its jobs "
            "have ended), logs (of a machine)"
        )
        ->check(CLI::IsMember({"show", "events", "decisions", "resize", "resume", "remove", "logs"})
        )
        ->type_name("ACTION");
    command
        .add_option(
            "what",
            flags.what,
            "A pool (events, decisions: of that one alone), or an instance (remove, logs)"
        )
        ->type_name("NAME|ID");
    command.add_option("size", flags.size, "resize: how many machines, or \"configured\"")
        ->type_name("NUMBER");
    command.add_option("--lines", flags.lines, "logs: how many of the latest")
        ->check(CLI::Range(1, 5'000))
        ->type_name("NUMBER");
    command.add_flag("--watch", flags.watch, "show: again every two seconds");
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key (default COMFYD_KEY)")->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answer as it came");
}

void add_models_flags(CLI::App& command, ModelsFlags& flags) {
    command
        .add_option(
            "action",
            flags.action,
            "list (the default), show (one), add (a model, or a version of it), use (which version "
            "its name means), rollback (to the version before), remove (a model, or a version)"
        )
        ->check(CLI::IsMember({"list", "show", "add", "use", "rollback", "remove"}))
        ->type_name("ACTION");
    command.add_option("model", flags.path, "As in checkpoints/sd15.safetensors")
        ->type_name("FOLDER/NAME");
    command
        .add_option(
            "--source",
            flags.sources,
            "add: where it is had from, https://…, hf:OWNER/REPO/PATH, civitai:VERSION or "
            "s3://BUCKET/KEY "
            "(repeatable: the first that has it)"
        )
        ->type_name("SOURCE");
    command.add_option("--upload", flags.upload, "add: a file that is brought to the server first")
        ->type_name("FILE");
    command.add_option("--sha256", flags.sha256, "add: that it must have")->type_name("HASH");
    command.add_option("--bytes", flags.bytes, "add: that it must have")
        ->check(CLI::PositiveNumber)
        ->type_name("NUMBER");
    command.add_flag("--not-current", flags.not_current, "add: its name means what it did before");
    command.add_option("--version", flags.version, "use, remove: which one")
        ->check(CLI::PositiveNumber)
        ->type_name("NUMBER");
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key (default COMFYD_KEY)")->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answer as it came");
}

void add_jobs_flags(CLI::App& command, JobsFlags& flags) {
    command
        .add_option(
            "action",
            flags.action,
            "show (one, with what was tried), failed (lists those that failed), retry (a failed "
            "one, as a new job), purge (failed ones)"
        )
        ->required()
        ->check(CLI::IsMember({"show", "failed", "retry", "purge"}))
        ->type_name("ACTION");
    command.add_option("id", flags.id, "Of a job")->type_name("ID");
    command.add_option("--cause", flags.cause, "Only those that failed by this")
        ->type_name("CAUSE");
    command
        .add_option(
            "--param", flags.parameters, "retry: set an input, for example 6.text=\"a cat\""
        )
        ->type_name("NAME=VALUE");
    command.add_option("--pool", flags.pool, "retry: only workers of this pool may run it")
        ->type_name("NAME");
    command.add_option("--timeout", flags.timeout_s, "retry: seconds that an attempt may take")
        ->check(CLI::NonNegativeNumber)
        ->type_name("SECONDS");
    command.add_flag("--all", flags.all, "purge: every failed job, or every one with the cause");
    command.add_flag("--all-tenants", flags.all_tenants, "Those of all tenants, for operators");
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key (default COMFYD_KEY)")->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answer as it came");
}

void add_webhooks_flags(CLI::App& command, WebhooksFlags& flags) {
    command
        .add_option(
            "action",
            flags.action,
            "endpoints, deliveries (lists them), show (one delivery), replay, purge (dead "
            "letters), "
            "test (an endpoint)"
        )
        ->required()
        ->check(CLI::IsMember({"endpoints", "deliveries", "show", "replay", "purge", "test"}))
        ->type_name("ACTION");
    command.add_option("id", flags.id, "Of a delivery; test: of an endpoint")->type_name("ID");
    command.add_option("--state", flags.state, "Only deliveries in this state")
        ->check(CLI::IsMember({"pending", "delivered", "dead"}))
        ->type_name("STATE");
    command
        .add_option(
            "--receiver", flags.receiver, "Only those to this endpoint; job: that came with a job"
        )
        ->type_name("ID");
    command.add_flag("--all", flags.all, "replay, purge: every dead letter");
    command.add_flag("--all-tenants", flags.all_tenants, "Those of all tenants, for operators");
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key (default COMFYD_KEY)")->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answer as it came");
}

void add_keys_flags(CLI::App& command, KeysFlags& flags) {
    command.add_option("action", flags.action, "create, list, rotate, revoke, remove")
        ->required()
        ->check(CLI::IsMember({"create", "list", "rotate", "revoke", "remove"}))
        ->type_name("ACTION");
    command.add_option("what", flags.what, "create: what the key is called; else its id")
        ->type_name("NAME|ID");
    command
        .add_option(
            "--tenant", flags.tenant, "create: whose it is (default: the name); list: only theirs"
        )
        ->type_name("NAME");
    command
        .add_option(
            "--scope",
            flags.scopes,
            "create: what it may do, such as jobs:read or assets:*; may be repeated (default: all "
            "of its tenant); admin for operators"
        )
        ->type_name("SCOPE");
    command
        .add_option(
            "--expires", flags.expires, "create: in how many days, or when (2030-01-31T12:00:00Z)"
        )
        ->type_name("DAYS|TIME");
    command
        .add_option(
            "--requests-per-minute",
            flags.requests_per_minute,
            "create: how many it may make, within what its tenant may (default: as that)"
        )
        ->type_name("NUMBER");
    command
        .add_option(
            "--old-key-hours",
            flags.old_key_hours,
            "rotate: how long the old key stays good (default 24)"
        )
        ->type_name("HOURS");
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key of an operator (default COMFYD_KEY)")
        ->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answer as it came");
}

void add_tenants_flags(CLI::App& command, TenantsFlags& flags) {
    command.add_option("action", flags.action, "create, list, show, set, remove")
        ->required()
        ->check(CLI::IsMember({"create", "list", "show", "set", "remove"}))
        ->type_name("ACTION");
    command.add_option("name", flags.name, "Of the tenant")->type_name("NAME");
    command
        .add_option(
            "members",
            flags.members,
            "create, set: what holds for it, such as tier=pro allowed_pools=a,b; null goes back to "
            "the default"
        )
        ->type_name("MEMBER=VALUE");
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key of an operator (default COMFYD_KEY)")
        ->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answer as it came");
}

void add_convert_flags(CLI::App& command, ConvertFlags& flags) {
    command
        .add_option(
            "file",
            flags.file,
            "A workflow as JSON in any form, or a PNG or WebP picture that ComfyUI saved; - reads "
            "standard input"
        )
        ->required()
        ->type_name("FILE");
    command
        .add_option(
            "--object-info",
            flags.object_info,
            "The node classes: a server's answer of /object_info"
        )
        ->type_name("FILE");
    command
        .add_option(
            "--url",
            flags.url,
            "The server that has the node classes, comfyd or ComfyUI (default "
            "http://127.0.0.1:8080, or COMFYD_URL)"
        )
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key (default: COMFYD_KEY)")->type_name("KEY");
    command.add_option("-o,--output", flags.output, "The file to write (default: standard output)")
        ->type_name("FILE");
}

void add_engine_flags(CLI::App& command, EngineFlags& flags) {
    command
        .add_option(
            "--listen",
            flags.listen,
            "Address and port, or unix:/path; port 0 takes a free one (default 127.0.0.1:8188)"
        )
        ->type_name("HOST:PORT");
    command
        .add_option(
            "--data",
            flags.data,
            "Folder of the folders input, output, temp and user (default ./comfyd-engine); temp is "
            "emptied"
        )
        ->type_name("DIR");
    command
        .add_option("--frontend", flags.frontend, "Serve the editor whose built files are there")
        ->type_name("DIR");
    command.add_option("--threads", flags.threads, "Of the engine (default: one per core)")
        ->check(CLI::Range(0U, 1024U))
        ->type_name("N");
    command
        .add_option(
            "--memory-mb",
            flags.memory_mb,
            "Most memory that results of nodes may take at once (default 4096)"
        )
        ->check(CLI::Range(std::uint64_t{64}, std::uint64_t{1} << 24))
        ->type_name("MB");
    command.add_flag(
        "--allow-remote",
        flags.allow_remote,
        "Listen beyond this machine although anybody who reaches the port may use everything"
    );
    command.add_option("--log-level", flags.log_level, "debug, info, warning (default) or error")
        ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
        ->type_name("LEVEL");
    // Ours alone.
    command.add_option("--supervisor", flags.supervisor)->group("");
    command.add_option("--sandbox", flags.sandbox)->group("");
    command.add_flag("--sandbox-required", flags.sandbox_required)->group("");
    command.footer(
        "Clients of ComfyUI work with it unchanged, `comfyd serve --worker` among them. Queue and "
        "history are in memory, as ComfyUI's are."
    );
}

void add_worker_flags(CLI::App& command, WorkerFlags& flags) {
    command
        .add_option(
            "--listen",
            flags.listen,
            "Address and port, or unix:/path (default SERVER_HOST and SERVER_PORT, 0.0.0.0:18188)"
        )
        ->type_name("HOST:PORT");
    command
        .add_option(
            "--folder",
            flags.folder,
            "For all of this worker: ComfyUI's output, temp, input and user folders, logs "
            "(default ./comfyd-worker)"
        )
        ->type_name("DIR");
    command
        .add_option(
            "--comfyui",
            flags.comfyui,
            "Folder of the ComfyUI to run; without it COMFYUI_SERVER_ADDRESS names one that "
            "somebody else runs (default 127.0.0.1:8188)"
        )
        ->type_name("DIR");
    command.add_option("--python", flags.python, "Program that runs it (default python3)")
        ->type_name("PROGRAM");
    command
        .add_option(
            "--comfyui-port",
            flags.comfyui_port,
            "Of ComfyUI, on loopback (default: one that is free); another one where it is taken"
        )
        ->type_name("N");
    command.add_option("--node-pack", flags.node_pack, "A pack of nodes to install for it")
        ->type_name("DIR");
    command
        .add_option(
            "--sandbox",
            flags.sandbox,
            "How ComfyUI is confined: minimal (default), basic or strict"
        )
        ->check(CLI::IsMember({"minimal", "basic", "strict"}))
        ->type_name("LEVEL");
    command.add_option("--read", flags.readable, "ComfyUI may read this; may be repeated")
        ->type_name("PATH")
        ->allow_extra_args(false);
    command.add_option("--write", flags.writable, "ComfyUI may write in this; may be repeated")
        ->type_name("DIR")
        ->allow_extra_args(false);
    command.add_option("--env", flags.environment, "ComfyUI gets this variable, too")
        ->type_name("NAME")
        ->allow_extra_args(false);
    command.add_option("--requests-max", flags.requests_max, "Requests at once (default 128)")
        ->check(CLI::Range(1, 4096))
        ->type_name("N");
    command
        .add_option(
            "--grace-s",
            flags.grace_s,
            "From SIGTERM to the end, for prompts that run and their results (default 30)"
        )
        ->check(CLI::Range(0, 86'400))
        ->type_name("N");
    command
        .add_option(
            "--hang-s", flags.hang_s, "Without an answer for so long ComfyUI is killed (default 60)"
        )
        ->check(CLI::Range(2, 86'400))
        ->type_name("N");
    command
        .add_option(
            "--lonely-s",
            flags.lonely_s,
            "Without a gateway and with nothing to do for so long it ends (default 900)"
        )
        ->check(CLI::Range(1, 31'536'000))
        ->type_name("N");
    command.add_option("--ca-file", flags.ca_file, "Whom to trust as the gateway, too (PEM)")
        ->type_name("FILE");
    command.add_option("arguments", flags.arguments, "Further arguments of ComfyUI, after --")
        ->type_name("ARGUMENT…");
    command.footer(
        "Environment:\n"
        "  COMFYD_WORKER_TOKEN     who may use it (Authorization: Bearer), and what it shows to "
        "the "
        "gateway\n"
        "  COMFYD_GATEWAY          URL of comfyd, which is then called: no port needs to be open "
        "here; of several nodes, separated by commas\n"
        "  COMFYD_INSTANCE         its name there\n"
        "  SERVER_HOST SERVER_PORT COMFYUI_SERVER_ADDRESS\n"
        "  DEFAULT_TIMEOUT         seconds that /prompt_sync waits (300)\n"
        "  COMFYD_RECYCLE_JOBS     ComfyUI is made anew after so many, while idle\n"
        "  COMFYD_RECYCLE_RAM_MB   and when it holds more memory than that\n"
        "  COMFYD_MODELS           models that must be there before ComfyUI starts: a JSON list, "
        "or "
        "a file "
        "with one (docs/models.md)\n"
        "  LOG_LEVEL               debug, info, warning, error\n"
        "  LOG_OUTPUT              console, file (worker.log), both\n"
        "docs/worker.md has more."
    );
}

void add_explain_flags(CLI::App& command, ExplainFlags& flags) {
    command.add_option("id", flags.id, "The job")->required()->type_name("ID");
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key (default COMFYD_KEY)")->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answer as it came");
}

void add_assets_copy_flags(CLI::App& command, AssetsCopyFlags& flags) {
    command.add_option("--from", flags.from, "Name of the store that is emptied")
        ->required()
        ->type_name("STORE");
    command.add_option("--to", flags.to, "Name of the store that gets all")
        ->required()
        ->type_name("STORE");
}

void add_assets_retention_flags(CLI::App& command, AssetsRetentionFlags& flags) {
    command.add_flag("--dry-run", flags.dry_run, "List; the server itself does it");
    command.add_option("--by", flags.by, "What will have been done by then (RFC 3339)")
        ->type_name("TIME");
    command.add_option("--url", flags.url, "The server (default COMFYD_URL, or this machine)")
        ->type_name("URL");
    command.add_option("--key", flags.key, "An operator's API key (default COMFYD_KEY)")
        ->type_name("KEY");
    command.add_flag("--json", flags.json, "Print the answers as they came");
}

void add_ledger_copy_flags(CLI::App& command, LedgerCopyFlags& flags) {
    command.add_option("--from", flags.from, "sqlite:PATH of the database file")->required();
    command.add_option("--to", flags.to, "postgres://… of an empty database")->required();
    command
        .add_option(
            "--secret",
            flags.secret,
            "The cluster.secret of the nodes that will use it, which secrets are sealed with"
        )
        ->envname("COMFYD_CLUSTER_SECRET")
        ->required();
}

void add_ledger_restored_flags(CLI::App& command, LedgerRestoredFlags& flags) {
    command.add_option("--ledger", flags.ledger, "postgres://… of the database")
        ->envname("COMFYD_LEDGER")
        ->required();
}

void add_notify_test_flags(CLI::App& command, NotifyTestFlags& flags) {
    command.add_option("--channel", flags.channel, "A name of notify.channels")
        ->type_name("NAME")
        ->required();
    command.add_option("--to", flags.to, "An address or a number (default: whom the rules name)")
        ->type_name("RECIPIENT");
}

void add_audit_flags(CLI::App& command, AuditFlags& flags) {
    command.require_subcommand(1);
    const auto add = [&command, &flags](const char* name, const char* help) {
        CLI::App* action = command.add_subcommand(name, help);
        action->callback([&flags, name] { flags.action = name; });
        action->add_option("file", flags.files, "Files in their order, or the folder of the log")
            ->required()
            ->type_name("FILE…");
        return action;
    };
    CLI::App* verify =
        add("verify", "Say whether a log is whole, and where it was changed; exit code 1: it was");
    verify
        ->add_option(
            "--public-key", flags.public_key, "Whose checkpoints count (GET /admin/v1/audit)"
        )
        ->type_name("HEX");
    verify->add_option("--checkpoints", flags.checkpoints, "Checkpoints that were kept elsewhere")
        ->type_name("FILE");
    CLI::App* show = add("show", "Print the lines of a log");
    show->add_option("--tenant", flags.tenant, "Of this tenant")->type_name("NAME");
    show->add_option("--action", flags.named, "That begin so: key, login.refused")
        ->type_name("ACTION");
    show->add_option("--since", flags.since, "From then on (2030-01-31T12:00)")->type_name("TIME");
}

void add_sandbox_flags(CLI::App& command, SandboxFlags& flags) {
    command.require_subcommand(1);
    const auto add = [&command, &flags](const char* name, const char* help) {
        CLI::App* action = command.add_subcommand(name, help);
        action->callback([&flags, name] { flags.action = name; });
        return action;
    };
    const auto add_needs = [&flags](CLI::App& action) {
        SandboxNeeds& needs = flags.order.needs;
        action.add_option("--level", flags.level, "minimal, basic or strict (default)")
            ->check(CLI::IsMember({"minimal", "basic", "strict"}))
            ->type_name("LEVEL");
        action
            .add_option(
                "--network",
                flags.network,
                "none (default), serve (answers connections and makes none) or all"
            )
            ->check(CLI::IsMember({"none", "serve", "all"}))
            ->type_name("NETWORK");
        action.add_option("--read", flags.readable, "It may read this; may be repeated")
            ->type_name("PATH")
            ->allow_extra_args(false);
        action.add_option("--write", flags.writable, "It may write in this; may be repeated")
            ->type_name("DIR")
            ->allow_extra_args(false);
        action.add_flag("--gpu", needs.gpu, "It may use the GPUs");
        action.add_option("--cpu-seconds", needs.cpu_seconds_max, "Of computing; 0: no limit")
            ->type_name("N");
        action.add_option("--open-files", needs.open_files_max, "At a time")->type_name("N");
        action
            .add_option("--processes", needs.processes_max, "With threads, at a time; not of root")
            ->type_name("N");
        action.add_option("command", flags.order.command, "The program and its words, after --")
            ->required()
            ->type_name("COMMAND…");
    };
    add("check", "Say what this system can do");
    CLI::App* run = add("run", "Run a program as comfyd would run one");
    add_needs(*run);
    run->add_option("--memory-mb", flags.memory_mb, "Memory of its own; 0: no limit")
        ->type_name("MB");
    run->add_option("--env", flags.environment, "It gets this, too; may be repeated")
        ->type_name("NAME[=VALUE]")
        ->allow_extra_args(false);
    CLI::App* enter = add("enter", "");
    enter->group("");  // ours alone
    add_needs(*enter);
    enter->add_option("--memory-bytes", flags.order.needs.memory_bytes_max);
    enter->add_option("--parent", flags.order.parent)->required();
}

void add_media_flags(CLI::App& command, MediaFlags& flags) {
    command.group("");  // ours alone
    command.add_option("--supervisor", flags.supervisor)->required();
    command.add_option("--memory-mb", flags.memory_mb)->required();
    command.add_option("--time-ms", flags.time_ms)->required();
}

void add_picture_flags(CLI::App& command, PictureFlags& flags) {
    command.group("");  // ours alone
    command.add_option("--supervisor", flags.supervisor)->required();
    command.add_option("--channel", flags.channel);
    command.add_option("--format", flags.format);
    command.add_option("--quality", flags.quality);
    command.add_option("--longest-side", flags.longest_side);
    command.add_option("--mask-at", flags.mask_at);
}

namespace {

void add_source_flags(CLI::App& command, SimulateFlags& flags) {
    command
        .add_option(
            "--trace", flags.trace, "Jobs from a trace (JSON lines); - reads standard input"
        )
        ->type_name("FILE");
    command
        .add_option(
            "--record,--from-ledger",
            flags.record,
            "Jobs that the server with this data folder was asked for; it may be running"
        )
        ->type_name("DIR");
    command.add_option("--hours", flags.hours, "How far back (default 24)")->type_name("N");
    command
        .add_option("--recorded-gpu", flags.recorded_gpu, "What its workers were (default L40S)")
        ->type_name("TYPE");
    command.add_option("-o,--output", flags.output, "Write the trace to a file")->type_name("FILE");
    command.add_flag("--synthetic", flags.synthetic, "Jobs that are made up, by the flags below");
    simulate::SyntheticOptions& made = flags.made;
    command.add_option("--jobs", made.jobs, "How many (default 10000)");
    command.add_option("--arrivals", flags.arrivals, "poisson (default), bursty or at-once");
    command.add_option("--rate", made.rate, "Jobs a second (default 1)");
    command.add_option("--burst", made.burst, "Jobs in a burst (default 20)");
    command.add_option("--models", made.models, "Checkpoints (default 20)");
    command.add_option("--zipf", made.zipf, "Exponent of how often each is used (default 1)");
    command.add_option("--model-gb", made.model_gb, "Size of each (default 6)");
    command.add_option("--run", made.seconds, "Seconds of a run on an L40S (default 2)");
    command.add_option("--noise", made.noise, "How much runs of one kind differ (default 0.1)");
    command.add_option("--sizes", made.sizes, "Sizes of pictures (default 3)");
    command.add_option("--tenants", made.tenants, "Tenants, the first the largest (default 5)");
    command.add_option("--high", made.high, "Part of jobs with priority 8-10 (default 0.1)");
    command.add_option("--low", made.low, "Part with priority 1-3 (default 0.2)");
    command.add_option("--batch", made.batch, "Part that is best effort (default 0)");
    command.add_option(
        "--repeats", made.repeats, "Part that does what a recent one did (default 0)"
    );
    command.add_option(
        "--kept-part",
        made.kept_part,
        "Part of a run that is saved where the latest was of the same kind (default 0)"
    );
    command.add_option("--seed", made.seed, "Of everything that is left to chance (default 1)");
}

}  // namespace

void add_elastic_flags(CLI::App& command, ElasticFlags& flags) {
    command.add_flag(
        "--autoscale",
        flags.is_wanted,
        "Machines that are started and stopped by what waits, beside fixed fleets and the rules of "
        "others; without jobs that are told, over made-up days"
    );
    command.add_option("--days", flags.days, "Of the made-up jobs (default 1)");
    command.add_option("--min", flags.min, "Machines at least (default 0)");
    command.add_option("--max", flags.max, "Machines at most (default 60)");
    command.add_option("--spare", flags.spare, "Idle ones beside those that work (default 0)");
    command.add_option(
        "--idle-timeout", flags.idle_timeout_s, "Seconds that a machine idles (default 300)"
    );
    command.add_option("--start-seconds", flags.start_s, "How long a start takes (default 90)");
    command.add_option(
        "--spot-hours",
        flags.spot_hours,
        "Mean time until a machine is taken back, 0: never (made-up days: 4, else 0)"
    );
    command.add_option(
        "--stock-outs",
        flags.stock_outs,
        "Times a day at which no machine is to be had for 5 to 20 minutes (made-up days: 3, else 0)"
    );
    command.add_option(
        "--usd-per-hour", flags.usd_per_hour, "Of a machine (default: of the first GPU of --fleet)"
    );
}

void add_simulate_flags(CLI::App& command, SimulateFlags& flags) {
    add_source_flags(command, flags);
    add_elastic_flags(command, flags.elastic);
    command.add_option("--fleet", flags.fleet, "The workers, as in 8xL40S,2xH200 (default 8xL40S)");
    command.add_option("--add", flags.add, "And the same again with these workers more");
    command.add_option("--gpus", flags.gpus, "Types of GPU (JSON): what is known of them, changed")
        ->type_name("FILE");
    command.add_option(
        "--policy",
        flags.policies,
        "finish-time, score, fifo, pressure, no-results; several with commas"
    );
    command.add_flag(
        "--prewarm", flags.prewarm, "Each policy once more: idle workers load models ahead of jobs"
    );
    command.add_option("--load-mbps", flags.load_mb_per_s, "MB/s at which every GPU loads models");
    command.add_option(
        "--model-memory", flags.model_memory_gb, "GB for models beside the latest, of every GPU"
    );
    command.add_option(
        "--results-kept",
        flags.settings.results_kept,
        "Latest prompts whose results a worker has (default 1)"
    );
    command.add_option("--failures", flags.settings.failure_rate, "Part of runs that fail");
    command.add_option(
        "--outage-hours", flags.settings.outage_hours, "Mean time to an outage of a worker"
    );
    command.add_option(
        "--repair-seconds", flags.settings.repair_seconds, "How long an outage takes (default 300)"
    );
    command.add_option("--merge", flags.settings.merge_max, "Jobs in one merged run (default 1)");
    command.add_option(
        "--merge-cost",
        flags.settings.merge_cost,
        "What each further job of a merged run takes, against the first (default 0.3)"
    );
    command.add_option("--html", flags.html, "Write table and plots as a page")->type_name("FILE");
    command.add_option("--svg", flags.svg, "Write the plots as a picture")->type_name("FILE");
    command.footer(
        "Example: comfyd simulate --record ./comfyd-data --fleet 8xL40S --add 3xL40S\n"
        "Exit code: 0 done, 2 bad flag or trace, 4 data folder not readable."
    );
}

void add_validate_flags(CLI::App& command, ValidateFlags& flags) {
    command
        .add_option(
            "file",
            flags.file,
            "Workflow in API format or as the editor saves it, or a PNG or WebP picture that "
            "ComfyUI saved; - reads standard input"
        )
        ->required()
        ->type_name("FILE");
    command
        .add_option(
            "--object-info",
            flags.object_info,
            "The node classes: a server's answer of /object_info"
        )
        ->type_name("FILE");
    command
        .add_option("--url", flags.url, "The server that has the node classes, comfyd or ComfyUI")
        ->type_name("URL");
    command.add_option("--key", flags.key, "API key (default: COMFYD_KEY)")->type_name("KEY");
    command.add_option("--config", flags.config, "Configuration file (YAML), for what is allowed")
        ->type_name("FILE");
    command
        .add_option(
            "--param",
            flags.parameters,
            "Set an input first, for example prompt=\"a cat\"; may be repeated"
        )
        ->type_name("NAME=VALUE");
    command.add_flag("--plan", flags.plan, "Also say what running it would take");
    command.add_flag("--fix", flags.fix, "Put right what is plainly a slip, and say what");
    command.add_flag("--json", flags.json, "Print JSON, as POST /v2/workflows/validate answers");
    command.footer("Exit code: 0 valid, 2 not valid or not readable, 4 server not reachable.");
}

}  // namespace comfyd::app
