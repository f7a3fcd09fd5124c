// What the editor stores for its user. There is one user.
#include <utility>

#include "comfy/replies.hpp"
#include "net/static_files.hpp"
#include "standalone/routes.hpp"

namespace comfyd::standalone {
namespace {

bool flag(const Call& call, std::string_view name) {
    return net::equal_ignoring_case(call.query_value(name), "true");
}

bool overwrites(const Call& call) {
    return !net::equal_ignoring_case(call.query_value("overwrite"), "false");
}

// Names of this store are answered in plain text, as ComfyUI does.
net::Response refuse(const Error& error) {
    return comfy::text_reply(info(error.code).http_status, error.message);
}

net::Response describe(const Result<comfy::UserFile>& file, bool full_info) {
    if (!file) {
        return refuse(file.error());
    }
    return comfy::json_reply(
        200, full_info ? json::value(file->to_json()) : json::value(file->path)
    );
}

Task<> change(Call& call, Core& core, json::object changes) {
    auto changed =
        co_await core.pool.run([&core, &changes] { return core.users.change_settings(changes); });
    co_await answer(call, changed ? comfy::empty_reply(200) : encode_error(changed.error()));
}

}  // namespace

Task<> get_users(Call& call, Core& /*core*/) {
    json::object body;
    body["storage"] = "server";
    body["migrated"] = true;
    co_await answer(call, comfy::json_reply(200, body));
}

Task<> post_users(Call& call, Core& /*core*/) {
    co_await answer(call, comfy::error_reply(400, "this server has one user only"));
}

Task<> get_settings(Call& call, Core& core) {
    auto settings = co_await core.pool.run([&core] { return core.users.settings(); });
    co_await answer(
        call, settings ? comfy::json_reply(200, *settings) : encode_error(settings.error())
    );
}

Task<> get_setting(Call& call, Core& core) {
    auto settings = co_await core.pool.run([&core] { return core.users.settings(); });
    if (!settings) {
        co_await answer(call, encode_error(settings.error()));
        co_return;
    }
    const json::value* found = settings->if_contains(call.parameters.at(0));
    co_await answer(call, comfy::json_reply(200, found == nullptr ? json::value() : *found));
}

Task<> post_settings(Call& call, Core& core) {
    auto body = co_await read_object(call, core);
    if (!body) {
        co_return;
    }
    co_await change(call, core, std::move(*body));
}

Task<> post_setting(Call& call, Core& core) {
    auto body = co_await read_json(call, core);
    if (!body) {
        co_return;
    }
    json::object changes;
    changes[call.parameters.at(0)] = std::move(*body);
    co_await change(call, core, std::move(changes));
}

Task<> list_userdata(Call& call, Core& core) {
    const std::string folder(call.query_value("dir"));
    if (folder.empty()) {
        co_await answer(call, comfy::text_reply(400, "dir names no folder"));
        co_return;
    }
    const bool recurse = flag(call, "recurse");
    auto files = co_await core.pool.run([&core, &folder, recurse] {
        return core.users.list(folder, recurse);
    });
    if (!files) {
        co_await answer(call, refuse(files.error()));
        co_return;
    }
    const json::array list = comfy::to_json(*files, flag(call, "full_info"), flag(call, "split"));
    co_await answer(call, comfy::json_reply(200, list));
}

Task<> list_userdata_v2(Call& call, Core& core) {
    const std::string folder(call.query_value("path"));
    auto entries = co_await core.pool.run([&core, &folder] { return core.users.entries(folder); });
    co_await answer(call, entries ? comfy::json_reply(200, *entries) : refuse(entries.error()));
}

Task<> get_userdata(Call& call, Core& core) {
    auto path = core.users.find(call.parameters.at(0));
    if (!path) {
        co_await answer(call, refuse(path.error()));
        co_return;
    }
    net::Response head;
    head.headers.set("X-Content-Type-Options", "nosniff");
    auto sent = co_await net::send_disk_file(call.exchange, std::move(head), std::move(*path));
    if (!sent && sent.error().code == Code::not_found && !call.exchange.answered()) {
        co_await answer(call, comfy::empty_reply(404));
    }
}

Task<> post_userdata(Call& call, Core& core) {
    auto bytes = co_await read_bytes(call, core);
    if (!bytes) {
        co_return;
    }
    const std::string& name = call.parameters.at(0);
    const bool overwrite = overwrites(call);
    auto written = co_await core.pool.run([&core, &name, &bytes = *bytes, overwrite] {
        return core.users.write(name, bytes, overwrite);
    });
    co_await answer(call, describe(written, flag(call, "full_info")));
}

Task<> delete_userdata(Call& call, Core& core) {
    const std::string& name = call.parameters.at(0);
    auto removed = co_await core.pool.run([&core, &name] { return core.users.remove(name); });
    co_await answer(call, removed ? comfy::empty_reply(204) : refuse(removed.error()));
}

Task<> move_userdata(Call& call, Core& core) {
    const bool overwrite = overwrites(call);
    auto moved = co_await core.pool.run([&core, &names = call.parameters, overwrite] {
        return core.users.move(names.at(0), names.at(1), overwrite);
    });
    co_await answer(call, describe(moved, flag(call, "full_info")));
}

}  // namespace comfyd::standalone
