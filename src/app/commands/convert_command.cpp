#include "app/commands/convert_command.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "app/commands/cli.hpp"
#include "app/commands/object_info.hpp"
#include "app/commands/read_file.hpp"
#include "app/commands/server_address.hpp"
#include "base/time.hpp"
#include "workflow/catalogue/catalogue.hpp"
#include "workflow/convert/convert.hpp"
#include "workflow/files/embedded.hpp"
#include "workflow/rules/check.hpp"

namespace comfyd::app {
namespace {

// One node a line.
std::string print(const json::object& prompt) {
    std::string text = "{";
    for (const auto& node : prompt) {
        text += text.size() == 1 ? "\n  " : ",\n  ";
        text += json::serialize(json::value(node.key())) + ": " + json::serialize(node.value());
    }
    return text + "\n}\n";
}

// Under its name only when it is whole.
Result<> write_file(const std::string& file, const std::string& text) {
    const std::string part = file + ".part";
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    std::error_code error;
    if (out) {
        std::filesystem::rename(part, file, error);
    }
    if (!out || error) {
        std::error_code ignored;
        std::filesystem::remove(part, ignored);
        return fail(Code::invalid_argument, "cannot write '" + file + "'");
    }
    return {};
}

Result<> convert(const ConvertFlags& flags) {
    auto workflow = load_workflow_file(flags.file);
    if (!workflow) {
        return fail(std::move(workflow.error()));
    }
    if (workflow::is_ui_format(*workflow)) {
        auto object_info = load_object_info({flags.object_info, flags.url, flags.key});
        if (!object_info) {
            return fail(std::move(object_info.error()));
        }
        workflow = to_api_format(std::move(*workflow), *object_info);
        if (!workflow) {
            return fail(std::move(workflow.error()));
        }
    }
    const std::string text = print(*workflow);
    if (!flags.output.empty()) {
        return write_file(flags.output, text);
    }
    std::fputs(text.c_str(), stdout);
    return {};
}

}  // namespace

Result<json::object> load_workflow_file(const std::string& file) {
    auto bytes = read_given_file(file);
    if (!bytes) {
        return fail(std::move(bytes.error()));
    }
    auto workflow = workflow::read_workflow_file(*bytes);
    if (!workflow) {
        return fail(Code::invalid_argument, file + ": " + workflow.error().message);
    }
    return workflow;
}

Result<json::object> to_api_format(json::object workflow, const json::value& object_info) {
    if (!workflow::is_ui_format(workflow)) {
        return workflow;
    }
    auto classes = workflow::NodeClasses::from_object_info(object_info);
    if (!classes) {
        return fail(std::move(classes.error()));
    }
    const workflow::Catalogue catalogue({{"server", std::move(*classes)}});
    workflow::ConvertOptions options;
    options.now = SystemClock().now();
    return workflow::convert_ui(workflow, catalogue, options);
}

int run_convert(ConvertFlags flags) {
    complete_address(flags.url, flags.key);
    auto done = convert(flags);
    if (done) {
        return kExitOk;
    }
    std::fprintf(stderr, "comfyd: %s\n", done.error().message.c_str());
    if (const json::value* findings = json::find(done.error().details, "findings");
        findings != nullptr && findings->is_array() && findings->get_array().size() > 1) {
        for (const json::value& finding : findings->get_array()) {
            std::fprintf(stderr, "  %s\n", finding.at("message").as_string().c_str());
        }
    }
    const bool unreachable =
        done.error().code == Code::connection_failed || done.error().code == Code::request_timeout;
    return unreachable ? kExitUnavailable : kExitUsage;
}

}  // namespace comfyd::app
