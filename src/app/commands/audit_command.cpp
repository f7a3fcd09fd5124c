#include "app/commands/audit_command.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "app/commands/cli.hpp"
#include "audit/files.hpp"
#include "audit/verify.hpp"

namespace comfyd::app {
namespace {

namespace fs = std::filesystem;

// Folders stand for the files in them.
std::vector<fs::path> files_of(const AuditFlags& flags) {
    std::vector<fs::path> files;
    for (const std::string& name : flags.files) {
        std::error_code error;
        if (fs::is_directory(name, error)) {
            const auto within = audit::files_in(name);
            files.insert(files.end(), within.begin(), within.end());
        } else {
            files.emplace_back(name);
        }
    }
    return files;
}

std::string summary(const audit::Verdict& verdict) {
    std::string text =
        std::to_string(verdict.lines) + " lines, " + std::to_string(verdict.first_seq) + " to " +
        std::to_string(verdict.last_seq) + ", " + verdict.first_time + " to " + verdict.last_time +
        "\n" + std::to_string(verdict.checkpoints) + " checkpoints, the last at line " +
        std::to_string(verdict.sealed_seq) + "\n";
    for (const std::string& key : verdict.keys) {
        text += "signed with " + key + "\n";
    }
    if (verdict.kept_elsewhere > 0) {
        text += std::to_string(verdict.kept_elsewhere) + " checkpoints of elsewhere compared\n";
    }
    return text;
}

int check(const AuditFlags& flags) {
    const auto files = files_of(flags);
    auto verdict = audit::verify({files, flags.public_key, flags.checkpoints});
    if (!verdict) {
        std::fprintf(stderr, "comfyd: %s\n", verdict.error().message.c_str());
        return kExitUnavailable;
    }
    if (verdict->lines == 0) {
        std::fputs("comfyd: there is no audit log\n", stderr);
        return kExitUnavailable;
    }
    std::fputs(summary(*verdict).c_str(), stdout);
    for (const std::string& remark : verdict->remarks) {
        std::printf("note: %s\n", remark.c_str());
    }
    for (const std::string& finding : verdict->findings) {
        std::printf("WRONG: %s\n", finding.c_str());
    }
    if (verdict->findings_count > verdict->findings.size()) {
        std::printf(
            "WRONG: %llu more\n",
            static_cast<unsigned long long>(verdict->findings_count - verdict->findings.size())
        );
    }
    std::puts(verdict->findings_count == 0 ? "the log is whole" : "the log was tampered with");
    return verdict->findings_count == 0 ? kExitOk : kExitFailed;
}

bool is_wanted(const audit::Line& line, const AuditFlags& flags) {
    return (flags.tenant.empty() || audit::text_of(line, "tenant") == flags.tenant) &&
           audit::text_of(line, "action").starts_with(flags.named) &&
           audit::text_of(line, "time") >= flags.since;
}

int show(const AuditFlags& flags) {
    for (const fs::path& file : files_of(flags)) {
        std::ifstream in(file);
        for (std::string text; std::getline(in, text);) {
            const auto line = audit::read_line(text);
            if (line && is_wanted(*line, flags)) {
                std::puts(text.c_str());
            }
        }
    }
    return kExitOk;
}

}  // namespace

int run_audit(const AuditFlags& flags) {
    return flags.action == "verify" ? check(flags) : show(flags);
}

}  // namespace comfyd::app
