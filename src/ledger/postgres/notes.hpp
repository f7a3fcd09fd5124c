// The table of jobs::Notebook.
#pragma once

#include <string>

#include "ledger/postgres/batch.hpp"

namespace comfyd::ledger::postgres {

class WriteNote final : public WriteOf<void> {
public:
    WriteNote(std::string name, std::string text)
        : name_(std::move(name)), text_(std::move(text)) {}
    std::size_t bytes() const override { return 128 + name_.size() + text_.size(); }
    bool join(Batch& batch) override {
        batch.add({kWrite, {name_, batch.at.now, text_}});
        return true;
    }
    void conclude(const Batch&) override { outcome.emplace(); }

private:
    static constexpr char kWrite[] =
        "INSERT INTO notes (name, updated_at, text) VALUES ($1, $2, $3) "
        "ON CONFLICT (name) DO UPDATE SET updated_at = excluded.updated_at, text = excluded.text";

    std::string name_;
    std::string text_;
};

inline Statement find_note(const std::string& name) {
    static constexpr char kFind[] = "SELECT text FROM notes WHERE name = $1";
    return {kFind, {name}};
}

}  // namespace comfyd::ledger::postgres
