#include "audit/journal.hpp"

#include <future>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "audit/cut_address.hpp"
#include "audit/test_support.hpp"
#include "audit/verify.hpp"

namespace comfyd::audit {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class JournalTest : public test::LogTest {
protected:
    Verdict verify_all() const {
        auto verdict = verify({.files = files_in(options_.folder)});
        EXPECT_TRUE(verdict);
        return *verdict;
    }
};

TEST_F(JournalTest, SaysWhoDidWhatFromWhere) {
    {
        const auto journal = open();
        Event made = event("key.create", 201, "p0Y3rTqK");
        made.key = "boss";
        made.request = "r-1";
        made.method = "POST";
        made.route = "/admin/v1/keys";
        journal->record(made);
    }
    const auto found = lines(file());
    ASSERT_EQ(found.size(), 4U) << "begin, start, the key, a checkpoint";
    EXPECT_THAT(
        found[2],
        HasSubstr(
            R"("node":"node-a","action":"key.create","outcome":"ok","status":201,"tenant":"acme",)"
            R"("key":"boss","from":"192.0.2.7","request":"r-1","method":"POST",)"
            R"("route":"/admin/v1/keys","object":"p0Y3rTqK")"
        )
    );
    EXPECT_EQ(delivered_, std::vector{found[3]});
    EXPECT_EQ(fs::status(file()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(JournalTest, OneChainGoesOnThroughRestartsAndFiles) {
    options_.files = {500, 100};  // every start has a file of its own
    for (const int count : {1, 50, 0, 7, 200}) {
        write(count);
    }
    EXPECT_GT(files_in(options_.folder).size(), 3U);
    const Verdict verdict = verify_all();
    EXPECT_THAT(verdict.findings, testing::IsEmpty());
    EXPECT_EQ(verdict.lines, 1U + 5 + 258 + 5);
    EXPECT_EQ(verdict.last_seq, verdict.lines);
    EXPECT_EQ(verdict.checkpoints, 5U);
    EXPECT_EQ(verdict.sealed_seq, verdict.last_seq);
}

TEST_F(JournalTest, KeepsNoMoreFilesThanItMay) {
    options_.files = {500, 3};
    for (int i = 0; i < 10; ++i) {
        write(5);
    }
    const auto files = files_in(options_.folder);
    EXPECT_EQ(files.size(), 3U);
    const Verdict verdict = verify_all();
    EXPECT_THAT(verdict.findings, testing::IsEmpty()) << "those that are there fit together";
    EXPECT_GT(verdict.first_seq, 1U);
}

TEST_F(JournalTest, ATornLastLineIsCutOffAndTold) {
    write(3);
    const std::string whole = read(file());
    for (const std::size_t cut : {1U, 40U, 200U}) {
        std::ofstream(file(), std::ios::app) << whole.substr(0, cut);
        write(1);
        EXPECT_THAT(
            read(file()), HasSubstr("\"note\":\"" + std::to_string(cut) + " bytes of a line")
        );
    }
    const Verdict verdict = verify_all();
    EXPECT_THAT(verdict.findings, testing::IsEmpty());
    EXPECT_EQ(verdict.remarks.size(), 3U);
}

TEST_F(JournalTest, AfterAnEndThatCannotBeReadANewChainBegins) {
    for (const std::string& end :
         {std::string("{\"seq\":5}\n"), std::string(30'000, 'x'), std::string("\n\n")}) {
        write(2);
        std::ofstream(file(), std::ios::app) << end;
        write(2);
        EXPECT_THAT(lines(file()).front(), HasSubstr("\"seq\":1,"));
        EXPECT_THAT(lines(file()).front(), HasSubstr("cannot be read"));
    }
    EXPECT_GT(verify_all().findings_count, 2U);
}

TEST_F(JournalTest, ALogHasOneWriter) {
    const auto journal = open();
    const auto second = Journal::open(options_, signer(), clock_);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::conflict);
}

TEST_F(JournalTest, WhoeverTriesManyKeysFillsNoLog) {
    {
        const auto journal = open();
        for (int i = 0; i < 5'000; ++i) {
            journal->record(event("login.refused", 401));
        }
        for (int i = 0; i < 3'000; ++i) {
            Event other = event("login.refused", 401);
            other.from = "10." + std::to_string(i / 200) + "." + std::to_string(i % 200) + ".1";
            journal->record(std::move(other));
        }
        for (int i = 0; i < 700; ++i) {
            Event other = event("login.refused", 401);
            other.from = "192.0.2." + std::to_string(i % 200);
            journal->record(std::move(other));
        }
    }
    const auto found = lines(file());
    EXPECT_LT(found.size(), 1'100U);
    EXPECT_THAT(read(file()), HasSubstr("\"count\":5699"));
    EXPECT_THAT(read(file()), HasSubstr("\"from\":\"(many)\""));
}

TEST_F(JournalTest, WhatStrangersSendStaysInItsPlace) {
    {
        const auto journal = open();
        journal->record(
            event("job.read", 200, "a\"}\n{\"seq\":9,\x1b[2J\xff" + std::string(9'000, 'x'))
        );
    }
    const auto found = lines(file());
    EXPECT_EQ(found.size(), 4U);
    EXPECT_LT(found[2].size(), 1'000U);
    EXPECT_THAT(found[2], Not(HasSubstr("\x1b")));
    EXPECT_THAT(verify_all().findings, testing::IsEmpty());
}

TEST_F(JournalTest, CutsAddressesWhereItShould) {
    EXPECT_EQ(cut_address("192.0.2.7"), "192.0.2.0/24");
    EXPECT_EQ(cut_address("::ffff:192.0.2.7"), "192.0.2.0/24");
    EXPECT_EQ(cut_address("2001:db8:1:2::3"), "2001:db8:1::/48");
    EXPECT_EQ(cut_address(""), "");
    options_.cuts_addresses = true;
    write(1);
    EXPECT_THAT(read(file()), HasSubstr("\"from\":\"192.0.2.0/24\""));
    EXPECT_THAT(read(file()), Not(HasSubstr("192.0.2.7")));
}

TEST_F(JournalTest, WhatIsStoredIsInTheFile) {
    const auto journal = open();
    boost::asio::io_context context;
    for (int i = 0; i < 20; ++i) {
        auto stored = boost::asio::co_spawn(
            context.get_executor(),
            journal->store(event("tenant.delete", 200, "t" + std::to_string(i))),
            boost::asio::use_future
        );
        context.restart();
        context.run();
        EXPECT_TRUE(stored.get());
        EXPECT_THAT(read(file()), HasSubstr("\"object\":\"t" + std::to_string(i) + "\""));
    }
}

TEST_F(JournalTest, WhatCannotBeWrittenIsCountedAndTold) {
    options_.files.bytes_max = 1;  // every batch has a file of its own
    auto journal = open();
    boost::asio::io_context context;
    const auto store = [&](const std::string& object) {
        auto stored = boost::asio::co_spawn(
            context.get_executor(),
            journal->store(event("key.create", 201, object)),
            boost::asio::use_future
        );
        context.restart();
        context.run();
        return stored.get();
    };
    ASSERT_TRUE(store("first"));
    const fs::path away = folder_ / "away";
    fs::rename(options_.folder, away);
    EXPECT_FALSE(store("second"));
    EXPECT_FALSE(store("third"));
    EXPECT_EQ(journal->counts().lost, 2U);
    fs::rename(away, options_.folder);
    EXPECT_TRUE(store("fourth"));
    journal->stop();
    std::string all;
    for (const auto& path : files_in(options_.folder)) {
        all += read(path);
    }
    EXPECT_THAT(all, HasSubstr("\"action\":\"audit.lost\",\"count\":2"));
    EXPECT_THAT(all, Not(HasSubstr("second")));
    EXPECT_THAT(verify_all().findings, testing::IsEmpty());
    EXPECT_FALSE(store("after the end"));
}

}  // namespace
}  // namespace comfyd::audit
