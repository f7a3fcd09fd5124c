#include "app/convert_command.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

#include <CLI/CLI.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "app/cli.hpp"
#include "app/server_address.hpp"
#include "base/time.hpp"
#include "net/client.hpp"
#include "net/io_threads.hpp"
#include "workflow/catalogue.hpp"
#include "workflow/check.hpp"
#include "workflow/convert.hpp"
#include "workflow/embedded.hpp"

namespace comfyd::app {
namespace {

constexpr std::size_t kFileBytesMax = 512 * 1024 * 1024;  // pictures hold more than the workflow

Result<std::string> read_bytes(std::istream& in, const std::string& name) {
    std::string bytes;
    std::string piece(1 << 16, '\0');
    while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
        bytes.append(piece, 0, static_cast<std::size_t>(in.gcount()));
        if (bytes.size() > kFileBytesMax) {
            return fail(Code::invalid_argument, "'" + name + "' is too large");
        }
    }
    return bytes;
}

Result<std::string> read_file(const std::string& file) {
    if (file == "-") {
        return read_bytes(std::cin, "standard input");
    }
    std::error_code error;
    std::ifstream in(file, std::ios::binary);
    if (!in || std::filesystem::is_directory(file, error)) {
        return fail(Code::invalid_argument, "cannot read '" + file + "'");
    }
    return read_bytes(in, file);
}

Task<Result<std::string>> fetch_object_info(net::Client& client, net::ClientRequest request) {
    auto response = co_await client.send(std::move(request));
    if (!response) {
        co_return fail(std::move(response.error()));
    }
    if (response->status != 200) {
        co_return fail(
            Code::connection_failed,
            "the server answered " + std::to_string(response->status) + " to GET /object_info"
        );
    }
    co_return std::move(response->body);
}

Result<std::string> object_info_of(const ConvertFlags& flags) {
    if (!flags.object_info.empty()) {
        return read_file(flags.object_info);
    }
    net::ClientRequest request;
    request.method = "GET";
    request.url = flags.url + "/object_info";
    if (!flags.key.empty()) {
        request.headers.set("Authorization", "Bearer " + flags.key);
    }
    net::IoThread thread("convert");
    net::Client client(thread.executor(), net::ClientOptions{});
    thread.start();
    auto text = boost::asio::co_spawn(
                    thread.executor(),
                    fetch_object_info(client, std::move(request)),
                    boost::asio::use_future
    )
                    .get();
    thread.stop();
    if (!text) {
        text.error().message +=
            ". The node classes are needed to convert: name a server with --url, or a file with "
            "--object-info";
    }
    return text;
}

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
        auto text = object_info_of(flags);
        if (!text) {
            return fail(std::move(text.error()));
        }
        auto object_info = json::parse(*text);
        if (!object_info) {
            return fail(
                Code::invalid_argument,
                "the node classes are no JSON: " + object_info.error().message
            );
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
    auto bytes = read_file(file);
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
