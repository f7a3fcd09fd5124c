// What became of prompts: /history and /api/jobs.
#include <utility>

#include "comfy/members.hpp"
#include "comfy/server/routes.hpp"

namespace comfyd::comfy::server {
namespace {

Task<> answer_history(Call& call, Result<HistoryPage> page) {
    if (!page) {
        co_await answer(call, encode_error(page.error()));
        co_return;
    }
    net::Response response = json_text_reply(200, encode(*page));
    if (page->left_out > 0) {
        response.headers.set("X-Comfyd-Left-Out", std::to_string(page->left_out));
    }
    co_await answer(call, std::move(response));
}

}  // namespace

Task<> get_history(Call& call, Backend& backend) {
    const auto number = [&call](std::string_view name) {
        return call.has_query(name) ? python_integer(call.query_value(name)) : std::nullopt;
    };
    const auto max_items = number("max_items");
    const auto offset = number("offset");
    if ((call.has_query("max_items") && !max_items) || (call.has_query("offset") && !offset)) {
        co_await answer(call, trouble());
        co_return;
    }
    auto page = co_await backend.history(max_items, offset);
    co_await answer_history(call, std::move(page));
}

Task<> get_history_of(Call& call, Backend& backend) {
    auto page = co_await backend.history_of(call.parameters.at(0));
    co_await answer_history(call, std::move(page));
}

Task<> post_history(Call& call, Backend& backend) {
    auto body = co_await read_members(call, backend.limits().json_bytes_max);
    if (!body) {
        co_await answer(call, encode_error(body.error()));
        co_return;
    }
    Result<> done;
    if (is_true(*body, "clear")) {
        done = co_await backend.clear_history();
    }
    auto ids = texts_of(*body, "delete");
    if (!ids.empty()) {
        done = co_await backend.forget(std::move(ids));
    }
    co_await answer(call, done ? empty_reply(200) : encode_error(done.error()));
}

Task<> get_jobs(Call& call, Backend& backend) {
    const auto query = parse_jobs_query(call.query);
    if (!query) {
        co_await answer(call, error_reply(400, query.error()));
        co_return;
    }
    auto page = co_await backend.jobs(*query);
    if (!page) {
        co_await answer(call, encode_error(page.error()));
        co_return;
    }
    auto response = co_await backend.disk().run([&page = *page, &query = *query] {
        return json_reply(200, to_json(std::move(page), query));
    });
    co_await answer(call, std::move(response));
}

Task<> get_job(Call& call, Backend& backend) {
    auto job = co_await backend.job(call.parameters.at(0));
    if (!job) {
        co_await answer(call, encode_error(job.error()));
        co_return;
    }
    co_await answer(
        call, *job ? json_reply(200, to_json(std::move(**job))) : error_reply(404, "Job not found")
    );
}

}  // namespace comfyd::comfy::server
