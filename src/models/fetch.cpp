#include "models/fetch.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/json.hpp"
#include "base/log.hpp"
#include "models/answer_head.hpp"
#include "models/source.hpp"

namespace comfyd::models {
namespace {

using Ticks = std::chrono::steady_clock;

constexpr std::uint64_t kStepBytes = 1024 * 1024;  // that count as getting further

bool is_worth_a_try(const Error& error) {
    switch (error.code) {
        case Code::connection_failed:
        case Code::request_timeout:
        case Code::protocol_error:
        case Code::upstream_error:
        case Code::rate_limited:
            return true;
        default:
            return false;
    }
}

// What a server that is asked too much wishes.
Millis asked_pause(const Error& error) {
    constexpr std::int64_t kSecondsMax = 60;
    const json::value* asked = json::find(error.details, "retry_after");
    const bool is_asked = asked != nullptr && asked->is_uint64();
    return is_asked
               ? std::chrono::seconds(std::min<std::uint64_t>(asked->get_uint64(), kSecondsMax))
               : Millis(0);
}

}  // namespace

// One fetch, through all its tries. Lives in the frame of fetch().
struct Fetcher::Run {
    FetchOrder order;
    PartFile& part;
    MakeRoom make_room;
    Told told;
    TaskGroup writing;  // of one piece at most
    Signal written;
    bool is_writing = false;
    Result<> disk{};           // how the pieces were written
    std::uint64_t coming = 0;  // bytes of the file that have come, written or not
    std::optional<std::uint64_t> total{};
    std::string etag{};
    bool is_same_source = true;    // as what is in the part
    bool is_ready = false;         // what is in the part was read, and can be added to
    bool was_continued = false;    // some of it is of another answer than the rest
    bool must_start_over = false;  // nothing of it may be used
    std::optional<Fetched> result{};
};

Fetcher::Fetcher(Executor executor, Pool& pool, Web& web, FetchOptions options)
    : executor_(executor), pool_(pool), web_(web), options_(options) {}

Task<Result<Fetched>> Fetcher::fetch(
    FetchOrder order, PartFile& part, MakeRoom make_room, Told told
) {
    Run run{
        std::move(order),
        part,
        std::move(make_room),
        std::move(told),
        TaskGroup(executor_),
        Signal(executor_)
    };
    std::uint64_t furthest = part.size();
    Millis pause = options_.pause_min;
    int failed = 0;
    bool was_begun_anew = false;
    while (true) {
        auto tried = co_await try_once(run);
        co_await run.writing.join();
        if (tried) {
            co_return std::move(*run.result);
        }
        const Error error = std::move(tried.error());
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(Code::cancelled, "the fetch was given up");
        }
        if (error.code == Code::hash_mismatch && run.was_continued && !was_begun_anew) {
            log::warning(
                "what had come of a model is no part of it: it is fetched anew",
                {{"source", shown_source(run.order.source)}, {"reason", error.message}}
            );
            was_begun_anew = run.must_start_over = true;
            run.was_continued = false;
            continue;
        }
        if (error.code == Code::hash_mismatch || error.code == Code::storage_full) {
            co_await pool_.run([&part] {
                part.discard();
                return true;
            });
            co_return fail(error);
        }
        const bool got_further = part.size() >= furthest + kStepBytes;
        furthest = std::max(furthest, part.size());
        failed = got_further ? 1 : failed + 1;
        pause = got_further ? options_.pause_min : pause;
        const int tries = run.order.is_peer ? 1 : options_.tries;
        if (!is_worth_a_try(error) || failed >= tries) {
            co_return fail(error);
        }
        log::info(
            "a fetch was cut off and goes on",
            {{"source", shown_source(run.order.source)},
             {"bytes", part.size()},
             {"reason", error.message}}
        );
        co_await sleep_for(std::max(pause, asked_pause(error)));
        pause = std::min(pause * 2, options_.pause_max);
    }
}

Task<Result<>> Fetcher::try_once(Run& run) {
    run.disk = {};
    // Without a hash or an ETag nobody knows whether the rest belongs to it.
    const bool is_blind = run.order.sha256.empty() && run.etag.empty();
    if (std::exchange(run.must_start_over, false) || (run.is_ready && is_blind)) {
        run.is_ready = false;
    } else if (!run.is_ready) {
        auto taken = co_await take_up_part(run);
        if (!taken) {
            co_return taken;
        }
    }
    const std::uint64_t from = run.is_ready ? run.part.size() : 0;
    run.coming = from;
    if (from > 0 && run.total == from) {  // only the end was missing
        auto finished = co_await finish(run);
        co_return finished;
    }
    net::Headers headers;
    if (from > 0) {
        headers.set("Range", "bytes=" + std::to_string(from) + "-");
        if (!run.etag.empty() && run.is_same_source) {
            headers.set("If-Range", run.etag);
        }
    } else if (!run.order.known_etag.empty()) {
        headers.set("If-None-Match", run.order.known_etag);
    }
    auto answer = co_await web_.open(
        "GET", run.order.url, std::move(headers), run.order.is_given, run.order.is_given
    );
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    if (answer->head.status == 304 && from == 0 && !run.order.known_etag.empty()) {
        run.result = Fetched{{}, run.order.known_etag, true};
        co_return Result<>();
    }
    auto prepared = co_await prepare(run, *answer, from);
    if (!prepared) {
        co_return prepared;
    }
    auto pumped = co_await pump(run, *answer->body);
    if (!pumped) {
        co_return pumped;
    }
    auto finished = co_await finish(run);
    co_return finished;
}

// What an earlier try, of this process or another, has brought: it is used where it can be told
// whether it belongs to the rest.
Task<Result<>> Fetcher::take_up_part(Run& run) {
    const auto notes = run.part.notes();
    const bool is_hashed = !run.order.sha256.empty();
    if (!notes || run.part.size() == 0 || (notes->total && run.part.size() > *notes->total)) {
        co_return Result<>();
    }
    run.is_same_source = notes->source == run.order.source;
    const bool is_named = run.is_same_source && !notes->etag.empty() && !run.part.is_from_before();
    if (!is_hashed && !is_named) {
        co_return Result<>();
    }
    run.etag = notes->etag;
    run.total = notes->total;
    run.part.resume(run.order.is_safetensors);
    run.was_continued = true;
    bool is_read = false;
    while (!is_read) {
        auto read = co_await pool_.run([&part = run.part] { return part.reread(); });
        const bool stop = co_await is_cancelled();
        if (!read || stop) {
            co_return read ? Result<>(fail(Code::cancelled, "the fetch was given up"))
                           : Result<>(fail(std::move(read.error())));
        }
        is_read = *read;
    }
    run.is_ready = true;
    co_return Result<>();
}

// Whether the answer is one to go on with. True: it is the whole file, from its beginning.
Result<bool> Fetcher::judge_head(Run& run, const Web::Answer& answer, std::uint64_t from) const {
    const net::Headers& headers = answer.head.headers;
    const std::string host = answer.url.host_header();
    const int status = answer.head.status;
    if (status != 200 && !(status == 206 && from > 0)) {
        // Also 416: it has less than we have.
        run.must_start_over = from > 0 && status == 416;
        return fail(refusal(host, status, headers));
    }
    const std::string_view encoding = headers.get("Content-Encoding");
    if (!encoding.empty() && !net::equal_ignoring_case(encoding, "identity")) {
        return fail(Code::upstream_error, host + " sends a compressed file, unasked");
    }
    const std::string etag = strong_etag(headers);
    if (status == 200) {
        run.total = number_in(headers.get("Content-Length"));
        if (!run.total && !run.order.bytes && headers.get("Transfer-Encoding").empty()) {
            return fail(Code::upstream_error, host + " does not tell how long the file is");
        }
        run.etag = etag;
        run.is_same_source = true;
        return true;
    }
    const auto range = parse_content_range(headers.get("Content-Range"));
    const bool is_same_etag = etag == run.etag;
    const bool is_right =
        range && range->first == from && (!run.total || *run.total == range->total) &&
        (is_same_etag || (!run.order.sha256.empty() && etag.empty()) || !run.is_same_source);
    if (!is_right) {
        run.must_start_over = true;
        return fail(Code::upstream_error, host + " has another file than the one that was begun");
    }
    run.total = range->total;
    run.was_continued = true;
    return false;
}

// Makes the part ready for the body, and room for it.
Task<Result<>> Fetcher::prepare(Run& run, const Web::Answer& answer, std::uint64_t from) {
    auto judged = judge_head(run, answer, from);
    if (!judged) {
        co_return fail(std::move(judged.error()));
    }
    if (run.order.bytes && run.total && *run.total != *run.order.bytes) {
        co_return fail(
            Code::hash_mismatch,
            "the file has " + std::to_string(*run.total) + " bytes, and not " +
                std::to_string(*run.order.bytes)
        );
    }
    if (!run.total) {
        run.total = run.order.bytes;
    }
    if (run.total.value_or(1) == 0 || run.total.value_or(1) > options_.bytes_max) {
        co_return fail(
            Code::payload_too_large,
            "the file has " + std::to_string(*run.total) + " bytes; at most " +
                std::to_string(options_.bytes_max) + " are taken"
        );
    }
    if (*judged) {
        run.coming = 0;
        run.is_ready = false;
        run.was_continued = false;
        const PartNotes notes{run.order.source, run.etag, run.total};
        auto begun = co_await pool_.run([&part = run.part, notes, &run] {
            return part.begin(notes, run.order.is_safetensors);
        });
        if (!begun) {
            co_return begun;
        }
        run.is_ready = true;
    }
    if (run.total) {
        auto made = co_await run.make_room(*run.total);
        if (!made) {
            co_return made;
        }
        auto reserved =
            co_await pool_.run([&part = run.part, &run] { return part.reserve(*run.total); });
        co_return reserved;
    }
    co_return Result<>();
}

// While one piece is hashed and written, the next one comes.
Task<Result<>> Fetcher::pump(Run& run, net::Passage& body) {
    std::string filling;
    Ticks::time_point since = Ticks::now();
    std::uint64_t before = run.coming;
    Result<> ended;
    while (ended) {
        auto piece = co_await body.read();
        if (!piece) {
            ended = fail(std::move(piece.error()));
            break;
        }
        if (piece->empty()) {
            break;
        }
        run.coming += piece->size();
        received_[run.order.is_peer ? 1 : 0] += piece->size();
        filling += *piece;
        if (run.coming > run.total.value_or(options_.bytes_max)) {
            co_return fail(Code::hash_mismatch, "more comes than the file was said to have");
        }
        if (filling.size() >= options_.piece_bytes) {
            ended = co_await write(run, std::exchange(filling, std::string()));
        }
        if (Ticks::now() - since >= options_.stall) {
            if (run.coming - before < options_.stall_bytes) {
                ended = fail(Code::request_timeout, "the server sends next to nothing");
            }
            since = Ticks::now();
            before = run.coming;
        }
    }
    // What has come is kept also where no more does.
    auto last = co_await write(run, std::move(filling));
    auto rest = co_await write(run, "");
    if (!ended) {
        co_return ended;
    }
    co_return last ? rest : last;
}

// Returns once the piece before is written.
Task<Result<>> Fetcher::write(Run& run, std::string bytes) {
    while (run.is_writing) {
        co_await run.written.wait();
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(Code::cancelled, "the fetch was given up");
        }
    }
    if (!run.disk) {
        co_return run.disk;
    }
    if (!run.total && !bytes.empty()) {
        auto made = co_await run.make_room(run.part.size() + bytes.size());
        if (!made) {
            co_return made;
        }
    }
    if (run.told) {
        run.told({run.part.size(), run.total});
    }
    if (!bytes.empty()) {
        run.is_writing = true;
        run.writing.spawn("a piece of a model", write_out(run, std::move(bytes)));
    }
    co_return Result<>();
}

Task<> Fetcher::write_out(Run& run, std::string bytes) {
    auto appended = co_await pool_.run([&part = run.part, &bytes] { return part.append(bytes); });
    run.disk = std::move(appended);
    run.is_ready = run.disk.has_value();
    run.is_writing = false;
    run.written.notify();
}

Task<Result<>> Fetcher::finish(Run& run) {
    if (run.total && run.part.size() != *run.total) {
        co_return fail(
            Code::connection_failed,
            "the server ended after " + std::to_string(run.part.size()) + " of " +
                std::to_string(*run.total) + " bytes"
        );
    }
    auto content = co_await pool_.run([&part = run.part] { return part.judge(); });
    run.is_ready = false;
    if (!content) {
        co_return fail(std::move(content.error()));
    }
    if (!run.order.sha256.empty() && content->sha256 != run.order.sha256) {
        co_return fail(
            Code::hash_mismatch,
            "the file has the hash " + content->sha256 + ", and not " + run.order.sha256
        );
    }
    run.result = Fetched{std::move(*content), run.etag, false};
    co_return Result<>();
}

}  // namespace comfyd::models
