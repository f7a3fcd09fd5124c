// The models that an agent is to have: those that must be there before ComfyUI starts, those that
// may come while it runs, and those that somebody asks for meanwhile. Each is fetched, tried again
// where that can help, and told of.
//
// One executor: call it only there.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/pool.hpp"
#include "base/task.hpp"
#include "models/library.hpp"

namespace comfyd::agent {

struct ModelsOptions {
    std::vector<models::ModelWish> wishes{};
    models::LibraryOptions library{};
    Millis retry_min{2'000};  // after a failure; doubles
    Millis retry_max{60'000};
    int tries_max = 5;  // of one that ComfyUI does not wait for
};

class Models {
public:
    enum class State { waiting, fetching, ready, failed };

    struct Events {
        std::function<void()> changed;  // something that is told of
        // A model is there now, with its hash where that is known.
        std::function<Task<>(models::ModelWish wish, std::string sha256)> placed;
    };
    // All outlive it.
    Models(Executor executor, Pool& pool, ModelsOptions options, Events events);

    // Before everything else. Blocks. Those of the disk.
    Result<> open();
    void start(TaskGroup& group);
    // Until all that ComfyUI waits for are there; false: cancelled.
    Task<bool> wait_for_required();
    // Ends all fetches; what has come stays.
    Task<> end();

    // One more, or one that failed again or is there no more. Code::conflict: another one is being
    // fetched under that name; Code::queue_full. Returns how it is now. `ways`: those of the
    // latest call count.
    Task<Result<json::object>> ask(models::ModelWish wish, models::Ways ways);
    Task<std::optional<std::filesystem::path>> find_content(std::string sha256) {
        return library_.find_content(std::move(sha256));
    }

    // Whether ComfyUI is waited for, and why, for a person. Failed: it will not come by itself.
    bool is_missing() const { return missing_ > 0; }
    bool is_failed() const;
    std::string reason() const;
    // {"models":[{"folder","name","source","state","bytes","total","sha256","error","code",…}]}
    json::object to_json() const;
    // {"wanted","ready","failed","bytes","total","fetched":{"outside","peers"}}
    json::object summary() const;

private:
    struct Item {
        models::ModelWish wish;
        State state = State::waiting;
        bool is_awaited = false;  // ComfyUI does not start without it
        std::shared_ptr<models::FetchProgress> seen = std::make_shared<models::FetchProgress>();
        models::Placed placed{};
        models::Ways ways{};
        std::string error{};
        Code code = Code::internal;  // of the error
    };
    using ItemPtr = std::shared_ptr<Item>;

    void begin(const ItemPtr& item);
    Task<> keep(ItemPtr item);
    Task<bool> try_once(ItemPtr item);
    Task<> tell_progress();
    void count_missing();
    void forget_one();
    static json::object to_json(const Item& item);

    ModelsOptions options_;
    Events events_;
    models::Library library_;
    std::map<std::string, ItemPtr> items_;  // by folder and name
    std::size_t missing_ = 0;
    TaskGroup* group_ = nullptr;
    Signal settled_;
};

std::string_view to_string(Models::State state);

}  // namespace comfyd::agent
