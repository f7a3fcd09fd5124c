#include "app/commands/models_command.hpp"

#include <cstdio>
#include <utility>

#include "app/commands/ask_server.hpp"
#include "app/commands/cli.hpp"
#include "app/commands/upload_model.hpp"
#include "comfy/members.hpp"
#include "net/http.hpp"

namespace comfyd::app {
namespace {

using comfy::integer_of;
using comfy::text_of;

constexpr const char* kModels = "/v2/models";

int complain(const std::string& message) {
    std::fprintf(stderr, "comfyd: %s\n", message.c_str());
    return kExitUsage;
}

const json::array& list_of(const json::object& from, std::string_view key) {
    static const json::array kNone;
    const json::array* found = json::find_array(from, key).value_or(nullptr);
    return found == nullptr ? kNone : *found;
}

int tell(const ModelsFlags& flags, const Asked& asked, const std::string& words) {
    if (!asked.answer) {
        return asked.exit_code;
    }
    std::fputs(flags.json ? (asked.text + "\n").c_str() : words.c_str(), stdout);
    return kExitOk;
}

int list(const ModelsFlags& flags) {
    std::string cursor;
    do {
        std::string path = kModels;
        path += cursor.empty() ? "" : "?cursor=" + net::percent_encode(cursor);
        const Asked asked = ask_server({flags.url, flags.key, std::move(path)});
        const int code = tell(flags, asked, asked.answer ? print_models(*asked.answer) : "");
        if (code != kExitOk) {
            return code;
        }
        cursor = text_of(*asked.answer, "next_cursor");
    } while (!cursor.empty());
    return kExitOk;
}

std::string version_body(const ModelsFlags& flags) {
    json::object body{{"sources", json::array(flags.sources.begin(), flags.sources.end())}};
    if (!flags.sha256.empty()) {
        body["sha256"] = flags.sha256;
    }
    if (flags.bytes > 0) {
        body["bytes"] = static_cast<std::int64_t>(flags.bytes);
    }
    if (flags.not_current) {
        body["current"] = false;
    }
    return json::serialize(body);
}

}  // namespace

std::string print_model(const json::object& model) {
    const auto current = integer_of(model, "current");
    std::string out = text_of(model, "folder") + "/" + text_of(model, "name") + "\n";
    for (const json::value& one : list_of(model, "versions")) {
        if (!one.is_object()) {
            continue;
        }
        const json::object& version = one.get_object();
        const auto number = integer_of(version, "version");
        const auto bytes = integer_of(version, "bytes");
        const std::string hash = text_of(version, "sha256");
        out += (number == current ? "* " : "  ") + std::to_string(number) + "  " +
               text_of(version, "file") +
               (bytes > 0 ? "  " + std::to_string(bytes) + " bytes" : "") +
               (hash.empty() ? "" : "  " + hash.substr(0, 12));
        for (const json::value& source : list_of(version, "sources")) {
            out += source.is_string() ? "  " + std::string(source.get_string()) : "";
        }
        out += "\n";
    }
    return out;
}

std::string print_models(const json::object& answer) {
    std::string out;
    for (const json::value& one : list_of(answer, "models")) {
        out += one.is_object() ? print_model(one.get_object()) : "";
    }
    return out.empty() ? "no models\n" : out;
}

int run_models(ModelsFlags flags) {
    if (flags.action == "list") {
        return list(flags);
    }
    const auto slash = flags.path.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == flags.path.size()) {
        return complain(
            "name the model with its folder: comfyd models " + flags.action +
            " checkpoints/sd15.safetensors"
        );
    }
    Question question{flags.url, flags.key, kModels};
    question.path += "/" + net::percent_encode(flags.path.substr(0, slash)) + "/" +
                     net::percent_encode(flags.path.substr(slash + 1));
    const bool is_gone = flags.action == "remove" && flags.version == 0;
    if (flags.action == "add") {
        if (!flags.upload.empty()) {
            const UploadedModel uploaded = upload_model(flags.url, flags.key, flags.upload);
            if (uploaded.sha256.empty()) {
                return uploaded.exit_code;
            }
            flags.sources.insert(flags.sources.begin(), "upload:" + uploaded.sha256);
        }
        if (flags.sources.empty()) {
            return complain("say where it is had from: --source https://…, or --upload FILE");
        }
        question.method = "PUT";
        question.body = version_body(flags);
    } else if (flags.action == "use") {
        if (flags.version == 0) {
            return complain("say which version: --version 2");
        }
        question.method = "PUT";
        question.path += "/current";
        question.body = json::serialize(json::object{{"version", flags.version}});
    } else if (flags.action == "rollback") {
        question.method = "POST";
        question.path += "/rollback";
    } else if (flags.action == "remove") {
        question.method = "DELETE";
        question.path += is_gone ? "" : "/versions/" + std::to_string(flags.version);
    }
    const Asked asked = ask_server(std::move(question));
    return tell(
        flags,
        asked,
        is_gone        ? "removed " + flags.path + "\n"
        : asked.answer ? print_model(*asked.answer)
                       : ""
    );
}

}  // namespace comfyd::app
