#include "models/library.hpp"

#include <algorithm>
#include <utility>

#include "base/crypto.hpp"
#include "base/log.hpp"
#include "models/answer_head.hpp"
#include "models/family.hpp"

namespace comfyd::models {
namespace {

constexpr std::size_t kAnswerBytesMax = 4 * 1024 * 1024;
constexpr std::size_t kWaitingMax = 4 * kWishesMax;
constexpr Millis kLookForOther{500};  // whether another process is done

}  // namespace

// One way of one content to here, which any number wait for.
struct Library::Flight {
    explicit Flight(Executor executor) : landed(executor) {}

    Signal landed;
    std::optional<Result<std::string>> result{};  // the content's hash
    FetchProgress progress{};
    std::vector<std::shared_ptr<FetchProgress>> seen{};
    Ways ways{};
    std::shared_ptr<PartFile> part{};  // what was fetched, until all who wait have linked it

    void tell(FetchProgress now) {
        progress = now;
        for (const auto& one : seen) {
            *one = now;
        }
    }
};

Library::Library(Executor executor, Pool& pool, LibraryOptions options, const Clock& clock)
    : executor_(executor),
      pool_(pool),
      options_(std::move(options)),
      clock_(clock),
      contents_(options_.contents),
      web_(executor, options_.web),
      fetcher_(executor, pool, web_, options_.fetch),
      gate_({.inside_max = options_.fetches_max, .waiting_max = kWaitingMax}),
      content_done_(executor),
      ending_(std::make_shared<std::atomic<bool>>(false)),
      tasks_(executor) {}

Library::~Library() = default;

Result<> Library::open() {
    return contents_.open();
}

Task<> Library::end() {
    ending_->store(true);
    tasks_.cancel();
    co_await tasks_.join();
}

Result<> Library::check(const ModelWish& wish) const {
    if (is_pickle(wish.name) && !options_.allows_pickles) {
        return fail(
            Code::forbidden,
            "'" + wish.path() +
                "' is of a kind that runs code when it is loaded: COMFYD_MODELS_PICKLES=1 allows it"
        );
    }
    return {};
}

Task<bool> Library::is_there(ModelWish wish) {
    const bool found = co_await pool_.run([this, &wish] {
        std::error_code ignored;
        return std::filesystem::exists(options_.contents.models / wish.folder / wish.name, ignored);
    });
    co_return found;
}

Task<Result<Placed>> Library::place(
    ModelWish wish, std::shared_ptr<FetchProgress> seen, Ways ways
) {
    if (auto allowed = check(wish); !allowed) {
        co_return fail(std::move(allowed.error()));
    }
    auto here = co_await find_here(wish);
    if (!here) {
        co_return fail(std::move(here.error()));
    }
    if (*here) {
        co_return std::move(**here);
    }
    auto brought = co_await bring(wish, std::move(seen), std::move(ways));
    if (!brought) {
        co_return fail(std::move(brought.error()));
    }
    Placed placed{brought->sha256, 0, {}};
    placed.about = co_await pool_.run([this, &placed] { return contents_.about(placed.sha256); });
    const json::value* kind = json::find(placed.about, "kind");
    if (kind != nullptr && kind->is_string() &&
        is_misplaced(std::string_view(kind->get_string()), wish.folder)) {
        co_return fail(
            Code::invalid_argument,
            "the file is a " + std::string(kind->get_string()) +
                " by what is in it, and of no use in " + wish.folder
        );
    }
    auto linked = co_await pool_.run([this, &wish, &placed] {
        return contents_.link(wish.folder, wish.name, placed.sha256);
    });
    brought->held.reset();
    content_done_.notify();
    if (!linked) {
        co_return fail(std::move(linked.error()));
    }
    const json::value* bytes = json::find(placed.about, "bytes");
    placed.bytes = bytes != nullptr && bytes->is_number() ? bytes->to_number<std::uint64_t>() : 0;
    co_return placed;
}

// A file of the name that is none of ours.
Task<Result<std::optional<Placed>>> Library::find_here(ModelWish wish) {
    auto found = co_await pool_.run([this, &wish] {
        return contents_.find_foreign(
            wish.folder,
            wish.name,
            !wish.sha256.empty(),
            [ending = ending_] { return ending->load(); }
        );
    });
    if (!found) {
        co_return fail(std::move(found.error()));
    }
    if (!*found) {
        co_return std::optional<Placed>();
    }
    const Contents::Foreign& file = **found;
    const bool is_right = (wish.sha256.empty() || wish.sha256 == file.sha256) &&
                          (!wish.bytes || *wish.bytes == file.bytes);
    if (!is_right) {
        co_return fail(
            Code::conflict,
            "another file is at '" + wish.path() + "' already: remove it, or take another name"
        );
    }
    co_return Placed{file.sha256, file.bytes, {}};
}

Task<Result<Library::Brought>> Library::bring(
    ModelWish wish, std::shared_ptr<FetchProgress> seen, Ways ways
) {
    if (!wish.sha256.empty()) {
        const auto bytes =
            co_await pool_.run([this, &wish] { return contents_.find(wish.sha256); });
        if (bytes && (!wish.bytes || *wish.bytes == *bytes)) {
            co_return Brought{wish.sha256};
        }
    }
    // Whether a file must be a safetensors file is a part of what is asked for.
    const std::string key = wish.source + "|" + wish.sha256 + "|" +
                            (wish.bytes ? std::to_string(*wish.bytes) : "") +
                            (is_safetensors(wish.name) ? "|safetensors" : "|");
    auto& slot = flights_[key];
    if (!slot) {
        slot = std::make_shared<Flight>(executor_);
        slot->ways = std::move(ways);
        tasks_.spawn("the fetch of a model", fly(key, wish));
    }
    const std::shared_ptr<Flight> flight = slot;
    if (seen) {
        *seen = flight->progress;
        flight->seen.push_back(std::move(seen));
    }
    while (!flight->result) {
        co_await flight->landed.wait();
        const bool stop = co_await is_cancelled();
        if (stop && !flight->result) {
            co_return fail(Code::cancelled, "the wait for a model was given up");
        }
    }
    if (!*flight->result) {
        co_return fail(flight->result->error());
    }
    co_return Brought{**flight->result, flight->part};
}

Task<> Library::fly(std::string key, ModelWish wish) {
    const std::shared_ptr<Flight> flight = flights_.at(key);
    auto fetched = co_await fetch(wish, flight);
    if (!fetched && wish.sha256.empty() && is_outage(fetched.error())) {
        // What came from there last time is better than nothing.
        const auto origin =
            co_await pool_.run([this, &wish] { return contents_.origin(wish.source); });
        const std::string known = origin ? origin->sha256 : std::string();
        const auto bytes = co_await pool_.run([this, &known] { return contents_.find(known); });
        if (bytes && (!wish.bytes || *wish.bytes == *bytes)) {
            log::warning(
                "a source of models is away: what it had last time is used",
                {{"source", shown_source(wish.source)}, {"reason", fetched.error().message}}
            );
            fetched = known;
        }
    }
    flight->result = std::move(fetched);
    flights_.erase(key);
    flight->landed.notify();
}

Dependency& Library::breaker_of(const Source& source, const std::string& link) {
    const auto url = net::Url::parse(source.needs_link() ? link : source.url);
    const std::string name = source.kind == Source::Kind::hugging_face ? "huggingface"
                             : source.kind == Source::Kind::civitai    ? "civitai"
                             : url                                     ? url->host_header()
                                                                       : source.url;
    auto& server = servers_[name];
    if (!server) {
        server = std::make_unique<Dependency>("models:" + name, options_.breaker, clock_);
    }
    return *server;
}

void Library::judge(Dependency& server, const Error* failure) {
    if (failure == nullptr) {
        server.succeeded();
    } else if (is_outage(*failure) && server.failed()) {
        log::warning(
            "a source of models failed several times and is left alone for a while",
            {{"source", server.name()}}
        );
    }
}

Task<Result<std::string>> Library::fetch(ModelWish wish, std::shared_ptr<Flight> flight) {
    const auto place = co_await gate_.enter("all");
    if (!place) {
        co_return fail(place.error());
    }
    for (const std::string& peer : flight->ways.peers) {
        if (wish.sha256.empty()) {
            break;
        }
        auto fetched =
            co_await fetch_alone(wish, {peer, wish.sha256, wish.bytes}, From::peer, flight);
        const bool stop = co_await is_cancelled();
        if (fetched || stop || fetched.error().code == Code::storage_full) {
            co_return fetched;
        }
        log::info(
            "another agent did not give a model",
            {{"source", shown_source(peer)}, {"reason", fetched.error().message}}
        );
    }
    const auto source = parse_source(wish.source);
    if (!source) {
        co_return fail(source.error());
    }
    Dependency& server = breaker_of(*source, flight->ways.link);
    const auto pass = server.admit();
    if (!pass) {
        const auto wait = std::chrono::duration_cast<std::chrono::seconds>(server.wait());
        co_return fail(
            Code::upstream_error,
            shown_source(wish.source) +
                ": this server failed several times and is left alone for a while",
            {{"retry_after", wait.count() + 1}}
        );
    }
    auto target = co_await resolve(*source, flight->ways.link);
    if (!target) {
        judge(server, &target.error());
        co_return fail(std::move(target.error()));
    }
    if (!wish.sha256.empty() && !target->sha256.empty() && wish.sha256 != target->sha256) {
        co_return fail(
            Code::hash_mismatch,
            shown_source(wish.source) + " has the hash " + target->sha256 + ", and not " +
                wish.sha256
        );
    }
    if (wish.bytes && target->bytes && *wish.bytes != *target->bytes) {
        co_return fail(
            Code::hash_mismatch,
            shown_source(wish.source) + " has " + std::to_string(*target->bytes) +
                " bytes, and not " + std::to_string(*wish.bytes)
        );
    }
    target->sha256 = wish.sha256.empty() ? target->sha256 : wish.sha256;
    target->bytes = wish.bytes ? wish.bytes : target->bytes;
    const From from = source->needs_link() ? From::link : From::source;
    auto fetched = co_await fetch_alone(std::move(wish), std::move(*target), from, flight);
    judge(server, fetched ? nullptr : &fetched.error());
    co_return fetched;
}

// While nobody else brings the same content.
Task<Result<std::string>> Library::fetch_alone(
    ModelWish wish, Target target, From from, std::shared_ptr<Flight> flight
) {
    // What is the same content has one part, whoever asks for it and wherever it comes from.
    const std::string key = target.sha256.empty()
                                ? "from-" + to_hex(comfyd::sha256(wish.source)).substr(0, 32)
                                : target.sha256;
    while (busy_.contains(key)) {
        co_await content_done_.wait();
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(Code::cancelled, "the fetch was given up");
        }
    }
    busy_.insert(key);
    auto fetched = co_await fetch_content(std::move(wish), std::move(target), from, key, flight);
    busy_.erase(key);
    content_done_.notify();
    co_return fetched;
}

// Asks the place where the bytes are, and what they are.
Task<Result<Target>> Library::resolve(Source source, std::string link) {
    Target target;
    if (source.needs_link()) {
        if (link.empty()) {
            co_return fail(
                Code::not_found,
                "the gateway alone knows where this is, and has given no link to it"
            );
        }
        target.url = std::move(link);
        target.sha256 = source.sha256;
        co_return target;
    }
    if (source.kind == Source::Kind::url) {
        target.url = source.url;
        co_return target;
    }
    const bool is_hugging_face = source.kind == Source::Kind::hugging_face;
    const auto url = net::Url::parse(
        is_hugging_face ? hugging_face_url(options_.endpoints, source)
                        : civitai_url(options_.endpoints, source)
    );
    if (!url) {
        co_return fail(url.error());
    }
    auto answer = co_await web_.open(is_hugging_face ? "HEAD" : "GET", *url, {}, true);
    if (!answer) {
        co_return fail(std::move(answer.error()));
    }
    if (is_hugging_face) {
        co_return read_hugging_face(
            options_.endpoints, source, answer->head.status, answer->head.headers
        );
    }
    if (answer->head.status != 200) {
        co_return fail(refusal("Civitai", answer->head.status, answer->head.headers));
    }
    auto body = co_await web_.read(*answer, kAnswerBytesMax);
    if (!body) {
        co_return fail(std::move(body.error()));
    }
    co_return read_civitai(options_.endpoints, source, *body);
}

// Its part, once no other process works on it.
Task<Result<PartFile>> Library::open_part(std::string key) {
    while (true) {
        auto part =
            co_await pool_.run([this, &key] { return PartFile::open(contents_.folder(), key); });
        if (part || part.error().code != Code::conflict) {
            co_return part;
        }
        const bool goes_on = co_await sleep_for(kLookForOther);
        if (!goes_on) {
            co_return fail(Code::cancelled, "the fetch was given up");
        }
    }
}

Task<Result<std::string>> Library::fetch_content(
    ModelWish wish, Target target, From from, std::string key, std::shared_ptr<Flight> flight
) {
    const bool is_peer = from == From::peer;
    auto url = net::Url::parse(target.url);
    if (!url) {
        co_return fail(std::move(url.error()));
    }
    auto part = co_await open_part(key);
    if (!part) {
        co_return fail(std::move(part.error()));
    }
    FetchOrder order;
    order.source = is_peer ? "another agent" : wish.source;
    order.is_peer = is_peer;
    order.is_given = from != From::source;
    order.url = std::move(*url);
    order.sha256 = target.sha256;
    order.bytes = target.bytes;
    order.is_safetensors = is_safetensors(wish.name);
    // Another may have brought it while we waited, or it came from there before.
    std::string known = target.sha256;
    const auto origin = co_await pool_.run([this, &wish] { return contents_.origin(wish.source); });
    if (known.empty() && origin && !origin->etag.empty()) {
        known = origin->sha256;
    }
    const auto bytes = co_await pool_.run([this, &known] { return contents_.find(known); });
    const bool is_here = bytes && (!target.bytes || *target.bytes == *bytes);
    if (is_here && !target.sha256.empty()) {
        co_await pool_.run([&part] {
            part->discard();
            return true;
        });
        co_return known;
    }
    if (is_here) {
        order.known_etag = origin->etag;
    }
    auto fetched = co_await fetcher_.fetch(
        std::move(order),
        *part,
        [this, &part](std::uint64_t total) { return make_room(*part, total); },
        [flight](FetchProgress now) { flight->tell(now); }
    );
    if (!fetched) {
        co_await pool_.run([&part] {
            part->give_back();
            return true;
        });
        co_return fail(std::move(fetched.error()));
    }
    const bool is_known = fetched->is_known;
    const std::string sha256 = is_known ? known : fetched->content.sha256;
    const std::string etag = is_peer ? "" : fetched->etag;  // a peer's says nothing of the source
    auto kept = co_await pool_.run([this, &part, &fetched, &sha256, &wish, &etag] {
        if (fetched->is_known) {
            part->discard();
            return Result<>();
        }
        // Before it has its name: another process that waits for it looks here then.
        auto noted = contents_.note(fetched->content, wish.source, etag);
        return noted ? part->publish(contents_.path_of(sha256)) : noted;
    });
    if (!kept) {
        co_return fail(std::move(kept.error()));
    }
    if (!is_known) {
        flight->part = std::make_shared<PartFile>(std::move(*part));
        log::info(
            "a model was fetched",
            {{"source", is_peer ? shown_source(target.url) : shown_source(wish.source)},
             {"sha256", sha256},
             {"bytes", fetched->content.bytes}}
        );
    }
    co_return sha256;
}

Task<std::optional<std::filesystem::path>> Library::find_content(std::string sha256) {
    const bool is_here = co_await pool_.run([this, &sha256] {
        return is_sha256(sha256) && contents_.find(sha256).has_value();
    });
    co_return is_here ? std::optional(contents_.path_of(sha256)) : std::nullopt;
}

// Where others have been promised what there is, here or in another process, they come first.
Task<Result<>> Library::make_room(PartFile& part, std::uint64_t total) {
    bool is_told = false;
    while (true) {
        auto made =
            co_await pool_.run([this, &part, total] { return contents_.make_room(part, total); });
        if (!made) {
            co_return fail(std::move(made.error()));
        }
        if (*made) {
            co_return Result<>();
        }
        if (!std::exchange(is_told, true)) {
            log::info("a model waits for room that others on their way have", {{"bytes", total}});
        }
        co_await content_done_.wait_for(kLookForOther);
        const bool stop = co_await is_cancelled();
        if (stop) {
            co_return fail(Code::cancelled, "the fetch was given up");
        }
    }
}

}  // namespace comfyd::models
