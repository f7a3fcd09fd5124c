#include "models/uploads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/crypto.hpp"
#include "net/test_support.hpp"
#include "support/model_server.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::models {
namespace {

namespace fs = std::filesystem;

using testing::HasSubstr;

class UploadsTest : public testing::Test {
protected:
    UploadsTest() { open(); }

    void open() { uploads_ = std::make_unique<Uploads>(pool_, folder_.path() / "models"); }
    template <class T>
    T run(Task<T> task) {
        return loop_.run(std::move(task));
    }
    Uploads::Part part(std::uint64_t first = 0) const { return {sha256_, first, file_.size()}; }
    // The bytes from there to there.
    Result<std::optional<FileFacts>> send(std::size_t first, std::size_t last) {
        auto writer = run(uploads_->begin(part(first)));
        if (!writer) {
            return fail(writer.error());
        }
        auto written = run(uploads_->append(*writer, file_.substr(first, last - first)));
        return written ? run(uploads_->end(*writer)) : fail(written.error());
    }

    support::TempDir folder_;
    std::string file_ = support::lora_file(768);
    std::string sha256_ = to_hex(comfyd::sha256(file_));
    net::test::Loop loop_;
    Pool pool_{2};
    std::unique_ptr<Uploads> uploads_;
};

TEST_F(UploadsTest, AFileComesInPartsAndIsKnownByWhatIsInIt) {
    EXPECT_FALSE(*run(uploads_->find(sha256_)));
    auto sent = send(0, 100);
    ASSERT_TRUE(sent) << sent.error().message;
    EXPECT_FALSE(*sent);
    EXPECT_EQ((*run(uploads_->find(sha256_)))->bytes, 100U);
    EXPECT_FALSE(fs::exists(uploads_->path_of(sha256_)));
    sent = send(100, 200);
    EXPECT_TRUE(sent);
    sent = send(200, file_.size());
    ASSERT_TRUE(sent && *sent);
    EXPECT_EQ((*sent)->kind, "lora");
    EXPECT_EQ((*sent)->family, "sd15");
    EXPECT_EQ((*sent)->bytes, file_.size());
    EXPECT_EQ(support::read_file(uploads_->path_of(sha256_)), file_);
    EXPECT_TRUE((*run(uploads_->find(sha256_)))->is_whole);
    EXPECT_EQ(run(uploads_->begin(part())).error().code, Code::conflict);
    EXPECT_TRUE(*run(uploads_->remove(sha256_)));
    EXPECT_FALSE(*run(uploads_->remove(sha256_)));
}

TEST_F(UploadsTest, AfterARestartItGoesOnWhereItWas) {
    ASSERT_TRUE(send(0, 150));
    open();
    const auto elsewhere = send(100, file_.size());
    ASSERT_FALSE(elsewhere);
    EXPECT_EQ(elsewhere.error().code, Code::conflict);
    EXPECT_EQ(*json::find_int(elsewhere.error().details, "bytes"), 150);
    const auto rest = send(150, file_.size());
    ASSERT_TRUE(rest && *rest) << rest.error().message;
    EXPECT_EQ(support::read_file(uploads_->path_of(sha256_)), file_);
    // From the beginning at any time.
    ASSERT_TRUE(*run(uploads_->remove(sha256_)));
    ASSERT_TRUE(send(0, 150));
    EXPECT_TRUE(send(0, file_.size()).value());
}

TEST_F(UploadsTest, WhatCannotBeginLeavesNothing) {
    constexpr std::uint64_t kMoreThanAnyDisk = std::uint64_t{1} << 60;
    for (int i = 0; i < 40; ++i) {
        auto huge = part();
        huge.sha256 = to_hex(comfyd::sha256(std::to_string(i)));
        huge.total = kMoreThanAnyDisk;
        EXPECT_EQ(run(uploads_->begin(huge)).error().code, Code::storage_full);
        EXPECT_FALSE(*run(uploads_->find(huge.sha256)));
        huge.first = 5;
        EXPECT_EQ(run(uploads_->begin(huge)).error().code, Code::conflict);
        EXPECT_FALSE(*run(uploads_->find(huge.sha256)));
    }
    EXPECT_TRUE(send(0, file_.size()).value());
}

TEST_F(UploadsTest, NothingStaysOfWhatIsNotRight) {
    const std::string right = file_;
    file_[file_.size() - 1] ^= 1;
    auto sent = send(0, file_.size());
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, Code::hash_mismatch);
    EXPECT_FALSE(*run(uploads_->find(sha256_)));
    file_ = "no safetensors file at all, whatever its hash is";
    sha256_ = to_hex(comfyd::sha256(file_));
    sent = send(0, file_.size());
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().code, Code::hash_mismatch);
    EXPECT_FALSE(fs::exists(uploads_->path_of(sha256_)));
    auto other = part();
    other.is_safetensors = false;
    auto writer = run(uploads_->begin(other));
    ASSERT_TRUE(writer);
    EXPECT_EQ(run(uploads_->append(*writer, file_ + "more")).error().code, Code::payload_too_large);
    EXPECT_EQ(run(uploads_->begin(other)).error().code, Code::conflict) << "it is being uploaded";
    writer->reset();
    writer = run(uploads_->begin(other));
    ASSERT_TRUE(run(uploads_->append(*writer, file_)));
    const auto facts = run(uploads_->end(*writer));
    ASSERT_TRUE(facts && *facts);
    EXPECT_EQ((*facts)->kind, "");
}

}  // namespace
}  // namespace comfyd::models
