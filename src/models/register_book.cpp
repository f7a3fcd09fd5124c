#include "models/register_book.hpp"

#include <utility>

namespace comfyd::models {
RegisterBook::RegisterBook(
    Executor executor, std::vector<RegisteredModel> configured, RegisterStore& store
)
    : configured_(std::move(configured)),
      store_(store),
      known_(
          executor,
          {.what = "the register of models",
           .changes = [&store] { return store.model_changes(); },
           .read = [this] { return read_all(); },
           .then = [this] { return store_learned(); }},
          std::make_shared<const Register>(configured_, std::vector<ModelRecord>())
      ) {}

RegisterBook::~RegisterBook() = default;

Task<Result<Mirror<Register>::Reading>> RegisterBook::read_all() {
    auto all = co_await store_.all_models();
    if (!all) {
        co_return fail(std::move(all.error()));
    }
    co_return Mirror<Register>::Reading{
        all->changes, std::make_shared<const Register>(configured_, all->records)
    };
}

void RegisterBook::learn(FileFacts facts) {
    if (facts.sha256.empty() || !facts.has_head()) {
        return;
    }
    const auto known = now();
    const Lock lock(mutex_);
    if (known->contents() + learned_.size() < kContentsMax &&
        known->find_content(facts.sha256) == nullptr) {
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
