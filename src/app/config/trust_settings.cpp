// The settings of what is told of requests, and of how children are confined.
#include "app/config/setting_kinds.hpp"

namespace comfyd::app {

std::vector<Setting> trust_settings() {
    return {
        flag(
            "log.redact_prompts",
            "Log of messages that may quote a prompt only how long they were.",
            &Config::log_redact_prompts
        ),
        text(
            "audit.folder",
            "Folder of the audit log, of this process alone; empty: there is none.",
            &Config::audit_folder
        ),
        choice<audit::Extent>(
            "audit.events",
            "What is noted: refused credentials and administration (security), whatever changes "
            "something, or all that is asked for.",
            &Config::audit_extent,
            {{"security", audit::Extent::security},
             {"changes", audit::Extent::changes},
             {"all", audit::Extent::all}}
        ),
        number(
            "audit.file_mb",
            "Size of a file of the audit log, in MB; then another one follows.",
            &Config::audit_file_mb,
            1,
            1 << 16
        ),
        number(
            "audit.files",
            "Files of the audit log that are kept; the oldest goes.",
            &Config::audit_files,
            2,
            100'000
        ),
        number(
            "audit.checkpoint_s",
            "Seconds between signed checkpoints of the audit log.",
            &Config::audit_checkpoint_s,
            1,
            86'400
        ),
        flag(
            "audit.cut_addresses",
            "Note of client addresses the /24 alone, of IPv6 the /48.",
            &Config::audit_cut_addresses
        ),
        address(
            "audit.receiver",
            "URL to which checkpoints are sent, on a machine that this one cannot change; empty: "
            "none.",
            &Config::audit_receiver
        ),
        secret(
            "audit.receiver_token",
            "What is shown there, as Authorization: Bearer.",
            &Config::audit_receiver_token
        ),
        text(
            "audit.receiver_ca_file",
            "PEM file with further certificate authorities for the receiver.",
            &Config::audit_receiver_ca_file
        ),
        choice<SandboxLevel>(
            "sandbox.level",
            "How child processes are confined: minimal (limits), basic (Landlock and seccomp) or "
            "strict (bubblewrap, too).",
            &Config::sandbox_level,
            {{"minimal", SandboxLevel::minimal},
             {"basic", SandboxLevel::basic},
             {"strict", SandboxLevel::strict}}
        ),
        flag(
            "sandbox.required",
            "Do not start where the system cannot confine them so.",
            &Config::sandbox_required
        ),
    };
}

}  // namespace comfyd::app
