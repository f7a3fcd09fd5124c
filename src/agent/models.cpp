#include "agent/models.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "models/source.hpp"

namespace comfyd::agent {
namespace {

constexpr Millis kProgress{1'000};  // between two words of how far it is

std::string percent(std::uint64_t bytes, std::uint64_t total) {
    return std::to_string(total == 0 ? 0 : bytes * 100 / total) + " %";
}

}  // namespace

std::string_view to_string(Models::State state) {
    switch (state) {
        case Models::State::waiting:
            return "waiting";
        case Models::State::fetching:
            return "fetching";
        case Models::State::ready:
            return "ready";
        case Models::State::failed:
            break;
    }
    return "failed";
}

Models::Models(Executor executor, Pool& pool, ModelsOptions options, Events events)
    : options_(std::move(options)),
      events_(std::move(events)),
      library_(executor, pool, options_.library),
      settled_(executor) {
    for (const models::ModelWish& wish : options_.wishes) {
        const auto item = std::make_shared<Item>();
        item->wish = wish;
        item->is_awaited = wish.required;
        items_[wish.path()] = item;
    }
    count_missing();
}

Result<> Models::open() {
    return library_.open();
}

void Models::start(TaskGroup& group) {
    group_ = &group;
    for (const bool awaited : {true, false}) {
        for (const auto& [path, item] : items_) {
            if (item->is_awaited == awaited) {
                begin(item);
            }
        }
    }
    group.spawn("progress of models", tell_progress());
}

void Models::begin(const ItemPtr& item) {
    item->state = State::fetching;
    item->error.clear();
    group_->spawn("a model", keep(item));
}

void Models::count_missing() {
    missing_ = static_cast<std::size_t>(std::ranges::count_if(items_, [](const auto& entry) {
        return entry.second->is_awaited && entry.second->state != State::ready;
    }));
}

Task<> Models::keep(ItemPtr item) {
    Millis pause = options_.retry_min;
    int failed = 0;
    bool go_on = true;
    while (go_on) {
        const bool may_help = co_await try_once(item);
        const bool stop = co_await is_cancelled();
        ++failed;
        go_on = !stop && may_help && (item->is_awaited || failed < options_.tries_max);
        if (go_on) {
            go_on = co_await sleep_for(pause);
            pause = std::min(pause * 2, options_.retry_max);
        }
    }
    if (item->state != State::ready) {
        item->state = State::failed;
    }
    count_missing();
    settled_.notify();
    events_.changed();
}

// Whether another try may help.
Task<bool> Models::try_once(ItemPtr item) {
    auto placed = co_await library_.place(item->wish, item->seen, item->ways);
    if (!placed) {
        const Error& error = placed.error();
        item->error = error.message;
        item->code = error.code;
        if (error.code != Code::cancelled) {
            log::warning(
                "a model is not to be had",
                {{"model", item->wish.path()},
                 {"source", models::shown_source(item->wish.source)},
                 {"reason", error.message}}
            );
        }
        events_.changed();
        co_return info(error.code).retryable;
    }
    co_await events_.placed(item->wish, placed->sha256);
    item->placed = std::move(*placed);
    item->error.clear();
    item->state = State::ready;
    co_return false;
}

Task<> Models::tell_progress() {
    bool go_on = true;
    std::uint64_t told = 0;
    while (go_on) {
        std::uint64_t bytes = 0;
        for (const auto& [path, item] : items_) {
            bytes += item->state == State::fetching ? item->seen->bytes : 0;
        }
        if (bytes != std::exchange(told, bytes)) {
            events_.changed();
        }
        go_on = co_await sleep_for(kProgress);
    }
}

Task<bool> Models::wait_for_required() {
    bool stop = co_await is_cancelled();
    while (missing_ > 0 && !stop) {
        co_await settled_.wait();
        stop = co_await is_cancelled();
    }
    co_return !stop;
}

Task<> Models::end() {
    co_await library_.end();
}

Task<Result<json::object>> Models::ask(models::ModelWish wish, models::Ways ways) {
    if (auto allowed = library_.check(wish); !allowed) {
        co_return fail(std::move(allowed.error()));
    }
    const bool is_there = co_await library_.is_there(wish);
    const auto found = items_.find(wish.path());
    if (found == items_.end()) {
        if (items_.size() >= models::kWishesMax) {
            forget_one();
        }
        if (items_.size() >= models::kWishesMax) {
            co_return fail(Code::queue_full, "this worker has been asked for too many models");
        }
        const auto item = std::make_shared<Item>();
        item->wish = std::move(wish);
        item->ways = std::move(ways);
        items_[item->wish.path()] = item;
        begin(item);
        co_return to_json(*item);
    }
    Item& item = *found->second;
    wish.required = item.wish.required;
    const bool is_same = item.wish == wish;
    if (item.state == State::fetching && !is_same) {
        co_return fail(
            Code::conflict, "'" + wish.path() + "' is being fetched from somewhere else"
        );
    }
    item.ways = is_same ? ways : item.ways;
    const bool is_gone = item.state == State::ready && !is_there;
    if (item.state == State::failed || is_gone || !is_same) {
        item.wish = std::move(wish);
        item.ways = std::move(ways);
        begin(found->second);
    }
    co_return to_json(item);
}

// What somebody asked for once, and which is there or will not come.
void Models::forget_one() {
    const auto done = std::ranges::find_if(items_, [](const auto& entry) {
        const Item& item = *entry.second;
        return !item.is_awaited && (item.state == State::ready || item.state == State::failed);
    });
    if (done != items_.end()) {
        items_.erase(done);
    }
}

bool Models::is_failed() const {
    return std::ranges::any_of(items_, [](const auto& entry) {
        return entry.second->is_awaited && entry.second->state == State::failed;
    });
}

std::string Models::reason() const {
    std::size_t awaited = 0;
    std::uint64_t bytes = 0;
    std::uint64_t total = 0;
    std::string error;
    for (const auto& [path, item] : items_) {
        if (!item->is_awaited) {
            continue;
        }
        ++awaited;
        bytes += item->seen->bytes;
        total += item->seen->total.value_or(0);
        const bool is_worse = error.empty() || item->state == State::failed;
        if (item->state != State::ready && !item->error.empty() && is_worse) {
            error = path + ": " + item->error;
        }
    }
    const std::string count = std::to_string(awaited - missing_) + " of " + std::to_string(awaited);
    return count + " models are there" + (total > 0 ? ", " + percent(bytes, total) : "") +
           (error.empty() ? "" : "; " + error);
}

json::object Models::to_json(const Item& item) {
    json::object shown{
        {"folder", item.wish.folder},
        {"name", item.wish.name},
        {"source", models::shown_source(item.wish.source)},
        {"required", item.is_awaited},
        {"state", to_string(item.state)},
    };
    if (item.state == State::ready) {
        for (const auto& [key, value] : item.placed.about) {
            if (key == "dtype" || key == "tensors" || key == "kind" || key == "family") {
                shown[key] = value;
            }
        }
        shown["bytes"] = item.placed.bytes;
        shown["total"] = item.placed.bytes;
        if (!item.placed.sha256.empty()) {
            shown["sha256"] = item.placed.sha256;
        }
        return shown;
    }
    shown["bytes"] = item.seen->bytes;
    const auto total = item.seen->total ? item.seen->total : item.wish.bytes;
    shown["total"] = total ? json::value(*total) : json::value(nullptr);
    if (!item.error.empty()) {
        shown["error"] = item.error;
        shown["code"] = to_string(item.code);
    }
    return shown;
}

json::object Models::to_json() const {
    json::array list;
    for (const auto& [path, item] : items_) {
        list.emplace_back(to_json(*item));
    }
    return {{"models", std::move(list)}};
}

json::object Models::summary() const {
    std::size_t ready = 0;
    std::size_t failed = 0;
    std::uint64_t bytes = 0;
    std::uint64_t total = 0;
    for (const auto& [path, item] : items_) {
        ready += item->state == State::ready ? 1 : 0;
        failed += item->state == State::failed ? 1 : 0;
        if (item->state == State::fetching) {
            bytes += item->seen->bytes;
            total += item->seen->total.value_or(item->wish.bytes.value_or(0));
        }
    }
    return {
        {"wanted", items_.size()},
        {"ready", ready},
        {"failed", failed},
        {"bytes", bytes},
        {"total", total},
        {"fetched", {{"outside", library_.received(false)}, {"peers", library_.received(true)}}},
    };
}

}  // namespace comfyd::agent
