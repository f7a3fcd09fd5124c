#include "app/audit_log.hpp"

#include <unistd.h>

#include <filesystem>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/data_folder.hpp"

namespace comfyd::app {
namespace {

std::string node_name(const Config& config) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    return config.cluster_node.empty() ? host : config.cluster_node;
}

audit::JournalOptions journal_options(const Config& config, audit::Courier* courier) {
    audit::JournalOptions options;
    options.folder = config.audit_folder;
    options.node = node_name(config);
    options.files = {
        static_cast<std::uint64_t>(config.audit_file_mb) << 20,
        static_cast<std::size_t>(config.audit_files)
    };
    options.checkpoint_every = std::chrono::seconds(config.audit_checkpoint_s);
    options.cuts_addresses = config.audit_cut_addresses;
    if (courier != nullptr) {
        options.deliver = [courier](const std::string& line) { courier->deliver(line); };
    }
    return options;
}

}  // namespace

AuditLog::AuditLog(const Config& config, Executor executor, Clock& clock)
    : executor_(executor), clock_(clock), folder_(config.audit_folder) {
    if (!config.audit_receiver.empty()) {
        audit::CourierOptions options;
        options.url = config.audit_receiver;
        options.token = config.audit_receiver_token;
        options.ca_file = config.audit_receiver_ca_file;
        courier_ = std::make_unique<audit::Courier>(executor, std::move(options));
    }
}

Result<std::unique_ptr<AuditLog>> AuditLog::open(
    const Config& config, Executor executor, Clock& clock
) {
    if (config.audit_folder.empty()) {
        return nullptr;
    }
    // A node's own, also among several: whoever has one of them cannot sign for another.
    auto seed = load_key(std::filesystem::path(config.data) / "audit.key");
    if (!seed) {
        return fail(std::move(seed.error()));
    }
    auto signer = audit::Signer::make(std::move(*seed));
    if (!signer) {
        return fail(std::move(signer.error()));
    }
    std::unique_ptr<AuditLog> made(new AuditLog(config, executor, clock));
    auto journal = audit::Journal::open(
        journal_options(config, made->courier_.get()), std::move(*signer), clock
    );
    if (!journal) {
        return fail(std::move(journal.error()));
    }
    made->journal_ = std::move(*journal);
    return made;
}

void AuditLog::start() {
    if (courier_) {
        courier_->start();
    }
}

void AuditLog::stop() {
    audit::Event event;
    event.at = clock_.now();
    event.action = "comfyd.stop";
    journal_->record(std::move(event));
    journal_->stop();
    if (courier_) {
        boost::asio::co_spawn(executor_, courier_->stop(), boost::asio::use_future).get();
    }
}

void AuditLog::collect(observe::Metrics::Gauges& gauges) const {
    const auto set = [&gauges](const char* name, const char* help, std::uint64_t value) {
        gauges.set(name, help, {}, static_cast<double>(value));
    };
    const audit::JournalCounts counts = journal_->counts();
    set("comfyd_audit_lines", "Lines written to the audit log, since start.", counts.lines);
    set("comfyd_audit_lost", "Events that the audit log could not take, since start.", counts.lost);
    if (courier_) {
        const audit::Courier::Counts sent = courier_->counts();
        set("comfyd_audit_checkpoints_sent", "Checkpoints that the receiver took.", sent.delivered);
        set("comfyd_audit_checkpoints_failed", "Attempts to send one that failed.", sent.failed);
        set("comfyd_audit_checkpoints_dropped", "Checkpoints that it never got.", sent.dropped);
        set("comfyd_audit_checkpoints_waiting", "Checkpoints that it is to get.", sent.waiting);
    }
}

json::object AuditLog::describe() const {
    const audit::JournalCounts counts = journal_->counts();
    return {
        {"enabled", true},
        {"folder", folder_},
        {"public_key", journal_->public_key()},
        {"lines", counts.lines},
        {"lost", counts.lost},
        {"sent", courier_ ? json::value(courier_->counts().delivered) : json::value(nullptr)},
    };
}

}  // namespace comfyd::app
