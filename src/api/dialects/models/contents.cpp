// Files of models: operators upload them in parts, agents with a ticket have them from here.
#include <charconv>
#include <utility>

#include "api/dialects/fleet/fleet_openapi.hpp"
#include "api/dialects/models/models.hpp"
#include "models/source.hpp"
#include "models/wish.hpp"
#include "net/static_files.hpp"

namespace comfyd::api {
namespace {

constexpr std::size_t kPieceBytes = 1024 * 1024;
constexpr std::uint64_t kModelBytesMax = std::uint64_t{1} << 40;

json::object encode(const std::string& sha256, const models::Uploads::State& state) {
    return {
        {"sha256", sha256},
        {"state", state.is_whole ? "ready" : "partial"},
        {"bytes", state.bytes},
    };
}

Task<> refuse(Call& call, Error error) {
    co_await send(call, encode_error(error));
}

std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = read.ec == std::errc() && read.ptr == text.data() + text.size();
    return is_number ? std::optional(number) : std::nullopt;
}

Error wrong(const std::string& why) {
    return Error(Code::invalid_argument, why);
}

// All of it ("Content-Length: 10"), or "Content-Range: bytes 0-9/100".
Result<models::Uploads::Part> read_part(const Call& call) {
    models::Uploads::Part part;
    part.sha256 = call.path_parameters.at(0);
    if (!models::is_sha256(part.sha256)) {
        return fail(wrong("a file is named by its SHA-256: 64 hexadecimal digits, in small letters")
        );
    }
    const std::string_view format = call.query_value("format");
    if (!format.empty() && format != "safetensors" && format != "other") {
        return fail(wrong("'format' is safetensors or other"));
    }
    part.is_safetensors = format != "other";
    const auto length = number_in(call.request.headers.get("Content-Length"));
    if (!length) {
        return fail(wrong("the length of what is sent must be told: Content-Length"));
    }
    part.total = *length;
    if (std::string_view range = call.request.headers.get("Content-Range"); !range.empty()) {
        constexpr std::string_view kBytes = "bytes ";
        const auto dash = range.find('-');
        const auto slash = range.find('/');
        const bool is_range = range.starts_with(kBytes) && dash != std::string_view::npos &&
                              slash != std::string_view::npos && dash < slash;
        const auto first =
            is_range ? number_in(range.substr(kBytes.size(), dash - kBytes.size())) : std::nullopt;
        const auto last =
            is_range ? number_in(range.substr(dash + 1, slash - dash - 1)) : std::nullopt;
        const auto total = is_range ? number_in(range.substr(slash + 1)) : std::nullopt;
        const bool is_good = first && last && total && *first <= *last && *last < *total &&
                             *last - *first + 1 == *length;
        if (!is_good) {
            return fail(wrong(
                "'Content-Range' looks like 'bytes 0-9/100', and what is sent is as long as it says"
            ));
        }
        part.first = *first;
        part.total = *total;
    }
    if (part.total == 0 || part.total > kModelBytesMax) {
        return fail(wrong("a model has some bytes, and at most a tebibyte"));
    }
    return part;
}

Task<> put(Call& call, const ModelServices& services) {
    auto part = read_part(call);
    if (!part) {
        co_await refuse(call, std::move(part.error()));
        co_return;
    }
    auto there = co_await services.uploads.find(part->sha256);
    if (there && *there && (*there)->is_whole) {
        co_await send(call, json_response(200, encode(part->sha256, **there)));
        co_return;
    }
    const std::string sha256 = part->sha256;
    auto writer = co_await services.uploads.begin(std::move(*part));
    if (!writer) {
        co_await refuse(call, std::move(writer.error()));
        co_return;
    }
    std::string piece;
    bool is_end = false;
    while (!is_end) {
        std::string read(kPieceBytes, '\0');
        auto count = co_await call.exchange.read_some(read.data(), read.size());
        if (!count) {
            // What has come stays: the next part goes on from there.
            if (!piece.empty()) {
                auto kept = co_await services.uploads.append(*writer, std::move(piece));
                static_cast<void>(kept);
            }
            co_await refuse(call, std::move(count.error()));
            co_return;
        }
        is_end = *count == 0;
        read.resize(*count);
        piece += read;
        if (piece.size() >= kPieceBytes || (is_end && !piece.empty())) {
            auto written =
                co_await services.uploads.append(*writer, std::exchange(piece, std::string()));
            if (!written) {
                co_await refuse(call, std::move(written.error()));
                co_return;
            }
        }
    }
    auto facts = co_await services.uploads.end(*writer);
    if (!facts) {
        co_await refuse(call, std::move(facts.error()));
        co_return;
    }
    if (*facts) {
        services.book.learn(**facts);
        call.has_made(sha256);
        json::object shown = (*facts)->to_json();
        shown["sha256"] = sha256;
        shown["state"] = "ready";
        co_await send(call, json_response(201, shown));
        co_return;
    }
    auto now = co_await services.uploads.find(sha256);
    const bool is_there = now && *now;
    co_await send(
        call, json_response(202, encode(sha256, is_there ? **now : models::Uploads::State()))
    );
}

Task<> get(Call& call, const ModelServices& services) {
    const std::string& sha256 = call.path_parameters.at(0);
    auto found = co_await services.uploads.find(sha256);
    if (!found || !*found) {
        co_await refuse(
            call,
            found ? Error(Code::not_found, "no such file was uploaded") : std::move(found.error())
        );
        co_return;
    }
    json::object shown = encode(sha256, **found);
    const auto known = services.book.now();
    if (const models::FileFacts* facts = known->find_content(sha256)) {
        for (const auto& [key, value] : facts->to_json()) {
            shown.emplace(key, value);
        }
    }
    co_await send(call, json_response(200, shown));
}

Task<> send_bytes_of(Call& call, const ModelServices& services) {
    const std::string& sha256 = call.path_parameters.at(0);
    const bool is_good =
        services.is_good_ticket(sha256, call.query_value("until"), call.query_value("ticket"));
    if (!is_good) {
        co_await refuse(call, Error(Code::unauthorized, "this needs a ticket of the gateway"));
        co_return;
    }
    call.exchange.trust_peer();
    net::Response head;
    head.headers.set("Content-Type", "application/octet-stream");
    head.headers.set("ETag", "\"" + sha256 + "\"");
    head.headers.set("X-Content-Type-Options", "nosniff");
    auto sent = co_await net::send_disk_file(
        call.exchange, std::move(head), services.uploads.path_of(sha256)
    );
    if (!sent && sent.error().code == Code::not_found) {
        co_await refuse(call, Error(Code::not_found, "this file is not here any more"));
    }
}

std::optional<std::string> user_of(const models::Register& known, const std::string& source) {
    for (const auto& [path, model] : known.models()) {
        for (const models::ModelVersion& version : model.versions) {
            for (const std::string& one : version.sources) {
                if (one == source) {
                    return path;
                }
            }
        }
    }
    return std::nullopt;
}

Task<> remove(Call& call, const ModelServices& services) {
    const std::string& sha256 = call.path_parameters.at(0);
    auto refreshed = co_await services.book.refresh();
    if (!refreshed) {
        co_await refuse(call, std::move(refreshed.error()));
        co_return;
    }
    const auto known = services.book.now();
    if (const auto user = user_of(*known, "upload:" + sha256)) {
        co_await refuse(
            call, Error(Code::conflict, "the model '" + *user + "' is had from it; remove it first")
        );
        co_return;
    }
    auto removed = co_await services.uploads.remove(sha256);
    if (!removed || !*removed) {
        co_await refuse(
            call,
            removed ? Error(Code::not_found, "no such file was uploaded")
                    : std::move(removed.error())
        );
        co_return;
    }
    net::Response response;
    response.status = 204;
    co_await send(call, std::move(response));
}

}  // namespace

std::string model_content_path(const std::string& sha256) {
    return "/v2/model-contents/" + sha256 + "/bytes";
}

void add_model_contents(Router& router, const ModelServices& services) {
    using Function = Task<> (*)(Call&, const ModelServices&);
    const auto add = [&router, &services](
                         net::Method method,
                         const char* pattern,
                         Function function,
                         Access access,
                         json::object operation
                     ) {
        router.add(Route{
            method,
            pattern,
            [&services, function](Call& call) { return function(call, services); },
            encode_error,
            access,
            std::move(operation)
        });
    };
    constexpr const char* kOne = "/v2/model-contents/{sha256}";
    using net::Method;
    json::object upload = fleet_operation("putModelContent", "models", R"json({
        "summary": "Upload a model's file, or the next part of it",
        "description": "Named by its SHA-256. All of it at once, or in parts, one after the other: Content-Range: bytes FIRST-LAST/TOTAL. One that was cut off goes on where it was. A part may be as large as uploads may be.",
        "parameters": [{"name": "format", "in": "query", "description": "other: it is no safetensors file, and only its hash is looked at.", "schema": {"type": "string", "enum": ["safetensors", "other"], "default": "safetensors"}}],
        "responses": {
            "200": ["It is here already.", "ModelContent"],
            "201": ["All of it is here, and right.", "ModelContent"],
            "202": ["More is to come.", "ModelContent"],
            "409": ["conflict: it goes on from elsewhere (details.bytes), or somebody else uploads it now. hash_mismatch: what came is not that file, or no whole safetensors file, and nothing of it stays."]
        }
    })json");
    upload["requestBody"] = {
        {"required", true},
        {"content",
         {{"application/octet-stream", {{"schema", {{"type", "string"}, {"format", "binary"}}}}}}},
    };
    add(Method::put, kOne, put, Access::admin, std::move(upload));
    add(Method::get, kOne, get, Access::admin, fleet_operation("getModelContent", "models", R"json({
        "summary": "How much of an uploaded file is here",
        "responses": {"200": ["The file.", "ModelContent"], "404": ["Nothing of it is here."]}
    })json"));
    add(Method::del,
        kOne,
        remove,
        Access::admin,
        fleet_operation("deleteModelContent", "models", R"json({
        "summary": "Remove an uploaded file",
        "responses": {"204": {"description": "It is removed."}, "404": ["Nothing of it is here."], "409": ["A model is had from it."]}
    })json"));
    json::object bytes = fleet_operation("getModelContentBytes", "models", R"json({
        "summary": "An uploaded file, in ranges, for agents with a ticket",
        "parameters": [
            {"name": "until", "in": "query", "schema": {"type": "string"}},
            {"name": "ticket", "in": "query", "schema": {"type": "string"}}
        ],
        "responses": {"200": {"description": "The file."}, "206": {"description": "A part of it."}, "401": ["The ticket is not good, or not any more."], "404": ["It is not here any more."]}
    })json");
    add(Method::get,
        "/v2/model-contents/{sha256}/bytes",
        send_bytes_of,
        Access::open,
        std::move(bytes));
}

}  // namespace comfyd::api
