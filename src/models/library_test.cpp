#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <time.h>

#include "models/test_support.hpp"
#include "net/descriptor.hpp"

namespace comfyd::models {
namespace {

using support::safetensors_file;
using test::hash_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ModelLibrary : public test::LibraryTest {
protected:
    // As if a program had read it later than all others: the kernel's own times are too coarse to
    // tell apart what a test reads.
    void read_later(const std::string& name) {
        timespec times[] = {{}, {.tv_sec = 0, .tv_nsec = UTIME_OMIT}};
        ASSERT_EQ(::clock_gettime(CLOCK_REALTIME, times), 0);
        times[0].tv_sec += ++reads_;
        ASSERT_EQ(::utimensat(AT_FDCWD, link(name).c_str(), times, 0), 0);
    }

    std::string file_ = safetensors_file(200'000);

private:
    int reads_ = 0;
};

TEST_F(ModelLibrary, TwentyWhoWantOneFileMakeOneRequest) {
    server_.serve("/a", {.bytes = file_});
    std::vector<std::future<Result<Placed>>> waiting;
    for (int i = 0; i < 20; ++i) {
        ModelWish one = wish("copy-" + std::to_string(i) + ".safetensors", "/a");
        waiting.push_back(loop_.start(library().place(one, nullptr)));
    }
    for (auto& future : waiting) {
        EXPECT_TRUE(net::test::get(future));
    }
    EXPECT_THAT(server_.seen(), SizeIs(1));
    EXPECT_THAT(cached(), ElementsAre(hash_of(file_)));
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(content("copy-" + std::to_string(i) + ".safetensors"), file_);
    }
}

TEST_F(ModelLibrary, OneContentFromManyPlacesIsFetchedOnce) {
    std::vector<std::future<Result<Placed>>> waiting;
    for (int i = 0; i < 8; ++i) {
        const std::string path = "/" + std::to_string(i);
        server_.serve(path, {.bytes = file_});
        ModelWish one = wish(path.substr(1) + ".safetensors", path);
        one.sha256 = hash_of(file_);
        waiting.push_back(loop_.start(library().place(one, nullptr)));
    }
    for (auto& future : waiting) {
        EXPECT_TRUE(net::test::get(future));
    }
    EXPECT_THAT(server_.seen(), SizeIs(1));
}

TEST_F(ModelLibrary, WhatIsHereIsNotFetchedAgain) {
    server_.serve("/a", {.bytes = file_});
    ModelWish hashed = wish("a.safetensors", "/a");
    hashed.sha256 = hash_of(file_);
    ASSERT_TRUE(place(hashed));
    close();  // also by the next process
    ASSERT_TRUE(place(hashed));
    EXPECT_THAT(server_.seen(), SizeIs(1));
    // Without a hash its server is asked whether it is still the same.
    ASSERT_TRUE(place(wish("b.safetensors", "/a")));
    EXPECT_THAT(server_.seen(), SizeIs(2));
    EXPECT_EQ(server_.seen().back().headers.get("If-None-Match"), "\"v1\"");
    EXPECT_EQ(content("b.safetensors"), file_);
    const std::string newer = safetensors_file(100);
    server_.serve("/a", {.bytes = newer, .etag = "\"v2\""});
    ASSERT_TRUE(place(wish("b.safetensors", "/a")));
    EXPECT_EQ(content("b.safetensors"), newer);
    EXPECT_EQ(content("a.safetensors"), file_);
    // And where it is away, what it had is better than nothing.
    server_.serve("/a", {.bytes = "", .status = 500});
    ASSERT_TRUE(place(wish("c.safetensors", "/a")));
    EXPECT_EQ(content("c.safetensors"), newer);
}

TEST_F(ModelLibrary, AnEndOfTheProgramInTheMiddleLosesNothing) {
    server_.serve("/a", {.bytes = file_, .stall_after = 150'000});
    const auto seen = std::make_shared<FetchProgress>();
    auto future = loop_.start(library().place(wish("a.safetensors", "/a"), seen));
    EXPECT_TRUE(support::wait_until([&] { return !server_.seen("/a").empty(); }));
    EXPECT_TRUE(support::wait_until([&] { return !cached().empty(); }));
    close();
    const auto cut = net::test::get(future);
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, Code::cancelled);
    EXPECT_FALSE(test::fs::exists(link("a.safetensors")));
    server_.serve("/a", {.bytes = file_});
    ASSERT_TRUE(place(wish("a.safetensors", "/a")));
    EXPECT_EQ(content("a.safetensors"), file_);
    EXPECT_THAT(cached(), ElementsAre(hash_of(file_)));
}

TEST_F(ModelLibrary, AServerThatFailsIsLeftAloneForAWhile) {
    options_.fetch.tries = 1;
    server_.serve("/a", {.bytes = file_, .status = 502});
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(place(wish("a.safetensors", "/a")).error().code, Code::upstream_error);
    }
    EXPECT_THAT(server_.seen(), SizeIs(3));
    server_.serve("/a", {.bytes = file_});
    const auto rests = place(wish("a.safetensors", "/a"));
    ASSERT_FALSE(rests);
    EXPECT_THAT(rests.error().message, HasSubstr("left alone"));
    EXPECT_THAT(server_.seen(), SizeIs(3));
    // Others are asked as before.
    other_.serve("/a", {.bytes = file_});
    ModelWish elsewhere = wish("b.safetensors", "/a");
    elsewhere.source = other_.url("/a");
    EXPECT_TRUE(place(elsewhere));
    clock_.pass(std::chrono::seconds(240));
    EXPECT_TRUE(place(wish("a.safetensors", "/a")));
    EXPECT_THAT(server_.seen(), SizeIs(4));
}

TEST_F(ModelLibrary, WhatANotFoundFileSaysIsNotAnOutage) {
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(place(wish("a.safetensors", "/none")).error().code, Code::not_found);
    }
    EXPECT_THAT(server_.seen(), SizeIs(5));
}

TEST_F(ModelLibrary, OverItsLimitItGivesUpTheLeastRecentlyUsed) {
    options_.contents.bytes_max = 650'000;
    std::vector<std::string> files;
    for (int i = 0; i < 5; ++i) {
        files.push_back(safetensors_file(200'000, "tensor-" + std::to_string(i)));
        server_.serve("/" + std::to_string(i), {.bytes = files.back()});
    }
    const auto name = [](int i) { return std::to_string(i) + ".safetensors"; };
    const auto has = [&](int i) { return content(name(i)) == files[static_cast<std::size_t>(i)]; };
    for (const int i : {0, 1, 2}) {
        ASSERT_TRUE(place(wish(name(i), "/" + std::to_string(i))));
    }
    ASSERT_TRUE(place(wish(name(0), "/0")));  // used again
    read_later(name(2));
    ASSERT_TRUE(place(wish(name(3), "/3")));
    EXPECT_FALSE(has(1));
    EXPECT_FALSE(test::fs::is_symlink(link(name(1))));  // not even a dead one
    EXPECT_TRUE(has(0) && has(2) && has(3));
    read_later(name(3));
    // What a program has open stays.
    const net::Descriptor reader(::open(link(name(2)).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(reader);
    ASSERT_TRUE(place(wish(name(4), "/4")));
    EXPECT_FALSE(has(0));
    EXPECT_TRUE(has(2) && has(3) && has(4));
    expect_only_right_contents();
}

// The one that came first has its room, though little of it is there; the other waits, and what the
// first one has brought makes room for it.
TEST_F(ModelLibrary, TwoAtOnceKeepToItsLimit) {
    options_.contents.bytes_max = 350'000;
    options_.fetch.piece_bytes = 16 * 1024;
    const std::string second = safetensors_file(200'000, "second");
    server_.serve("/first", {.bytes = file_, .stall_after = 50'000});
    server_.serve("/second", {.bytes = second});
    auto first = loop_.start(library().place(wish("first.safetensors", "/first"), nullptr));
    ASSERT_TRUE(support::wait_until([&] { return cached_bytes() > 0; }));
    auto other = loop_.start(library().place(wish("second.safetensors", "/second"), nullptr));
    ASSERT_TRUE(support::wait_until([&] { return !server_.seen("/second").empty(); }));
    server_.release();
    EXPECT_TRUE(net::test::get(first));
    const auto placed = net::test::get(other);
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_THAT(cached(), ElementsAre(hash_of(second)));
    EXPECT_EQ(content("second.safetensors"), second);
    EXPECT_FALSE(test::fs::is_symlink(link("first.safetensors"))) << "not even a dead one";
}

TEST_F(ModelLibrary, AFileOfUnknownLengthKeepsToItsLimit) {
    options_.contents.bytes_max = 150'000;
    options_.fetch.piece_bytes = 16 * 1024;
    server_.serve("/a", {.bytes = file_, .is_chunked = true});
    const auto placed = place(wish("a.safetensors", "/a"));
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().code, Code::storage_full);
    EXPECT_THAT(cached(), IsEmpty());
}

// What was reserved for it is free while it waits for its next try.
TEST_F(ModelLibrary, WhatWasCutOffKeepsNoMoreThanWhatHasCome) {
    options_.contents.bytes_max = 350'000;
    options_.fetch.tries = 1;
    server_.serve("/a", {.bytes = file_, .cut_after = 100'000});
    ASSERT_FALSE(place(wish("a.safetensors", "/a")));
    EXPECT_EQ(cached_bytes(), 100'000U);
    const std::string other = safetensors_file(200'000, "other");
    server_.serve("/b", {.bytes = other});
    ASSERT_TRUE(place(wish("b.safetensors", "/b")));
    EXPECT_THAT(cached(), SizeIs(3)) << "the part, its notes, and the other one";
    server_.serve("/a", {.bytes = file_});
    ASSERT_TRUE(place(wish("a.safetensors", "/a")));
    EXPECT_EQ(server_.seen("/a").back().headers.get("Range"), "bytes=100000-");
    EXPECT_THAT(cached(), ElementsAre(hash_of(file_)));
}

TEST_F(ModelLibrary, WhatIsPinnedStays) {
    options_.contents.bytes_max = 450'000;
    options_.contents.pinned = {"checkpoints/0.safetensors", "checkpoints/1.safetensors"};
    for (const char* path : {"/0", "/1", "/2"}) {
        server_.serve(path, {.bytes = safetensors_file(200'000, path)});
    }
    ASSERT_TRUE(place(wish("0.safetensors", "/0")));
    ASSERT_TRUE(place(wish("1.safetensors", "/1")));
    const auto placed = place(wish("2.safetensors", "/2"));
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().code, Code::storage_full);
    EXPECT_THAT(placed.error().message, HasSubstr("450000"));
    EXPECT_THAT(cached(), SizeIs(2));
    // Also those of another who uses the cache, as long as he is there.
    close();
    options_.contents.pinned.clear();
    options_.contents.owner = folder_.path() / "other";
    EXPECT_FALSE(place(wish("2.safetensors", "/2")));
    EXPECT_THAT(cached(), SizeIs(2));
}

TEST_F(ModelLibrary, FilesOfOthersAreLeftAsTheyAre) {
    server_.serve("/a", {.bytes = file_});
    test::fs::create_directories(link("x").parent_path());
    folder_.write("ComfyUI/models/checkpoints/mine.safetensors", "mine");
    // Without a hash whatever is there is meant.
    EXPECT_TRUE(place(wish("mine.safetensors", "/a")));
    ModelWish hashed = wish("mine.safetensors", "/a");
    hashed.sha256 = hash_of(file_);
    EXPECT_EQ(place(hashed).error().code, Code::conflict);
    EXPECT_EQ(content("mine.safetensors"), "mine");
    hashed.sha256 = hash_of("mine");
    const auto same = place(hashed);
    ASSERT_TRUE(same);
    EXPECT_EQ(same->sha256, hash_of("mine"));
    EXPECT_THAT(server_.seen(), IsEmpty());
    // A folder, or a link that leads nowhere, is not written over either.
    test::fs::create_directories(link("folder.safetensors"));
    EXPECT_EQ(place(wish("folder.safetensors", "/a")).error().code, Code::conflict);
    test::fs::create_symlink("/nowhere", link("dead.safetensors"));
    EXPECT_EQ(place(wish("dead.safetensors", "/a")).error().code, Code::conflict);
}

TEST_F(ModelLibrary, AContentThatWasChangedIsFetchedAnew) {
    server_.serve("/a", {.bytes = file_});
    ModelWish hashed = wish("a.safetensors", "/a");
    hashed.sha256 = hash_of(file_);
    ASSERT_TRUE(place(hashed));
    const auto path = options_.contents.folder / hash_of(file_);
    test::fs::permissions(path, test::fs::perms::owner_all);
    test::fs::resize_file(path, 1'000);
    ASSERT_TRUE(place(hashed));
    EXPECT_EQ(content("a.safetensors"), file_);
    EXPECT_THAT(server_.seen(), SizeIs(2));
}

TEST_F(ModelLibrary, PicklesComeOnlyWhereTheyAreAllowed) {
    server_.serve("/a", {.bytes = "\x80\x04pickle"});
    EXPECT_EQ(place(wish("a.ckpt", "/a")).error().code, Code::forbidden);
    EXPECT_THAT(server_.seen(), IsEmpty());
    close();
    options_.allows_pickles = true;
    EXPECT_TRUE(place(wish("a.ckpt", "/a")));
}

TEST_F(ModelLibrary, HuggingFaceIsAskedFirstAndItsTokenStaysThere) {
    options_.web.tokens = {{server_.host(), "hf_secret"}};
    const std::string commit(40, 'c');
    net::Headers linked;
    linked.set("X-Linked-Etag", "\"" + hash_of(file_) + "\"");
    linked.set("X-Linked-Size", std::to_string(file_.size()));
    linked.set("X-Repo-Commit", commit);
    linked.set("Location", other_.url("/cdn?signature=1"));
    const std::string path = "/owner/repo/resolve/main/sub/a.safetensors";
    const std::string pinned = "/owner/repo/resolve/" + commit + "/sub/a.safetensors";
    server_.serve(path, {.etag = "", .status = 302, .headers = linked});
    server_.serve(pinned, {.etag = "", .status = 302, .headers = linked});
    other_.serve("/cdn", {.bytes = file_, .cut_after = 70'000, .cuts = 1});
    ModelWish one = wish("a.safetensors", "");
    one.source = "hf:owner/repo/sub/a.safetensors";
    const auto placed = place(one);
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_EQ(placed->sha256, hash_of(file_));
    ASSERT_THAT(server_.seen(path), SizeIs(1));
    EXPECT_EQ(server_.seen(path).front().method, "HEAD");
    EXPECT_EQ(server_.seen(path).front().headers.get("Authorization"), "Bearer hf_secret");
    EXPECT_THAT(server_.seen(pinned), SizeIs(2));  // cut off once
    ASSERT_THAT(other_.seen("/cdn"), SizeIs(2));
    EXPECT_FALSE(other_.seen("/cdn").front().headers.contains("Authorization"));
    // A wish that says otherwise is refused before a byte comes.
    one.name = "b.safetensors";
    one.sha256 = std::string(64, '0');
    EXPECT_EQ(place(one).error().code, Code::hash_mismatch);
    one.sha256 = "";
    one.bytes = 1;
    EXPECT_EQ(place(one).error().code, Code::hash_mismatch);
    EXPECT_THAT(other_.seen("/cdn"), SizeIs(2));
    // A cache that has the content asks for no byte of it either.
    one.bytes.reset();
    EXPECT_TRUE(place(one));
    EXPECT_THAT(other_.seen("/cdn"), SizeIs(2));
}

TEST_F(ModelLibrary, CivitaiTellsHashAndAddress) {
    options_.web.tokens = {{server_.host(), "civitai-secret"}};
    std::string hash = hash_of(file_);
    std::ranges::transform(hash, hash.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    });
    const std::string address = server_.url("/api/download/models/77?fileId=3");
    server_.serve(
        "/api/v1/model-versions/77",
        {.bytes = R"({"files":[{"primary":true,"downloadUrl":")" + address +
                  R"(","hashes":{"SHA256":")" + hash + R"("}}]})"}
    );
    net::Headers away;
    away.set("Location", other_.url("/signed"));
    server_.serve("/api/download/models/77", {.status = 307, .headers = away});
    other_.serve("/signed", {.bytes = file_});
    ModelWish one = wish("a.safetensors", "");
    one.source = "civitai:77";
    const auto placed = place(one);
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_EQ(
        server_.seen("/api/download/models/77").front().headers.get("Authorization"),
        "Bearer civitai-secret"
    );
    EXPECT_FALSE(other_.seen("/signed").front().headers.contains("Authorization"));
    // What it gives must be what it told of.
    other_.serve("/signed", {.bytes = safetensors_file(200'000, "other")});
    ModelWish again = one;
    again.name = "b.safetensors";
    test::fs::remove(options_.contents.folder / hash_of(file_));
    EXPECT_EQ(place(again).error().code, Code::hash_mismatch);
    again.source = "civitai:78";
    EXPECT_EQ(place(again).error().code, Code::not_found);
}

}  // namespace
}  // namespace comfyd::models
