#include "ledger/postgres/procedure.hpp"

namespace comfyd::ledger::postgres {
namespace {

constexpr char kBegin[] = "BEGIN";
constexpr char kCommit[] = "COMMIT";
constexpr char kRollBack[] = "ROLLBACK";

}  // namespace

Statements Transaction::begun(Statements statements) {
    if (is_open_) {
        return statements;
    }
    is_open_ = true;
    Statements all{{kBegin}};
    if (at.term) {
        all.push_back(fence(*at.term));
    }
    all.insert(all.end(), statements.begin(), statements.end());
    return all;
}

Task<Answers> Transaction::ask(Statements statements) {
    const std::size_t count = statements.size();
    auto answers = co_await connection_.run(begun(std::move(statements)));
    if (answers) {
        answers->erase(answers->begin(), answers->end() - static_cast<std::ptrdiff_t>(count));
    }
    co_return answers;
}

Task<Done> Transaction::commit(Statements last) {
    last.push_back({kCommit});
    auto answers = co_await connection_.run(begun(std::move(last)));
    if (!answers) {
        co_return tl::unexpected(std::move(answers.error()));
    }
    is_open_ = false;
    co_return Done();
}

Task<> Transaction::roll_back() {
    if (is_open_) {
        is_open_ = false;
        co_await connection_.run({{kRollBack}});
    }
}

}  // namespace comfyd::ledger::postgres
