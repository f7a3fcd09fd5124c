// The register of models as all nodes have it: read again whenever it was changed, by whichever
// node. Any thread, but for start() and stop().
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mirror.hpp"
#include "base/mutex.hpp"
#include "base/task.hpp"
#include "base/time.hpp"
#include "models/register.hpp"

namespace comfyd::models {

inline constexpr std::size_t kModelsMax = 10'000;
inline constexpr std::size_t kRemovedMax = 100'000;  // whose numbers are remembered
inline constexpr std::size_t kContentsMax = 20'000;

class RegisterBook {
public:
    // `store` outlives it.
    RegisterBook(Executor executor, std::vector<RegisteredModel> configured, RegisterStore& store);
    ~RegisterBook();

    // As it was read last; never null.
    std::shared_ptr<const Register> now() const { return known_.now(); }

    // Reads what was changed. Whoever answers a request about models does so first.
    Task<Result<>> refresh() { return known_.refresh(); }
    void start() { known_.start(); }  // on the executor: refresh() every second
    Task<> stop() { return known_.stop(); }

    // Stores it as a change of what is known here, which knows it afterwards. Code::conflict when
    // another was faster, for what the configuration has, and when there are too many.
    Task<Result<>> save(RegisteredModel model);
    // Likewise; its numbers are not used again.
    Task<Result<>> remove(RegisteredModel model);

    // Somebody has read a file with this content: stored within a second where it was not known.
    void learn(FileFacts facts);

private:
    Task<Result<Mirror<Register>::Reading>> read_all();
    Task<> store_learned();

    const std::vector<RegisteredModel> configured_;
    RegisterStore& store_;
    Mirror<Register> known_;
    mutable Mutex mutex_;
    std::map<std::string, FileFacts> learned_ COMFYD_GUARDED_BY(mutex_);  // and not stored yet
};

}  // namespace comfyd::models
