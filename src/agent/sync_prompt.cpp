#include "agent/sync_prompt.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/crypto.hpp"
#include "base/deadline.hpp"
#include "base/id.hpp"
#include "comfy/members.hpp"

namespace comfyd::agent {
namespace {

namespace shapes = comfy::prompt_sync;
using shapes::Trouble;
template <class T>
using Outcome = tl::expected<T, Trouble>;

// Between looks: short prompts are answered at once, long ones cost little.
constexpr Millis kLookMin{20};
constexpr Millis kLookMax{500};
constexpr Millis kAnswerMin{2'000};  // that ComfyUI has for each
constexpr int kMissesMax = 3;  // looks in a row that must agree before a prompt is called lost

tl::unexpected<Trouble> trouble(Error error, std::string prompt_id = {}) {
    Trouble made;
    made.error = std::move(error);
    made.prompt_id = std::move(prompt_id);
    return tl::unexpected<Trouble>(std::move(made));
}

// Of what went wrong on the way to ComfyUI.
Error seen_from_here(Error error) {
    switch (error.code) {
        case Code::connection_failed:
        case Code::request_timeout:
        case Code::cancelled:
            return Error(Code::worker_unavailable, "ComfyUI does not answer: " + error.message);
        case Code::upstream_error:
            return Error(Code::internal, std::move(error.message));
        default:
            return error;
    }
}

struct Wish {
    shapes::Options options;
    comfy::Submission submission;
};

Result<Wish> read_wish(const SyncPrompt& parts, const std::string& text, std::string_view timeout) {
    auto body = json::parse_object(text);
    if (!body) {
        return fail(Code::malformed_json, "the body is no JSON object: " + body.error().message);
    }
    auto options = shapes::decode_options(*body, timeout, parts.timeout_default);
    if (!options) {
        return fail(std::move(options.error()));
    }
    const json::object* prompt = comfy::object_of(*body, "prompt");
    if (prompt == nullptr) {
        return fail(
            Code::invalid_argument,
            "'prompt' must be a workflow in ComfyUI's API format: node id -> {class_type, inputs}"
        );
    }
    for (const auto& [id, node] : *prompt) {
        if (!node.is_object()) {  // ComfyUI itself falls over it
            return fail(
                Code::invalid_argument,
                "node '" + std::string(id) +
                    "' of 'prompt' must be an object with class_type and "
                    "inputs"
            );
        }
    }
    auto client_id = json::find_string(*body, "client_id");
    const auto extra = json::find_object(*body, "extra_data");
    if (!client_id || !extra) {
        return fail(client_id ? extra.error() : client_id.error());
    }
    Wish wish{*options, {}};
    wish.submission.prompt_id = Uuid::make(parts.clock.now()).to_string();
    wish.submission.prompt = json::serialize(*prompt);
    wish.submission.client_id = std::move(*client_id).value_or("");
    if (wish.submission.client_id.empty()) {
        // Without one, older servers leave out outputs that they had before.
        wish.submission.client_id = wish.submission.prompt_id;
    }
    if (*extra != nullptr) {
        wish.submission.extra_data = **extra;
    }
    return wish;
}

// A ComfyUI that hangs holds nobody up for much longer than they want to wait.
comfy::ClientTimeouts patience_of(const shapes::Options& options) {
    comfy::ClientTimeouts timeouts;
    const Millis most = std::max(options.timeout, kAnswerMin);
    timeouts.request = std::min(timeouts.request, most);
    timeouts.submit = std::min(timeouts.submit, most);
    return timeouts;
}

// Old servers interrupt whatever runs, whichever prompt they are told: so only where ours does, or
// where nobody can say.
Task<> withdraw(comfy::Client& client, std::string prompt_id) {
    auto removed = co_await client.delete_queued(prompt_id);
    static_cast<void>(removed);  // whether it was there or not, it is not wanted
    auto queue = co_await client.queue();
    if (!queue || queue->is_running(prompt_id)) {
        auto interrupted = co_await client.interrupt(std::move(prompt_id));
        static_cast<void>(interrupted);
    }
}

Error nobody_waits(const shapes::Options& options) {
    return Error(
        Code::cancelled,
        std::string("whoever asked for the prompt has closed the connection; ") +
            (options.cancel_on_timeout ? "it was taken back" : "it goes on")
    );
}

// How the prompt ended. `asker`: a client that leaves waits no longer, as one whose time is over.
Task<Outcome<comfy::HistoryEntry>> wait_for_end(
    comfy::Client& client,
    net::Exchange& asker,
    std::string id,
    shapes::Options options,
    Deadline deadline
) {
    Millis pause = kLookMin;
    int misses = 0;
    while (true) {
        auto entry = co_await client.history(id);
        if (entry && *entry) {
            co_return std::move(**entry);
        }
        if (!entry && entry.error().code == Code::cancelled) {
            co_return trouble(seen_from_here(std::move(entry.error())), id);
        }
        if (deadline.has_passed()) {
            if (options.cancel_on_timeout) {
                co_await withdraw(client, id);
            }
            co_return trouble(shapes::out_of_time(id, options), id);
        }
        auto queue = co_await client.queue();
        misses = entry && queue && !queue->contains(id) ? misses + 1 : 0;
        if (misses == kMissesMax) {
            co_return trouble(
                Error(
                    Code::worker_lost,
                    "ComfyUI does not know the prompt any more: it was removed from the queue, or "
                    "ComfyUI was started anew"
                ),
                id
            );
        }
        const bool is_closed =
            co_await asker.wait_closed(std::min(pause, std::max(deadline.left(), Millis(1))));
        const bool stop = co_await is_cancelled();
        if (stop || (is_closed && asker.draining())) {
            co_return trouble(Error(Code::shutting_down, "the agent is stopping"), id);
        }
        if (is_closed) {
            if (options.cancel_on_timeout) {
                co_await withdraw(client, id);
            }
            co_return trouble(nobody_waits(options), id);
        }
        pause = std::min(pause * 3 / 2, kLookMax);
    }
}

Trouble trouble_of(const std::string& id, comfy::HistoryEntry entry) {
    Trouble made;
    made.prompt_id = id;
    made.outputs = std::move(entry.outputs);  // of nodes that were done before
    if (entry.interrupted) {
        made.error = Error(Code::cancelled, "the prompt was interrupted");
    } else if (entry.error) {
        const comfy::ExecutionError& error = *entry.error;
        made.error = Error(
            Code::node_execution_error,
            "node " + error.node_id + " (" + error.node_type + "): " + error.exception_message
        );
        made.node_errors[error.node_id] = {
            {"errors", {json::object{{"message", error.exception_message}}}}
        };
    } else {
        made.error = Error(Code::node_execution_error, "the prompt failed for an unknown reason");
    }
    return made;
}

struct NamedFile {
    std::string node;
    comfy::FileName file;
};

std::vector<NamedFile> pictures_in(const json::object& outputs) {
    std::vector<NamedFile> found;
    for (const auto& [node, ui] : outputs) {
        const json::object* lists = ui.if_object();
        const json::array* images = lists == nullptr ? nullptr : comfy::array_of(*lists, "images");
        for (std::size_t i = 0; images != nullptr && i < images->size(); ++i) {
            if (const json::object* image = (*images)[i].if_object()) {
                found.push_back(
                    {std::string(node),
                     {comfy::text_of(*image, "filename"),
                      comfy::text_of(*image, "subfolder"),
                      comfy::text_of(*image, "type")}}
                );
            }
        }
    }
    return found;
}

Task<Result<json::object>> read_pictures(comfy::Client& client, Pool& pool, json::object outputs) {
    json::object images;
    std::uint64_t total = 0;
    for (NamedFile& picture : pictures_in(outputs)) {
        std::string bytes;
        const auto take = [&bytes, &total](std::string_view piece) -> Result<> {
            total += piece.size();
            if (total > shapes::kInlineBytesMax) {
                return fail(shapes::too_large_inline(total));
            }
            bytes += piece;
            return {};
        };
        auto viewed = co_await client.view(picture.file, take);
        if (!viewed) {
            co_return fail(std::move(viewed.error()));
        }
        auto text = co_await pool.run([bytes = std::move(bytes)] { return to_base64(bytes); });
        shapes::add_picture(
            images,
            picture.node,
            {std::move(picture.file.filename),
             std::move(picture.file.subfolder),
             std::move(picture.file.type),
             std::move(text)}
        );
    }
    co_return images;
}

}  // namespace

Task<Outcome<json::object>> run_prompt(
    SyncPrompt parts, std::string body, std::string timeout_query
) {
    auto wish = co_await parts.pool.run([&parts, &body, &timeout_query] {
        return read_wish(parts, body, timeout_query);
    });
    if (!wish) {
        co_return trouble(std::move(wish.error()));
    }
    const std::string id = wish->submission.prompt_id;
    const Time begun = parts.clock.now();
    const Deadline deadline = Deadline::in(wish->options.timeout);
    comfy::Client client(parts.http, parts.pool, parts.url, patience_of(wish->options));
    auto accepted = co_await client.submit(std::move(wish->submission));
    if (!accepted && accepted.error().code == Code::request_timeout && deadline.has_passed()) {
        if (wish->options.cancel_on_timeout) {
            co_await withdraw(client, id);  // it may have it all the same
        }
        const Error silent(
            Code::request_timeout, "ComfyUI did not say in time whether it takes the prompt"
        );
        co_return trouble(silent, id);
    }
    if (!accepted) {
        Trouble refused;
        refused.error = seen_from_here(std::move(accepted.error()));
        if (const json::object* errors = comfy::object_of(refused.error.details, "node_errors")) {
            refused.node_errors = *errors;
        }
        co_return tl::unexpected<Trouble>(std::move(refused));
    }
    if (parts.accepted) {
        parts.accepted();
    }
    auto entry = co_await wait_for_end(client, parts.client, id, wish->options, deadline);
    if (!entry) {
        co_return tl::unexpected<Trouble>(std::move(entry.error()));
    }
    if (!entry->success) {
        co_return tl::unexpected<Trouble>(trouble_of(id, std::move(*entry)));
    }
    json::object result =
        shapes::encode_result(id, parts.clock.now() - begun, entry->outputs, accepted->node_errors);
    if (wish->options.return_base64) {
        auto images = co_await read_pictures(client, parts.pool, entry->outputs);
        if (!images) {
            Trouble without;
            without.error = seen_from_here(std::move(images.error()));
            without.prompt_id = id;
            without.outputs = std::move(entry->outputs);
            co_return tl::unexpected<Trouble>(std::move(without));
        }
        result["images"] = std::move(*images);
    }
    co_return result;
}

}  // namespace comfyd::agent
