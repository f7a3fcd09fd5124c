// What the editor stores for its user: settings and documents.
#include <utility>

#include "comfy/server/routes.hpp"
#include "net/safe_content.hpp"
#include "net/static_files.hpp"

namespace comfyd::comfy::server {
namespace {

bool overwrites(const Call& call) {
    return !net::equal_ignoring_case(call.query_value("overwrite"), "false");
}

// A name that leads out of the store and one that is not there need no words.
net::Response refuse(const Error& error) {
    switch (error.code) {
        case Code::forbidden:
        case Code::not_found:
            return empty_reply(info(error.code).http_status);
        case Code::conflict:
            return text_reply(409, error.message);
        default:
            return encode_error(error);
    }
}

net::Response describe(const Result<UserFile>& file, bool full_info) {
    if (!file) {
        return refuse(file.error());
    }
    return json_reply(200, full_info ? json::value(file->to_json()) : json::value(file->path));
}

Task<> change(Call& call, Backend& backend, json::object changes) {
    auto changed = co_await backend.disk().run([&user = backend.user(), &changes] {
        return user.change_settings(changes);
    });
    co_await answer(call, changed ? empty_reply(200) : encode_error(changed.error()));
}

std::string safe_type(const std::string& name) {
    const std::string type(net::content_type_of(name));
    return net::is_active_type(type) ? "application/octet-stream" : type;
}

}  // namespace

Task<> get_users(Call& call, Backend& backend) {
    auto known = co_await backend.disk().run([&user = backend.user()] { return user.exists(); });
    const json::object body{{"storage", "server"}, {"migrated", known}};
    co_await answer(call, json_reply(200, body));
}

Task<> post_users(Call& call, Backend& /*backend*/) {
    co_await answer(call, error_reply(400, "users cannot be added here"));
}

Task<> get_settings(Call& call, Backend& backend) {
    auto settings =
        co_await backend.disk().run([&user = backend.user()] { return user.settings(); });
    co_await answer(call, settings ? json_reply(200, *settings) : encode_error(settings.error()));
}

Task<> get_setting(Call& call, Backend& backend) {
    auto settings =
        co_await backend.disk().run([&user = backend.user()] { return user.settings(); });
    if (!settings) {
        co_await answer(call, encode_error(settings.error()));
        co_return;
    }
    const json::value* found = json::find(*settings, call.parameters.at(0));
    co_await answer(call, json_reply(200, found == nullptr ? json::value() : *found));
}

Task<> post_settings(Call& call, Backend& backend) {
    auto body = co_await read_json(call, backend.limits().json_bytes_max);
    if (!body || !body->is_object()) {
        co_await answer(call, body ? empty_reply(400) : encode_error(body.error()));
        co_return;
    }
    co_await change(call, backend, std::move(body->get_object()));
}

Task<> post_setting(Call& call, Backend& backend) {
    auto text = co_await read_text(call, backend.limits().json_bytes_max);
    if (!text) {
        co_await answer(call, encode_error(text.error()));
        co_return;
    }
    auto value = json::parse(*text);
    if (!value) {
        // The editor sends an empty body on its first visit and does not mind the refusal.
        co_await answer(call, empty_reply(400));
        co_return;
    }
    json::object changes;
    changes[call.parameters.at(0)] = std::move(*value);
    co_await change(call, backend, std::move(changes));
}

Task<> list_userdata(Call& call, Backend& backend) {
    const std::string folder(call.query_value("dir"));
    if (folder.empty()) {
        co_await answer(call, text_reply(400, "Directory not provided"));
        co_return;
    }
    const bool recurse = call.query_is_true("recurse");
    auto files = co_await backend.disk().run([&user = backend.user(), &folder, recurse] {
        return user.list(folder, recurse);
    });
    if (!files) {
        const bool outside = files.error().code == Code::forbidden;
        co_await answer(
            call,
            text_reply(outside ? 403 : 404, outside ? "Invalid directory" : "Directory not found")
        );
        co_return;
    }
    const json::array list =
        to_json(*files, call.query_is_true("full_info"), call.query_is_true("split"));
    co_await answer(call, json_reply(200, list));
}

Task<> list_userdata_v2(Call& call, Backend& backend) {
    const std::string folder(call.query_value("path"));
    auto entries = co_await backend.disk().run([&user = backend.user(), &folder] {
        return user.entries(folder);
    });
    if (entries) {
        co_await answer(call, json_reply(200, *entries));
        co_return;
    }
    const bool missing = entries.error().code == Code::not_found;
    co_await answer(
        call,
        text_reply(
            missing ? 404 : 400,
            missing                                   ? "Requested path not found"
            : entries.error().code == Code::forbidden ? "Invalid path requested"
                                                      : "Requested path is not a directory"
        )
    );
}

Task<> get_userdata(Call& call, Backend& backend) {
    const std::string& name = call.parameters.at(0);
    auto path =
        co_await backend.disk().run([&user = backend.user(), &name] { return user.find(name); });
    if (!path) {
        co_await answer(call, refuse(path.error()));
        co_return;
    }
    net::Response head;
    // A document must not run in the server's origin.
    head.headers.set("Content-Type", safe_type(path->filename().string()));
    head.headers.set("X-Content-Type-Options", "nosniff");
    head.headers.set("Cache-Control", "no-cache");
    auto sent = co_await net::send_disk_file(call.exchange, std::move(head), std::move(*path));
    if (!sent && sent.error().code == Code::not_found && !call.exchange.answered()) {
        co_await answer(call, empty_reply(404));
    }
}

Task<> post_userdata(Call& call, Backend& backend) {
    const std::string& name = call.parameters.at(0);
    if (auto allowed = backend.user().check_name(name); !allowed) {
        co_await answer(call, refuse(allowed.error()));
        co_return;
    }
    auto bytes = co_await read_text(call, backend.limits().document_bytes_max);
    if (!bytes) {
        co_await answer(call, encode_error(bytes.error()));
        co_return;
    }
    const bool overwrite = overwrites(call);
    auto written =
        co_await backend.disk().run([&user = backend.user(), &name, &bytes = *bytes, overwrite] {
            return user.write(name, bytes, overwrite);
        });
    co_await answer(call, describe(written, call.query_is_true("full_info")));
}

Task<> delete_userdata(Call& call, Backend& backend) {
    const std::string& name = call.parameters.at(0);
    auto removed =
        co_await backend.disk().run([&user = backend.user(), &name] { return user.remove(name); });
    co_await answer(call, removed ? empty_reply(204) : refuse(removed.error()));
}

Task<> move_userdata(Call& call, Backend& backend) {
    const bool overwrite = overwrites(call);
    auto moved =
        co_await backend.disk().run([&user = backend.user(), &names = call.parameters, overwrite] {
            return user.move(names.at(0), names.at(1), overwrite);
        });
    co_await answer(call, describe(moved, call.query_is_true("full_info")));
}

}  // namespace comfyd::comfy::server
