// A write that waits in the writer's queue: see ledger/awaited.hpp.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "ledger/awaited.hpp"
#include "ledger/sqlite/session.hpp"

namespace comfyd::ledger::sqlite {

class Operation : public Awaited {
public:
    using Awaited::Awaited;
    // A failure of storage, which fails the whole batch, is returned; any other outcome is kept for
    // complete().
    virtual Result<> execute(Session& session) = 0;
    // All that was there before stays as it is.
    virtual bool only_adds() const = 0;
};

inline bool is_storage_failure(Code code) {
    return code == Code::storage_full || code == Code::storage_unavailable;
}

template <class Work, class Handler>
class AwaitedOperation final : public Operation {
public:
    using Value = typename Work::Value;

    AwaitedOperation(Executor executor, std::unique_ptr<Work> work, Handler handler)
        : Operation(executor, work->bytes()),
          work_(std::move(work)),
          handler_(std::move(handler)) {}

    Result<> execute(Session& session) override {
        outcome_.emplace((*work_)(session));
        if (!*outcome_ && is_storage_failure(outcome_->error().code)) {
            return fail(outcome_->error());
        }
        return {};
    }
    bool only_adds() const override {
        return requires { typename Work::OnlyAdds; };
    }
    void set_failed(const Error& error) override { outcome_.emplace(fail(error)); }
    void complete(std::unique_ptr<Awaited> self) override {
        Handler handler = std::move(handler_);
        Result<Value> outcome = std::move(*outcome_);
        self.reset();
        std::move(handler)(std::move(outcome));
    }

private:
    std::unique_ptr<Work> work_;
    Handler handler_;
    std::optional<Result<Value>> outcome_;
};

}  // namespace comfyd::ledger::sqlite
