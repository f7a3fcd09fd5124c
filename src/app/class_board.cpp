#include "app/class_board.hpp"

#include <algorithm>
#include <utility>

#include "base/json.hpp"
#include "base/log.hpp"

namespace comfyd::app {
namespace {

std::string workers_note(const std::string& domain) {
    return "workers/" + domain;
}

std::string classes_note(const std::string& name) {
    return "classes/" + name;
}

std::string text_of(const fleet::ClassCache::Told& told) {
    return json::serialize(json::object{
        {"object_info", told.object_info},
        {"described", told.described},
        {"replacements", told.replacements},
    });
}

std::optional<fleet::ClassCache::Told> told_in(const std::string& text) {
    auto object = json::parse_object(text);
    if (!object) {
        return std::nullopt;
    }
    const auto member = [&object](std::string_view key) {
        const auto found = json::find_object(*object, key).value_or(nullptr);
        return found == nullptr ? json::object() : *found;
    };
    auto info = json::find_string(*object, "object_info").value_or(std::nullopt);
    if (!info) {
        return std::nullopt;
    }
    return fleet::ClassCache::Told{std::move(*info), member("described"), member("replacements")};
}

std::string text_in(const json::object& from, std::string_view key) {
    return json::find_string(from, key).value_or(std::nullopt).value_or("");
}

std::vector<workflow::Catalogue::Prospect> prospects_in(const json::object& note) {
    std::vector<workflow::Catalogue::Prospect> prospects;
    const json::array* list = json::find_array(note, "prospects").value_or(nullptr);
    for (const json::value& value : list == nullptr ? json::array() : *list) {
        if (const json::object* one = value.if_object()) {
            prospects.push_back(
                {text_in(*one, "pool"),
                 text_in(*one, "gpu"),
                 text_in(*one, "region"),
                 json::find_bool(*one, "is_here").value_or(std::nullopt).value_or(false)}
            );
        }
    }
    return prospects;
}

}  // namespace

ClassBoard::ClassBoard(
    Executor core,
    jobs::Notebook& notebook,
    Pool& pool,
    std::vector<std::string> domains,
    std::map<std::string, std::string> software
)
    : core_(core),
      notebook_(notebook),
      pool_(pool),
      domains_(std::move(domains)),
      software_(std::move(software)),
      tasks_(core),
      catalogue_(std::make_shared<workflow::Catalogue>(Entries())) {}

ClassBoard::~ClassBoard() = default;

void ClassBoard::keep(std::string name, std::shared_ptr<const fleet::ClassCache::Told> told) {
    const Lock lock(mutex_);
    to_write_.emplace(std::move(name), std::move(told));
}

void ClassBoard::start(fleet::ClassCache& cache) {
    cache_ = &cache;
    tasks_.spawn("node classes of other nodes", look());
    tasks_.spawn("node classes for other nodes", write());
}

Task<> ClassBoard::stop() {
    tasks_.cancel();
    co_await tasks_.join();
    co_await write_once();  // what workers told last
}

void ClassBoard::set_led(const std::string& domain, Source source) {
    led_[domain] = {std::move(source), nullptr, false, {}};
    update();
}

void ClassBoard::set_not_led(const std::string& domain) {
    // Until its next leader says otherwise they are those that we had.
    const auto led = led_.extract(domain);
    if (led && led.mapped().has_told) {
        not_led_[domain].workers = led.mapped().seen->workers();
        not_led_[domain].prospects = led.mapped().seen->prospects();
    }
    update();
}

std::shared_ptr<const workflow::Catalogue> ClassBoard::catalogue() const {
    const Lock lock(mutex_);
    return catalogue_;
}

bool ClassBoard::is_of_other_software(const workflow::Catalogue::Entry& entry) const {
    const auto now = software_.find(entry.pool);
    return !entry.software.empty() && now != software_.end() && entry.software != now->second;
}

void ClassBoard::update() {
    Entries all;
    Prospects prospects;
    const auto add = [&](const Entries& workers, const Prospects& may_come) {
        all.insert(all.end(), workers.begin(), workers.end());
        prospects.insert(prospects.end(), may_come.begin(), may_come.end());
    };
    for (const auto& [domain, led] : led_) {
        if (led.has_told) {
            add(led.seen->workers(), led.seen->prospects());
        }
    }
    for (const auto& [domain, other] : not_led_) {
        const auto led = led_.find(domain);
        if (led == led_.end() || !led->second.has_told) {
            add(other.workers, other.prospects);
        }
    }
    auto made = std::make_shared<workflow::Catalogue>(std::move(all), std::move(prospects));
    const Lock lock(mutex_);
    catalogue_ = std::move(made);
}

Task<> ClassBoard::write() {
    for (bool goes_on = true; goes_on;) {
        co_await write_once();
        goes_on = co_await sleep_for(kWriteEvery);
    }
}

Task<> ClassBoard::write_once() {
    bool changed = false;
    std::vector<std::string> domains;
    for (auto& [domain, led] : led_) {
        auto now = led.source();
        changed = changed || now != led.seen;
        led.seen = std::move(now);
        led.has_told = led.has_told || led.seen->knows_workers();
        domains.push_back(domain);
    }
    if (changed) {
        update();
    }
    co_await write_documents();
    for (const std::string& domain : domains) {
        co_await write_workers(domain);
    }
}

// A document is there before a worker refers to it.
Task<> ClassBoard::write_documents() {
    std::map<std::string, std::shared_ptr<const fleet::ClassCache::Told>> documents;
    {
        const Lock lock(mutex_);
        documents.swap(to_write_);
    }
    for (auto& [name, told] : documents) {
        if (documents_.contains(name)) {
            continue;
        }
        std::string text = co_await pool_.run([&told] { return text_of(*told); });
        auto written = co_await notebook_.write_note(classes_note(name), std::move(text));
        if (written) {
            documents_.insert(name);
        } else {
            log::warning("node classes were not shared", {{"error", written.error().message}});
            keep(name, told);
        }
    }
}

Task<> ClassBoard::write_workers(std::string domain) {
    const auto led = led_.find(domain);
    if (led == led_.end() || !led->second.has_told) {
        co_return;
    }
    json::array workers;
    for (const auto& entry : led->second.seen->workers()) {
        const auto name = cache_->name_of(*entry.classes);
        if (name) {
            workers.emplace_back(json::object{
                {"worker", entry.worker},
                {"pool", entry.pool},
                {"classes", *name},
                {"gpu", entry.gpu},
                {"region", entry.region},
                {"gpu_memory", entry.gpu_memory_bytes},
                {"is_memory", entry.is_memory},
                {"fetches_models", entry.fetches_models},
                {"software", entry.software},
            });
        }
    }
    json::array prospects;
    for (const auto& prospect : led->second.seen->prospects()) {
        prospects.emplace_back(json::object{
            {"pool", prospect.pool},
            {"gpu", prospect.gpu},
            {"region", prospect.region},
            {"is_here", prospect.is_here}
        });
    }
    const std::string text = json::serialize(
        json::object{{"workers", std::move(workers)}, {"prospects", std::move(prospects)}}
    );
    if (text == led->second.written) {
        co_return;
    }
    auto written = co_await notebook_.write_note(workers_note(domain), text);
    const auto still = led_.find(domain);
    if (written && still != led_.end()) {
        still->second.written = text;
    }
}

Task<> ClassBoard::recall() {
    for (const std::string& domain : domains_) {
        if (!led_.contains(domain)) {
            co_await read_workers(domain);
        }
    }
}

Task<> ClassBoard::look() {
    for (bool goes_on = true; goes_on;) {
        co_await recall();
        goes_on = co_await sleep_for(kLookEvery);
    }
}

Task<> ClassBoard::read_workers(std::string domain) {
    auto note = co_await notebook_.read_note(workers_note(domain));
    if (!note || !*note || **note == not_led_[domain].read) {
        co_return;
    }
    const auto object = json::parse_object(**note);
    const json::array* list =
        object ? json::find_array(*object, "workers").value_or(nullptr) : nullptr;
    Entries workers;
    for (const json::value& value : list == nullptr ? json::array() : *list) {
        const json::object* entry = value.if_object();
        if (entry == nullptr) {
            continue;
        }
        auto classes = co_await read_classes(text_in(*entry, "classes"));
        if (!classes) {
            co_return;  // at the next look
        }
        const auto memory = json::find_int(*entry, "gpu_memory").value_or(std::nullopt);
        Entries::value_type read{
            .worker = text_in(*entry, "worker"),
            .classes = std::move(classes),
            .pool = text_in(*entry, "pool"),
            .software = text_in(*entry, "software"),
            .gpu = text_in(*entry, "gpu"),
            .region = text_in(*entry, "region"),
            .gpu_memory_bytes =
                static_cast<std::uint64_t>(std::max<std::int64_t>(0, memory.value_or(0))),
            .is_memory =
                json::find_bool(*entry, "is_memory").value_or(std::nullopt).value_or(false),
            .fetches_models =
                json::find_bool(*entry, "fetches_models").value_or(std::nullopt).value_or(false)
        };
        if (!is_of_other_software(read)) {
            workers.push_back(std::move(read));
        }
    }
    if (!led_.contains(domain)) {
        not_led_[domain] = {std::move(**note), std::move(workers), prospects_in(*object)};
        update();
    }
}

Task<std::shared_ptr<const workflow::NodeClasses>> ClassBoard::read_classes(std::string name) {
    for (const auto& [domain, other] : not_led_) {
        for (const auto& entry : other.workers) {
            if (cache_->name_of(*entry.classes) == name) {
                co_return entry.classes;
            }
        }
    }
    auto note = co_await notebook_.read_note(classes_note(name));
    if (!note || !*note) {
        co_return nullptr;
    }
    auto told = co_await pool_.run([&text = **note] { return told_in(text); });
    if (!told) {
        co_return nullptr;
    }
    documents_.insert(name);  // the cache hands it on to keep(), and it is there
    auto classes = co_await cache_->read(std::move(*told));
    co_return classes ? std::move(*classes) : nullptr;
}

}  // namespace comfyd::app
