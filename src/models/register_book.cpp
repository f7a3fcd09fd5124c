#include "models/register_book.hpp"

#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/on_executor.hpp"

namespace comfyd::models {
namespace {

constexpr Millis kLookEvery{1'000};

}  // namespace

RegisterBook::RegisterBook(
    Executor executor, std::vector<RegisteredModel> configured, RegisterStore& store
)
    : executor_(executor),
      configured_(std::move(configured)),
      store_(store),
      now_(std::make_shared<const Register>(configured_, AllModels())) {}

RegisterBook::~RegisterBook() = default;

std::shared_ptr<const Register> RegisterBook::now() const {
    const Lock lock(mutex_);
    return now_;
}

void RegisterBook::start() {
    COMFYD_ON(executor_);
    COMFYD_ASSERT(!group_);
    group_.emplace(executor_);
    group_->spawn("register of models", keep_up());
}

Task<> RegisterBook::stop() {
    COMFYD_ON(executor_);
    if (group_) {
        group_->cancel();
        co_await group_->join();
        group_.reset();
    }
}

Task<> RegisterBook::keep_up() {
    bool go_on = true;
    bool has_failed = false;
    while (go_on) {
        auto refreshed = co_await refresh();
        if (!refreshed && !has_failed) {
            log::warning(
                "cannot read the register of models", {{"error", refreshed.error().message}}
            );
        }
        has_failed = !refreshed;
        if (refreshed) {
            co_await store_learned();
        }
        go_on = co_await sleep_for(kLookEvery);
    }
}

void RegisterBook::learn(FileFacts facts) {
    if (facts.sha256.empty() || !facts.has_head()) {
        return;
    }
    const Lock lock(mutex_);
    const std::size_t known = now_->contents() + learned_.size();
    if (known < kContentsMax && now_->find_content(facts.sha256) == nullptr) {
        learned_.try_emplace(facts.sha256, std::move(facts));
    }
}

// Another node may have been told the same: then its word stands.
Task<> RegisterBook::store_learned() {
    std::map<std::string, FileFacts> learned;
    {
        const Lock lock(mutex_);
        learned.swap(learned_);
    }
    const auto known = now();
    bool go_on = true;
    for (auto next = learned.begin(); next != learned.end() && go_on; ++next) {
        if (known->find_content(next->first) != nullptr) {
            continue;
        }
        auto saved = co_await store_.save_model(to_record(next->first, next->second));
        go_on = saved || saved.error().code == Code::conflict;  // else agents tell it again
    }
}

Task<Result<>> RegisterBook::refresh() {
    auto changes = co_await store_.model_changes();
    if (!changes) {
        co_return fail(std::move(changes.error()));
    }
    bool is_known = false;
    {
        const Lock lock(mutex_);
        is_known = has_read_ && now_->changes() >= *changes;
    }
    if (is_known) {
        co_return Result<>();
    }
    auto all = co_await store_.all_models();
    if (!all) {
        co_return fail(std::move(all.error()));
    }
    auto next = std::make_shared<const Register>(configured_, *all);
    const Lock lock(mutex_);
    if (!has_read_ || now_->changes() <= next->changes()) {  // else another has read later
        now_ = std::move(next);
        has_read_ = true;
    }
    co_return Result<>();
}

Task<Result<>> RegisterBook::save(RegisteredModel model) {
    const auto before = now();
    const RegisteredModel* known = before->find(model.path());
    if (known != nullptr && known->revision == 0) {
        co_return fail(
            Code::conflict,
            "the model '" + model.path() +
                "' is set in the configuration of the server; change it there"
        );
    }
    if (known == nullptr && before->models().size() >= kModelsMax) {
        co_return fail(Code::conflict, "there are too many models already; remove one first");
    }
    if (model.revision == 0 && before->removed() >= kRemovedMax) {
        co_return fail(
            Code::conflict,
            "too many models were removed; add a version of one that there is or was"
        );
    }
    model.revision += 1;
    auto saved = co_await store_.save_model(to_record(model));
    if (!saved) {
        co_return saved;
    }
    auto refreshed = co_await refresh();
    co_return refreshed;
}

Task<Result<>> RegisterBook::remove(RegisteredModel model) {
    model.versions.clear();
    auto saved = co_await save(std::move(model));
    co_return saved;
}

}  // namespace comfyd::models
