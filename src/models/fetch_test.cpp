// Fetching from servers that do what they should not: whatever they do, nothing wrong gets a name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include "models/test_support.hpp"

namespace comfyd::models {
namespace {

using support::safetensors_file;
using support::ServedFile;
using test::hash_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FetchTest : public test::LibraryTest {
protected:
    static constexpr std::size_t kSize = 300'000;

    std::vector<std::string> ranges(const std::string& path) const {
        std::vector<std::string> all;
        for (const auto& request : server_.seen(path)) {
            all.emplace_back(request.headers.get("Range"));
        }
        return all;
    }

    std::string file_ = safetensors_file(kSize);
    std::string newer_ = safetensors_file(kSize, "wEIGHT");
};

TEST_F(FetchTest, AFileComesWholeWithWhatIsInIt) {
    server_.serve("/a", {.bytes = file_});
    const auto placed = place(wish("sub/a.safetensors", "/a"));
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_EQ(placed->sha256, hash_of(file_));
    EXPECT_EQ(placed->bytes, file_.size());
    EXPECT_EQ(placed->about.at("dtype"), "U8");
    EXPECT_EQ(content("sub/a.safetensors"), file_);
    EXPECT_THAT(cached(), ElementsAre(hash_of(file_)));
    EXPECT_EQ(server_.seen("/a").front().headers.get("Accept-Encoding"), "identity");
}

TEST_F(FetchTest, AnEndInTheMiddleIsGoneOnWith) {
    for (const std::size_t at : {1u, 100u, 65'536u, 299'999u}) {
        const std::string path = "/" + std::to_string(at);
        server_.serve(path, {.bytes = file_, .etag = "\"x\"", .cut_after = at, .cuts = 1});
        const auto placed = place(wish(std::to_string(at) + ".safetensors", path));
        ASSERT_TRUE(placed) << placed.error().message;
        EXPECT_EQ(content(std::to_string(at) + ".safetensors"), file_);
        EXPECT_THAT(ranges(path), ElementsAre("", "bytes=" + std::to_string(at) + "-"));
        EXPECT_EQ(server_.seen(path).back().headers.get("If-Range"), "\"x\"");
    }
}

TEST_F(FetchTest, AServerThatStallsIsLeftAndGoneOnWith) {
    options_.web.stall = Millis(200);
    server_.serve_in_turn("/a", {{.bytes = file_, .stall_after = 100'000}, {.bytes = file_}});
    const auto placed = place(wish("a.safetensors", "/a"));
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_EQ(content("a.safetensors"), file_);
    EXPECT_EQ(ranges("/a")[1], "bytes=100000-");
}

TEST_F(FetchTest, AWholeAnswerToARangeIsTakenFromItsBeginning) {
    server_.serve("/a", {.bytes = file_, .takes_ranges = false, .cut_after = 200'000, .cuts = 1});
    ASSERT_TRUE(place(wish("a.safetensors", "/a")));
    EXPECT_EQ(content("a.safetensors"), file_);
    EXPECT_THAT(ranges("/a"), ElementsAre("", "bytes=200000-"));
}

TEST_F(FetchTest, WhoNeverSendsTheEndIsGivenUp) {
    server_.serve("/a", {.bytes = file_, .takes_ranges = false, .cut_after = 200'000});
    const auto placed = place(wish("a.safetensors", "/a"));
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().code, Code::connection_failed);
    EXPECT_EQ(server_.seen("/a").size(), 5u);
    EXPECT_FALSE(test::fs::exists(link("a.safetensors")));
    // What came waits for the next time.
    server_.serve("/a", {.bytes = file_});
    ASSERT_TRUE(place(wish("a.safetensors", "/a")));
    EXPECT_EQ(ranges("/a").back(), "bytes=200000-");
    EXPECT_THAT(cached(), ElementsAre(hash_of(file_)));
}

TEST_F(FetchTest, AFileThatChangesMeanwhileIsBegunAnew) {
    for (const bool heeds : {true, false}) {
        for (const bool is_hashed : {false, true}) {
            const std::string path = "/" + std::to_string(heeds) + std::to_string(is_hashed);
            ModelWish wanted = wish(path.substr(1) + ".safetensors", path);
            const std::string newer = safetensors_file(kSize, "newer" + path);
            wanted.sha256 = is_hashed ? hash_of(newer) : "";
            server_.serve_in_turn(
                path,
                {{.bytes = file_, .etag = "\"old\"", .stall_after = 150'000},
                 {.bytes = newer, .etag = "\"new\"", .heeds_if_range = heeds}}
            );
            auto future = loop_.start(library().place(wanted, nullptr));
            EXPECT_TRUE(support::wait_until([&] { return !cached().empty(); }));
            EXPECT_TRUE(support::wait_until([&] { return server_.seen(path).size() == 1; }));
            close();  // the first try is over
            ASSERT_FALSE(net::test::get(future));
            const auto placed = place(wanted);
            ASSERT_TRUE(placed) << placed.error().message;
            EXPECT_EQ(placed->sha256, hash_of(newer));
            EXPECT_EQ(content(wanted.name), newer);
            expect_only_right_contents();
        }
    }
}

TEST_F(FetchTest, AServerThatSaysItIsTheSameFileIsNotBelievedWhereTheHashIsKnown) {
    ModelWish wanted = wish("a.safetensors", "/a");
    wanted.sha256 = hash_of(newer_);
    server_.serve_in_turn("/a", {{.bytes = file_, .cut_after = 150'000}, {.bytes = newer_}});
    const auto placed = place(wanted);
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_EQ(content("a.safetensors"), newer_);
    EXPECT_THAT(ranges("/a"), ElementsAre("", "bytes=150000-", ""));
    expect_only_right_contents();
}

TEST_F(FetchTest, WithoutAnETagAndAHashNothingIsGoneOnWith) {
    for (const std::string etag : {"", "W/\"weak\""}) {
        const std::string path = "/e" + std::to_string(etag.size());
        server_.serve(path, {.bytes = file_, .etag = etag, .cut_after = 150'000, .cuts = 1});
        ASSERT_TRUE(place(wish("a" + path.substr(1) + ".safetensors", path)));
        EXPECT_EQ(content("a" + path.substr(1) + ".safetensors"), file_);
        EXPECT_THAT(ranges(path), ElementsAre("", ""));
    }
}

TEST_F(FetchTest, WhatIsNotTheFileLeavesNothing) {
    ModelWish wrong_hash = wish("a.safetensors", "/a");
    wrong_hash.sha256 = std::string(64, '0');
    ModelWish wrong_size = wish("a.safetensors", "/a");
    wrong_size.bytes = 7;
    server_.serve("/a", {.bytes = file_});
    server_.serve("/cut", {.bytes = file_.substr(0, kSize / 2)});
    server_.serve("/html", {.bytes = "<html>Please log in</html>"});
    server_.serve("/longer", {.bytes = file_ + "x"});
    server_.serve("/short", {.bytes = file_, .length_lie = -10});
    server_.serve("/tiny", {.bytes = "abc"});
    for (const ModelWish& one :
         {wrong_hash,
          wrong_size,
          wish("b.safetensors", "/cut"),
          wish("c.safetensors", "/html"),
          wish("d.safetensors", "/longer"),
          wish("e.sft", "/short"),
          wish("f.SAFETENSORS", "/tiny")}) {
        const auto placed = place(one);
        ASSERT_FALSE(placed) << one.source;
        EXPECT_EQ(placed.error().code, Code::hash_mismatch) << one.source;
        EXPECT_THAT(cached(), IsEmpty()) << one.source;
        EXPECT_FALSE(test::fs::exists(link(one.name)));
    }
    EXPECT_EQ(server_.seen("/a").size(), 2u);  // neither was asked for again
}

TEST_F(FetchTest, AnswersOfOddKinds) {
    net::Headers zipped;
    zipped.set("Content-Encoding", "gzip");
    server_.serve("/gzip", {.bytes = file_, .headers = zipped});
    server_.serve("/endless", {.bytes = file_, .has_length = false});
    server_.serve("/empty", {.bytes = ""});
    server_.serve("/teapot", {.bytes = file_, .status = 206});
    for (const char* path : {"/gzip", "/endless", "/empty", "/teapot"}) {
        EXPECT_FALSE(place(wish("a.safetensors", path))) << path;
        EXPECT_FALSE(test::fs::exists(link("a.safetensors")));
    }
    server_.serve("/chunked", {.bytes = file_, .is_chunked = true});
    EXPECT_TRUE(place(wish("b.safetensors", "/chunked")));
    server_.serve("/chunked-cut", {.bytes = file_, .is_chunked = true, .cut_after = 9'000});
    EXPECT_FALSE(place(wish("c.safetensors", "/chunked-cut")));
    ModelWish sized = wish("d.safetensors", "/endless");
    sized.bytes = file_.size();
    EXPECT_TRUE(place(sized));
    // As long as it likes, where nobody knows how long it is to be: not longer than it was said.
    ModelWish shorter = wish("e.safetensors", "/chunked");
    shorter.bytes = 1'000;
    EXPECT_FALSE(place(shorter));
    expect_only_right_contents();
}

TEST_F(FetchTest, RefusalsSayWhy) {
    for (const auto& [status, code] :
         {std::pair{401, Code::unauthorized},
          std::pair{403, Code::forbidden},
          std::pair{404, Code::not_found},
          std::pair{410, Code::not_found},
          std::pair{429, Code::rate_limited},
          std::pair{500, Code::upstream_error},
          std::pair{503, Code::upstream_error}}) {
        const std::string path = "/" + std::to_string(status);
        server_.serve(path, {.bytes = "no", .status = status});
        const auto placed = place(wish("a.safetensors", path));
        ASSERT_FALSE(placed);
        EXPECT_EQ(placed.error().code, code) << status;
        const bool is_final = status < 429;
        EXPECT_EQ(server_.seen(path).size(), is_final ? 1u : 5u) << status;
        EXPECT_THAT(placed.error().message, HasSubstr(std::to_string(status)));
    }
}

TEST_F(FetchTest, AFileThatIsTooLargeForTheDiskIsNotBegun) {
    server_.serve("/a", {.bytes = file_, .length_lie = 900'000'000'000});
    const auto placed = place(wish("a.safetensors", "/a"));
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().code, Code::storage_full);
    EXPECT_THAT(cached(), IsEmpty());
}

// As large as it says, until it is unmounted.
class SmallDisk {
public:
    SmallDisk(const test::fs::path& path, const std::string& size) : path_(path) {
        test::fs::create_directories(path_);
        is_there_ = ::mount("none", path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
    }
    ~SmallDisk() {
        if (is_there_) {
            ::umount2(path_.c_str(), MNT_DETACH);
        }
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;
    bool is_there() const { return is_there_; }

private:
    test::fs::path path_;
    bool is_there_ = false;
};

TEST_F(FetchTest, ADiskThatIsFullInTheMiddleKeepsNothing) {
    const SmallDisk disk(options_.contents.folder, "1m");
    if (!disk.is_there()) {
        GTEST_SKIP() << "a file system of its own needs root";
    }
    options_.fetch.piece_bytes = 64 * 1024;
    const std::string large = safetensors_file(3'000'000);
    // Its length is not told before: only the disk says no.
    server_.serve("/a", {.bytes = large, .is_chunked = true});
    auto placed = place(wish("a.safetensors", "/a"));
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().code, Code::storage_full);
    EXPECT_THAT(cached(), IsEmpty());
    server_.serve("/b", {.bytes = file_});
    ASSERT_TRUE(place(wish("b.safetensors", "/b")));
    // What is there makes room for what fits without it.
    const std::string other = safetensors_file(800'000);
    server_.serve("/c", {.bytes = other});
    placed = place(wish("c.safetensors", "/c"));
    ASSERT_TRUE(placed) << placed.error().message;
    EXPECT_THAT(cached(), ElementsAre(hash_of(other)));
    EXPECT_FALSE(test::fs::is_symlink(link("b.safetensors")));
    close();  // before its disk goes
}

TEST_F(FetchTest, TokensStayWithTheirHost) {
    options_.web.tokens = {{server_.host(), "token-of-one"}, {other_.host(), "token-of-other"}};
    net::Headers away;
    away.set("Location", other_.url("/b?X-Amz-Signature=1"));
    net::Headers back;
    back.set("Location", server_.url("/c"));
    server_.serve("/a", {.status = 302, .headers = away});
    other_.serve("/b", {.status = 307, .headers = back});
    server_.serve("/c", {.bytes = file_});
    ASSERT_TRUE(place(wish("a.safetensors", "/a")));
    EXPECT_EQ(server_.seen("/a").front().headers.get("Authorization"), "Bearer token-of-one");
    EXPECT_FALSE(other_.seen("/b").front().headers.contains("Authorization"));
    EXPECT_FALSE(server_.seen("/c").front().headers.contains("Authorization"));
    // On the same host it goes along.
    net::Headers near;
    near.set("Location", "/c");
    server_.serve("/near", {.status = 301, .headers = near});
    ASSERT_TRUE(place(wish("b.safetensors", "/near")));
    EXPECT_TRUE(server_.seen("/c").back().headers.contains("Authorization"));
}

TEST_F(FetchTest, RedirectsLeadToNoPrivateAddresses) {
    options_.web.trusted = {server_.host()};
    for (const std::string& location : std::vector<std::string>{
             other_.url("/b"),
             "https://127.0.0.1:" + other_.host().substr(other_.host().find(':') + 1) + "/b",
             "https://169.254.169.254/latest/meta-data",
             "https://[::ffff:127.0.0.1]:8443/",
             "https://localhost:8443/",
             "file:///etc/passwd",
             "gopher://127.0.0.1/",
             "//",
         }) {
        net::Headers away;
        away.set("Location", location);
        server_.serve("/a", {.status = 302, .headers = away});
        const auto placed = place(wish("a.safetensors", "/a"));
        ASSERT_FALSE(placed) << location;
    }
    EXPECT_THAT(other_.seen(), IsEmpty());
    net::Headers round;
    round.set("Location", "/round");
    server_.serve("/round", {.status = 302, .headers = round});
    EXPECT_FALSE(place(wish("a.safetensors", "/round")));
}

TEST_F(FetchTest, PrivateAddressesAreAskedOnlyWhereTheOperatorSaysSo) {
    options_.web.trusted.clear();
    server_.serve("/a", {.bytes = file_});
    EXPECT_EQ(place(wish("a.safetensors", "/a")).error().code, Code::address_refused);
    ModelWish secure = wish("a.safetensors", "/a");
    secure.source = "https" + secure.source.substr(4);
    EXPECT_EQ(place(secure).error().code, Code::address_refused);
    EXPECT_THAT(server_.seen(), IsEmpty());
}

}  // namespace
}  // namespace comfyd::models
