#include "audit/verify.hpp"

#include "audit/test_support.hpp"

namespace comfyd::audit {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class VerifyTest : public test::LogTest {
protected:
    VerifyTest() {
        write(10);
        found_ = lines(file());  // begin, start, ten, a checkpoint
    }
    // Of the log with these lines.
    std::vector<std::string> findings(const std::vector<std::string>& now) {
        replace(file(), now);
        auto verdict = verify({.files = {file()}, .public_key = signer().public_key()});
        EXPECT_TRUE(verdict);
        return verdict->findings;
    }
    // The same log, as somebody who has no key would write it anew.
    static std::vector<std::string> tied_again(std::vector<std::string> all) {
        Link link;
        for (std::string& text : all) {
            const auto line = read_line(text);
            Event event;
            event.at = *parse_rfc3339(text_of(*line, "time"));
            event.action = text_of(*line, "action");
            event.object = text_of(*line, "object");
            text = make_line(event, "node-a", link);
        }
        return all;
    }

    std::vector<std::string> found_;
};

TEST_F(VerifyTest, FindsNothingInWhatNobodyTouched) {
    EXPECT_THAT(findings(found_), IsEmpty());
}

TEST_F(VerifyTest, FindsALineThatWasChanged) {
    for (const std::size_t at : {0U, 4U, 8U, 11U}) {
        auto now = found_;
        now[at].replace(now[at].find("node-a"), 6, "node-b");
        EXPECT_THAT(
            findings(now),
            ElementsAre(HasSubstr(
                ":" + std::to_string(at + 1) + ": line " + std::to_string(at + 1) + " was changed"
            ))
        );
    }
}

TEST_F(VerifyTest, FindsALineThatWasChangedAndHashedAnew) {
    auto now = found_;
    Link link{4, read_line(now[3])->hash};
    now[4] = make_line(event("job.create", 201, "another"), "node-a", link);
    EXPECT_THAT(findings(now), ElementsAre(HasSubstr(":6: line 6 follows another line")));
}

TEST_F(VerifyTest, FindsWhatIsMissing) {
    auto one = found_;
    one.erase(one.begin() + 4);
    EXPECT_THAT(findings(one), ElementsAre(HasSubstr(":5: line 5 is missing")));
    auto three = found_;
    three.erase(three.begin() + 4, three.begin() + 7);
    EXPECT_THAT(findings(three), ElementsAre(HasSubstr(":5: lines 5 to 7 are missing")));
}

TEST_F(VerifyTest, FindsWhatWasPutInOrMoved) {
    auto doubled = found_;
    doubled.insert(doubled.begin() + 6, doubled[3]);
    EXPECT_THAT(findings(doubled), testing::Contains(HasSubstr(":7: line 4 comes after line 6")));
    auto moved = found_;
    std::swap(moved[4], moved[5]);
    EXPECT_THAT(findings(moved), testing::Contains(HasSubstr(": it was inserted or moved")));
    auto foreign = found_;
    foreign.insert(foreign.begin() + 2, "hello");
    EXPECT_THAT(findings(foreign), ElementsAre(HasSubstr(":3: this is no line of an audit log")));
}

TEST_F(VerifyTest, ALogThatWasWrittenAnewHasNoGoodCheckpoint) {
    auto now = found_;
    now.erase(now.begin() + 5);
    EXPECT_THAT(
        findings(tied_again(now)),
        ElementsAre(HasSubstr("the signature of checkpoint 12 is not good"))
    );
    // By somebody with a key of his own.
    auto other = tied_again({found_.begin(), found_.end() - 1});
    Link link{12, read_line(other.back())->hash};
    const auto mine = signer('m');
    const std::string text = sealed_text(to_rfc3339(clock_.now()), "node-a", link);
    other.push_back(
        make_checkpoint(clock_.now(), "node-a", {mine.public_key(), *mine.sign(text)}, link)
    );
    EXPECT_THAT(findings(other), ElementsAre(HasSubstr("was signed with another key")));
}

TEST_F(VerifyTest, AnEndThatWasCutOffIsSeenByTheCheckpointsElsewhere) {
    const auto compare = [this](const std::vector<std::string>& now) {
        replace(file(), now);
        replace(folder_ / "kept", delivered_);
        return verify({.files = {file()}, .checkpoints = folder_ / "kept"})->findings;
    };
    EXPECT_THAT(compare(found_), IsEmpty());
    const std::vector<std::string> cut(found_.begin(), found_.begin() + 7);
    EXPECT_THAT(findings(cut), IsEmpty()) << "by itself it is as good as before";
    EXPECT_THAT(compare(cut), ElementsAre(HasSubstr("kept:1: checkpoint 13 of ")));
    auto anew = tied_again({found_.begin(), found_.end() - 1});
    Link link{12, read_line(anew.back())->hash};
    const std::string text = sealed_text(to_rfc3339(clock_.now()), "node-a", link);
    anew.push_back(
        make_checkpoint(clock_.now(), "node-a", {signer().public_key(), *signer().sign(text)}, link)
    );
    EXPECT_THAT(compare(anew), ElementsAre(HasSubstr("it was rewritten")))
        << "even by somebody with the key";
}

TEST_F(VerifyTest, ATornEndIsARemark) {
    std::ofstream(file(), std::ios::app) << found_[3].substr(0, 50);
    const auto verdict = verify({.files = {file()}});
    EXPECT_THAT(verdict->findings, IsEmpty());
    EXPECT_THAT(verdict->remarks, ElementsAre(HasSubstr("torn")));
    EXPECT_FALSE(verify({.files = {folder_ / "nothing"}}));
}

TEST_F(VerifyTest, NoByteCanBeAnother) {
    for (std::size_t at = 0; at < found_[5].size(); ++at) {
        auto now = found_;
        now[5][at] = now[5][at] == 'z' ? 'y' : 'z';
        EXPECT_THAT(findings(now), testing::Not(IsEmpty())) << at;
    }
}

}  // namespace
}  // namespace comfyd::audit
