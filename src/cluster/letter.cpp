#include "cluster/letter.hpp"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cluster/job_json.hpp"
#include "cluster/members.hpp"

namespace comfyd::cluster {
namespace {

constexpr unsigned char kVersion = 1;
constexpr std::size_t kHeadBytes = 6;  // version, kind, size of the JSON text
constexpr std::size_t kPlaceBytes = 16;
constexpr std::size_t kIdBytes = sizeof(Uuid::bytes);

// On the wire: never change one, and use none twice.
enum class Kind : unsigned char {
    poke = 1,
    greeting = 2,
    interest = 3,
    told = 4,
    so_far = 5,
    ask = 6,
    answer = 7,
    freed = 8,
    identities_changed = 9,
};

void append_number(std::string& to, std::uint64_t number, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; ++at) {
        to.push_back(static_cast<char>(number >> (8 * at) & 0xFF));
    }
}

std::uint64_t read_number(std::string_view from) {
    std::uint64_t number = 0;
    for (std::size_t at = from.size(); at-- > 0;) {
        number = number << 8 | static_cast<unsigned char>(from[at]);
    }
    return number;
}

std::string whole(Kind kind, const json::object& text, std::string_view bytes = {}) {
    const std::string json = json::serialize(text);
    std::string made;
    made.reserve(kHeadBytes + json.size() + bytes.size() + kPlaceBytes);
    made.push_back(static_cast<char>(kVersion));
    made.push_back(static_cast<char>(kind));
    append_number(made, json.size(), 4);
    return made.append(json).append(bytes);
}

std::string place_bytes(const Place& place) {
    std::string made;
    append_number(made, place.stream, 8);
    append_number(made, place.number, 8);
    return made;
}

Place read_place(std::string_view bytes) {
    return {read_number(bytes.substr(0, 8)), read_number(bytes.substr(8, 8))};
}

tl::unexpected<Error> garbled(const char* what) {
    return fail(Code::protocol_error, std::string("a node's message has ") + what);
}

std::string encode_one(const Poke& poke) {
    return whole(Kind::poke, {{"domain", poke.domain}});
}

std::string encode_one(const Freed& freed) {
    return whole(Kind::freed, {{"domain", freed.domain}});
}

std::string encode_one(const IdentitiesChanged&) {
    return whole(Kind::identities_changed, {});
}

std::string encode_one(const Greeting&) {
    return whole(Kind::greeting, {});
}

std::string encode_one(const Interest& interest) {
    json::array feeds;
    for (const FeedInterest& feed : interest.feeds) {
        json::object one{{"progress", feed.progress}, {"previews", feed.previews}};
        if (feed.tenant) {
            one["tenant"] = *feed.tenant;
        }
        if (!feed.messages_of.empty()) {
            one["messages_of"] = feed.messages_of;
        }
        feeds.push_back(std::move(one));
    }
    std::string ids;
    ids.reserve(interest.watched.size() * kIdBytes);
    for (const JobId& job : interest.watched) {
        ids.append(reinterpret_cast<const char*>(job.uuid.bytes.data()), kIdBytes);
    }
    return whole(
        Kind::interest,
        {{"is_all", interest.is_all}, {"previews", interest.previews}, {"feeds", std::move(feeds)}},
        ids
    );
}

std::string encode_one(const Told& told) {
    json::object made{
        {"id", told.head.id.to_string()},
        {"tenant", told.head.tenant},
        {"dialect", told.head.dialect},
        {"sequence", told.head.sequence},
        {"revision", told.head.revision},
    };
    std::string_view bytes;
    const auto put_event = [&](const events::EventPtr& event) {
        made["event"] = to_json(*event);
        bytes = event->preview;
    };
    if (const auto* arrived = std::get_if<events::Arrived>(&told.notice)) {
        made["what"] = "arrived";
        made["job"] = to_json(*arrived->job);
        made["how"] = static_cast<int>(arrived->how);
        made["unfinished"] = arrived->unfinished;
    } else if (const auto* changed = std::get_if<events::Changed>(&told.notice)) {
        made["what"] = "changed";
        if (changed->job) {
            made["job"] = to_json(*changed->job);
        }
        made["unfinished"] = changed->unfinished;
        put_event(changed->event);
    } else if (const auto* shown = std::get_if<events::Shown>(&told.notice)) {
        made["what"] = "shown";
        put_event(shown->event);
    } else {
        const auto& message = std::get<events::Said>(told.notice).message;
        made["what"] = "said";
        made["type"] = message.type;
        made["data"] = message.data;
        made["content_type"] = message.content_type;
        bytes = message.bytes;
    }
    return whole(Kind::told, made, bytes) + place_bytes(told.place);
}

std::string encode_one(const SoFar& so_far) {
    return whole(Kind::so_far, {}, place_bytes(so_far.place));
}

std::string encode_one(const Ask& ask) {
    return whole(
        Kind::ask,
        {{"id", ask.id},
         {"question", ask.question},
         {"details", ask.details},
         {"patience_ms", ask.patience.count()}}
    );
}

std::string encode_one(const Answer& answer) {
    json::object made{{"id", answer.id}};
    if (answer.value) {
        made["value"] = *answer.value;
    } else {
        const Error& error = answer.value.error();
        made["error"] = json::object{
            {"code", to_string(error.code)}, {"message", error.message}, {"details", error.details}
        };
    }
    return whole(Kind::answer, made);
}

Result<Letter> decode_interest(const json::object& from, std::string_view bytes) {
    if (bytes.size() % kIdBytes != 0) {
        return garbled("ids of another size");
    }
    Interest interest;
    interest.is_all = flag_in(from, "is_all");
    interest.previews = flag_in(from, "previews");
    if (const json::array* feeds = list_in(from, "feeds")) {
        for (const json::value& value : *feeds) {
            if (!value.is_object()) {
                return garbled("a feed that is no object");
            }
            const json::object& one = value.get_object();
            FeedInterest feed;
            feed.tenant = json::find_string(one, "tenant").value_or(std::nullopt);
            feed.progress = flag_in(one, "progress");
            feed.previews = flag_in(one, "previews");
            feed.messages_of = text_in(one, "messages_of");
            interest.feeds.push_back(std::move(feed));
        }
    }
    interest.watched.resize(bytes.size() / kIdBytes);
    for (JobId& job : interest.watched) {
        std::memcpy(job.uuid.bytes.data(), bytes.data(), kIdBytes);
        bytes.remove_prefix(kIdBytes);
    }
    return interest;
}

// null: there is none.
Result<events::JobPtr> decode_job(const json::object& from) {
    const json::object* object = object_in(from, "job");
    if (object == nullptr) {
        return nullptr;
    }
    auto job = job_from_json(*object);
    if (!job) {
        return fail(std::move(job.error()));
    }
    return std::make_shared<const jobs::Job>(std::move(*job));
}

Result<events::EventPtr> decode_event(const json::object& from, std::string_view preview) {
    const json::object* object = object_in(from, "event");
    if (object == nullptr) {
        return garbled("no event");
    }
    auto event = event_from_json(*object);
    if (!event) {
        return fail(std::move(event.error()));
    }
    event->preview = preview;
    return std::make_shared<const jobs::Event>(std::move(*event));
}

Result<events::Notice> decode_notice(const json::object& from, std::string_view bytes, JobId id) {
    const std::string what = text_in(from, "what");
    if (what == "said") {
        const json::object* data = object_in(from, "data");
        return events::Said{
            id,
            {text_in(from, "type"),
             data != nullptr ? *data : json::object(),
             std::string(bytes),
             text_in(from, "content_type")}
        };
    }
    auto job = decode_job(from);
    if (!job) {
        return fail(std::move(job.error()));
    }
    const auto unfinished = static_cast<std::size_t>(count_in(from, "unfinished"));
    if (what == "arrived") {
        const int how = small_in(from, "how", 0);
        if (!*job || how < 0 || how > static_cast<int>(events::Arrived::How::restored)) {
            return garbled("an arrival without its job");
        }
        return events::Arrived{std::move(*job), static_cast<events::Arrived::How>(how), unfinished};
    }
    auto event = decode_event(from, bytes);
    if (!event) {
        return fail(std::move(event.error()));
    }
    if (what == "changed") {
        return events::Changed{std::move(*job), std::move(*event), unfinished};
    }
    if (what == "shown") {
        return events::Shown{std::move(*event)};
    }
    return garbled("a notice of no known kind");
}

Result<Letter> decode_told(const json::object& from, std::string_view bytes) {
    const auto id = id_in<JobTag>(from, "id");
    if (!id || bytes.size() < kPlaceBytes) {
        return garbled("no job or no place");
    }
    Told told;
    told.head = {
        *id,
        text_in(from, "tenant"),
        text_in(from, "dialect"),
        count_in(from, "sequence"),
        small_in(from, "revision", 0)
    };
    told.place = read_place(bytes.substr(bytes.size() - kPlaceBytes));
    bytes.remove_suffix(kPlaceBytes);
    auto notice = decode_notice(from, bytes, *id);
    if (!notice) {
        return fail(std::move(notice.error()));
    }
    told.notice = std::move(*notice);
    return told;
}

Ask decode_ask(const json::object& from) {
    Ask ask;
    ask.id = count_in(from, "id");
    ask.question = text_in(from, "question");
    if (const json::value* details = json::find(from, "details")) {
        ask.details = *details;
    }
    ask.patience = Millis(number_in(from, "patience_ms").value_or(0));
    return ask;
}

Answer decode_answer(const json::object& from) {
    Answer answer;
    answer.id = count_in(from, "id");
    if (const json::object* error = object_in(from, "error")) {
        const json::object* details = object_in(*error, "details");
        answer.value = fail(
            parse_code(text_in(*error, "code")).value_or(Code::internal),
            text_in(*error, "message"),
            details != nullptr ? *details : json::object()
        );
    } else if (const json::value* value = json::find(from, "value")) {
        answer.value = *value;
    }
    return answer;
}

}  // namespace

std::string encode(const Letter& letter) {
    return std::visit([](const auto& one) { return encode_one(one); }, letter);
}

void set_place(std::string& encoded, const Place& place) {
    encoded.replace(encoded.size() - kPlaceBytes, kPlaceBytes, place_bytes(place));
}

Result<std::optional<Letter>> decode(std::string_view message) {
    if (message.size() < kHeadBytes) {
        return garbled("too few bytes");
    }
    if (static_cast<unsigned char>(message[0]) > kVersion) {
        return std::nullopt;
    }
    const auto kind = static_cast<Kind>(message[1]);
    const std::uint64_t size = read_number(message.substr(2, 4));
    message.remove_prefix(kHeadBytes);
    if (size > message.size()) {
        return garbled("less text than it says");
    }
    const std::string_view bytes = message.substr(static_cast<std::size_t>(size));
    const auto object = json::parse_object(message.substr(0, static_cast<std::size_t>(size)));
    if (!object) {
        return garbled("text that is no JSON");
    }
    Result<Letter> letter = Greeting{};
    switch (kind) {
        case Kind::poke:
            letter = Poke{text_in(*object, "domain")};
            break;
        case Kind::freed:
            letter = Freed{text_in(*object, "domain")};
            break;
        case Kind::identities_changed:
            letter = IdentitiesChanged{};
            break;
        case Kind::greeting:
            break;
        case Kind::interest:
            letter = decode_interest(*object, bytes);
            break;
        case Kind::told:
            letter = decode_told(*object, bytes);
            break;
        case Kind::so_far:
            if (bytes.size() != kPlaceBytes) {
                return garbled("no place");
            }
            letter = SoFar{read_place(bytes)};
            break;
        case Kind::ask:
            letter = decode_ask(*object);
            break;
        case Kind::answer:
            letter = decode_answer(*object);
            break;
        default:
            return std::nullopt;
    }
    if (!letter) {
        return fail(std::move(letter.error()));
    }
    return std::move(*letter);
}

}  // namespace comfyd::cluster
