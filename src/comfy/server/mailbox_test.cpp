#include "comfy/server/mailbox.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

namespace comfyd::comfy::server {
namespace {

class Mailboxes : public testing::Test {
protected:
    std::shared_ptr<Mailbox> make(MailboxLimits limits = {}) {
        return std::make_shared<Mailbox>(io_.get_executor(), limits);
    }
    Result<FramePtr> next(Mailbox& mailbox) {
        auto taken = boost::asio::co_spawn(io_, mailbox.next(Millis(0)), boost::asio::use_future);
        io_.restart();
        io_.run();
        return taken.get();
    }
    // The types of all that waits.
    std::vector<std::string> drain(Mailbox& mailbox) {
        std::vector<std::string> types;
        for (auto frame = next(mailbox); frame; frame = next(mailbox)) {
            types.push_back(
                (*frame)->preview ? "preview"
                                  : std::string((*frame)->message.at("type").as_string())
            );
        }
        return types;
    }
    static FramePtr picture(std::size_t bytes) {
        Preview preview;
        preview.bytes.resize(bytes);
        return make_frame(std::move(preview));
    }
    static FramePtr text(std::size_t bytes) {
        return make_frame("text", {{"text", std::string(bytes, 'x')}});
    }

    boost::asio::io_context io_;
};

TEST_F(Mailboxes, KeepTheOrder) {
    const auto mailbox = make();
    mailbox->push(make_status(1, false));
    mailbox->push(text(1));
    mailbox->push(make_status(2, false));
    EXPECT_EQ(drain(*mailbox), (std::vector<std::string>{"status", "text", "status"}));
    EXPECT_EQ(next(*mailbox).error().code, Code::request_timeout);
    mailbox->end(Code::shutting_down);
    EXPECT_EQ(next(*mailbox).error().code, Code::shutting_down);
}

TEST_F(Mailboxes, TellWhoLagsBehindOnlyTheNewestLengthOfTheQueue) {
    const auto mailbox = make({.lagging = 2});
    mailbox->push(text(1));
    for (std::size_t length = 0; length < 4; ++length) {
        mailbox->push(make_status(length, false));
    }
    EXPECT_EQ(drain(*mailbox), (std::vector<std::string>{"text", "status"}));
}

TEST_F(Mailboxes, LosePicturesFirst) {
    const auto mailbox = make({.picture_bytes_max = 1'000});
    mailbox->push(picture(5'000));
    mailbox->push(picture(10));
    mailbox->push(text(1));
    EXPECT_EQ(drain(*mailbox), (std::vector<std::string>{"preview", "text"}))
        << "a single one may be larger";
    EXPECT_FALSE(mailbox->has_ended());
}

TEST_F(Mailboxes, WherePicturesAreResultsAreFullOfThemToo) {
    const auto mailbox = make({.text_bytes_max = 1'000, .picture_bytes_max = std::nullopt});
    bool cut_off = false;
    mailbox->on_full([&cut_off] { cut_off = true; });
    mailbox->push(picture(5'000));
    EXPECT_FALSE(cut_off) << "a single one may be larger";
    EXPECT_TRUE(mailbox->is_behind());
    mailbox->push(picture(10));
    EXPECT_TRUE(cut_off);
    EXPECT_EQ(next(*mailbox).error().code, Code::too_many_streams);
}

TEST_F(Mailboxes, AreFullByTextsAndByFrames) {
    const auto texts = make({.text_bytes_max = 1'000});
    texts->push(text(900));
    texts->push(text(900));
    EXPECT_TRUE(texts->has_ended());
    const auto frames = make({.frames_max = 2});
    for (int i = 0; i < 3; ++i) {
        frames->push(text(1));
    }
    EXPECT_TRUE(frames->has_ended());
}

}  // namespace
}  // namespace comfyd::comfy::server
