#include "app/class_board.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

namespace comfyd::app {
namespace {

using Catalogue = workflow::Catalogue;

class Notes final : public jobs::Notebook {
public:
    Task<Result<>> write_note(std::string name, std::string text) override {
        notes[name] = std::move(text);
        co_return Result<>();
    }
    Task<Result<std::optional<std::string>>> read_note(std::string name) override {
        const auto found = notes.find(name);
        co_return found == notes.end() ? std::nullopt : std::optional(found->second);
    }

    std::map<std::string, std::string> notes;
};

// A node with its board, over notes that it shares with others.
struct Node {
    explicit Node(Notes& notes, std::map<std::string, std::string> software = {})
        : board(io.get_executor(), notes, pool, {"main"}, std::move(software)) {
        board.start(cache);
    }
    ~Node() { wait(board.stop()); }

    template <class T>
    T wait(Task<T> task) {
        auto done = boost::asio::co_spawn(
            Executor(io.get_executor()), std::move(task), boost::asio::use_future
        );
        while (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            io.run_one();
        }
        return done.get();
    }
    bool run_until(const std::function<bool()>& holds) {
        const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!holds() && std::chrono::steady_clock::now() < give_up) {
            io.run_one_for(std::chrono::milliseconds(100));
        }
        return holds();
    }
    // A worker with this one class.
    std::shared_ptr<const Catalogue> worker_with(
        const std::string& name, const std::string& software = ""
    ) {
        const std::string info = "{\"" + name +
                                 "\": {\"input\": {\"required\": {}}, \"output\": []" +
                                 ", \"name\": \"" + name + "\"}}";
        auto classes = wait(cache.read({info, {}, {}}));
        return std::make_shared<Catalogue>(
            std::vector<Catalogue::Entry>{{"gpu", std::move(*classes), "default", software}}
        );
    }
    bool knows(const std::string& name) const { return board.catalogue()->find(name) != nullptr; }

    boost::asio::io_context io{1};
    Pool pool{1};
    fleet::ClassCache cache{pool, [this](auto name, auto told) {
                                board.keep(std::move(name), std::move(told));
                            }};
    ClassBoard board;
};

TEST(ClassBoard, WhatALeadersWorkersCanRunIsKnownToTheOthers) {
    Notes notes;
    Node leader(notes);
    const auto workers = leader.worker_with("SaveImage");
    leader.board.set_led("main", [workers] { return workers; });
    EXPECT_TRUE(leader.run_until([&] { return notes.notes.contains("workers/main"); }));
    Node other(notes);
    EXPECT_TRUE(other.run_until([&] { return other.knows("SaveImage"); }));
}

TEST(ClassBoard, MachinesAndWhatMayComeAreKnownToTheOthers) {
    Notes notes;
    Node leader(notes);
    auto entry = leader.worker_with("SaveImage")->workers().front();
    entry.gpu = "NVIDIA L40S";
    entry.region = "eu";
    entry.gpu_memory_bytes = 48'000'000'000;
    auto memory = entry;
    memory.worker = "pool cloud";
    memory.pool = "cloud";
    memory.is_memory = true;
    const auto workers = std::make_shared<const Catalogue>(
        std::vector<Catalogue::Entry>{entry, memory},
        std::vector<Catalogue::Prospect>{{"cloud", "H200", "us"}, {"cloud", "L4", "", true}}
    );
    leader.board.set_led("main", [workers] { return workers; });
    EXPECT_TRUE(leader.run_until([&] { return notes.notes.contains("workers/main"); }));
    Node other(notes);
    ASSERT_TRUE(other.run_until([&] { return other.knows("SaveImage"); }));
    const auto read = other.board.catalogue();
    ASSERT_EQ(read->workers().size(), 2U);
    EXPECT_EQ(read->workers()[0].facts().gpu, "NVIDIA L40S");
    EXPECT_EQ(read->workers()[0].region, "eu");
    EXPECT_EQ(read->workers()[0].gpu_memory_bytes, 48'000'000'000U);
    EXPECT_TRUE(read->workers()[1].is_memory);
    EXPECT_EQ(read->prospects(), workers->prospects());
    EXPECT_TRUE(read->can_run(Requirement().on({.gpu = "H200", .region = "us"})));
    EXPECT_FALSE(read->can_run(Requirement().on({.gpu = "H200", .region = "eu"})));
    EXPECT_TRUE(read->can_run(Requirement().on({.gpu = "L4"})));
    EXPECT_FALSE(read->can_run(Requirement().on({.gpu = "L4", .region = "us"}))) << "it is here";
}

TEST(ClassBoard, WhatWasReadBeforeTheLeadBeganIsShared) {
    Notes notes;
    Node leader(notes);
    const auto workers = leader.worker_with("SaveImage");
    const auto has_document = [&] {
        const auto first = notes.notes.lower_bound("classes/");
        return first != notes.notes.end() && first->first.starts_with("classes/");
    };
    EXPECT_TRUE(leader.run_until(has_document));
}

TEST(ClassBoard, ANewLeadersWorkersThatHaveNotSpokenYetForgetNothing) {
    Notes notes;
    {
        Node before(notes);
        const auto workers = before.worker_with("SaveImage");
        before.board.set_led("main", [workers] { return workers; });
        ASSERT_TRUE(before.run_until([&] { return notes.notes.contains("workers/main"); }));
    }
    const auto written = notes.notes;
    int asked = 0;  // until the board's end, too
    auto now = std::make_shared<const Catalogue>(std::vector<Catalogue::Entry>());
    Node next(notes);
    ASSERT_TRUE(next.run_until([&] { return next.knows("SaveImage"); }));
    next.board.set_led("main", [&] { return ++asked, now; });
    EXPECT_TRUE(next.run_until([&] { return asked > 2; }));
    EXPECT_TRUE(next.knows("SaveImage"));
    EXPECT_EQ(notes.notes, written);
    now = next.worker_with("LoadImage");
    EXPECT_TRUE(next.run_until([&] { return notes.notes != written && next.knows("LoadImage"); }));
    EXPECT_FALSE(next.knows("SaveImage"));
}

TEST(ClassBoard, WhatWasToldJustBeforeTheEndIsWrittenDown) {
    Notes notes;
    {
        Node leader(notes);
        const auto workers = leader.worker_with("SaveImage");
        leader.board.set_led("main", [workers] { return workers; });
    }
    Node next(notes);
    next.wait(next.board.recall());
    EXPECT_TRUE(next.knows("SaveImage"));
}

TEST(ClassBoard, WhatMachinesOfOtherSoftwareCouldRunTellsNothing) {
    Notes notes;
    {
        Node before(notes, {{"default", "first"}});
        const auto workers = before.worker_with("SaveImage", "first");
        before.board.set_led("main", [workers] { return workers; });
        ASSERT_TRUE(before.run_until([&] { return notes.notes.contains("workers/main"); }));
    }
    Node same(notes, {{"default", "first"}});
    ASSERT_TRUE(same.run_until([&] { return same.knows("SaveImage"); }));
    EXPECT_EQ(same.board.catalogue()->workers().front().software, "first");
    Node other(notes, {{"default", "second"}, {"another", "first"}});
    other.wait(other.board.recall());
    EXPECT_FALSE(other.knows("SaveImage"));
}

TEST(ClassBoard, WorkersThatAreGoneAfterTheyToldAreNotThoseOfThePredecessor) {
    Notes notes;
    {
        Node before(notes);
        const auto workers = before.worker_with("SaveImage");
        before.board.set_led("main", [workers] { return workers; });
        ASSERT_TRUE(before.run_until([&] { return notes.notes.contains("workers/main"); }));
    }
    std::shared_ptr<const Catalogue> now;  // until the board's end, too
    Node next(notes);
    ASSERT_TRUE(next.run_until([&] { return next.knows("SaveImage"); }));
    now = next.worker_with("LoadImage");
    next.board.set_led("main", [&] { return now; });
    ASSERT_TRUE(next.run_until([&] { return next.knows("LoadImage"); }));
    now = std::make_shared<const Catalogue>(std::vector<Catalogue::Entry>());
    EXPECT_TRUE(next.run_until([&] { return !next.board.catalogue()->knows_workers(); }));
    EXPECT_TRUE(next.run_until([&] {
        return notes.notes.at("workers/main").find("gpu") == std::string::npos;
    }));
}

}  // namespace
}  // namespace comfyd::app
