#include "ledger/sqlite/log_room.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "ledger/sqlite/database.hpp"
#include "ledger/test_support.hpp"

namespace comfyd::ledger::test {
namespace {

namespace fs = std::filesystem;

constexpr char kAdd[] = "INSERT INTO numbers (number) VALUES (1)";
constexpr char kCount[] = "SELECT count(*) FROM numbers";

class LogRoomTest : public testing::Test {
protected:
    void SetUp() override {
        std::ofstream(path_).close();
        db_ = get(sqlite::Database::open(path_, sqlite::Mode::read_write, Millis(0)));
        get(db_->execute("PRAGMA journal_mode = WAL;CREATE TABLE numbers (number INTEGER)"));
    }
    void add() { get(sqlite::Query(*db_, kAdd).run()); }
    fs::path log() const { return path_.string() + "-wal"; }
    // What a crash at this moment would leave.
    std::int64_t count_after_crash() {
        const fs::path copy = folder_.path() / "copy.db";
        fs::copy_file(path_, copy, fs::copy_options::overwrite_existing);
        fs::copy_file(log(), copy.string() + "-wal", fs::copy_options::overwrite_existing);
        auto db = get(sqlite::Database::open(copy, sqlite::Mode::read_write, Millis(0)));
        return get(db->integer(kCount));
    }

    TempFolder folder_;
    fs::path path_ = folder_.path() / "numbers.db";
    std::unique_ptr<sqlite::Database> db_;
};

TEST_F(LogRoomTest, ZerosBehindTheLogAreNoPartOfIt) {
    add();
    const std::uint64_t used = fs::file_size(log());
    sqlite::LogRoom room(log(), 3 * 1024 * 1024);
    room.make(used);
    EXPECT_EQ(fs::file_size(log()), 1024U * 1024);
    EXPECT_EQ(count_after_crash(), 1);
    add();
    EXPECT_EQ(fs::file_size(log()), 1024U * 1024) << "it was overwritten";
    EXPECT_EQ(count_after_crash(), 2);
    room.make(used);
    EXPECT_EQ(fs::file_size(log()), 1024U * 1024) << "there is room still";
    room.make(1000U * 1024);
    EXPECT_EQ(fs::file_size(log()), 2000U * 1024);
    room.make(1900U * 1024);
    EXPECT_EQ(fs::file_size(log()), 3U * 1024 * 1024) << "no further than it may";
    EXPECT_EQ(count_after_crash(), 2);
}

TEST_F(LogRoomTest, ALogThatIsNotThereStaysAway) {
    const fs::path nothing = folder_.path() / "nothing-wal";
    sqlite::LogRoom room(nothing, 1024 * 1024);
    room.make(0);
    EXPECT_FALSE(fs::exists(nothing));
}

}  // namespace
}  // namespace comfyd::ledger::test
