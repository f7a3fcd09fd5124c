#include "agent/packs.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <thread>

#include "base/filter_process.hpp"
#include "base/text.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::agent {
namespace {

using support::read_file;
using testing::HasSubstr;
namespace fs = std::filesystem;

class Packs : public testing::Test {
protected:
    Packs() {
        rules_.allows_paths = true;
        rules_.allowed = {folder_.path().string() + "/"};
        shell(
            "git init -q -b main repo && cd repo && git config user.name x && "
            "git config user.email x@example.com"
        );
        first_ = commit("one", "1");
    }

    std::string shell(const std::string& script) {
        const auto said = run_filter(
            {"sh",
             "/bin/sh",
             {"-ec", "cd " + folder_.path().string() + "\n" + script},
             {std::string("PATH=") + std::getenv("PATH"), "HOME=" + folder_.path().string()}},
            "",
            {Millis(60'000), 1'000'000}
        );
        EXPECT_TRUE(said) << said.error().message << script;
        return said ? std::string(trim(*said, "\n")) : "";
    }
    std::string commit(const std::string& file, const std::string& text) {
        folder_.write("repo/" + file, text);
        return shell("cd repo && git add -A . && git commit -q -m x && git rev-parse HEAD");
    }
    Result<> lay_out(std::vector<NodePack> packs) {
        fs::remove_all(into_);
        return lay_out_packs(packs, rules_, kept_, into_);
    }
    NodePack repository(const std::string& at) { return {.url = folder_ / "repo", .commit = at}; }

    support::TempDir folder_;
    fs::path kept_ = folder_.path() / "kept";
    fs::path into_ = folder_.path() / "into";
    PackRules rules_;
    std::string first_;
};

TEST_F(Packs, ARepositoryIsHadAtItsCommit) {
    const std::string second = commit("one", "2");
    for (const auto& [at, text] : {std::pair(first_, "1"), std::pair(second, "2")}) {
        const auto done = lay_out({repository(at)});
        ASSERT_TRUE(done) << done.error().message;
        EXPECT_EQ(read_file(into_ / "repo/one"), text);
        EXPECT_FALSE(fs::exists(into_ / "repo/.git"));
    }
}

TEST_F(Packs, WhatWasFetchedIsKept) {
    ASSERT_TRUE(lay_out({repository(first_)}));
    fs::remove_all(folder_.path() / "repo");
    const auto done = lay_out({repository(first_)});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(read_file(into_ / "repo/one"), "1");
}

TEST_F(Packs, ACommitThatIsNotThereIsAFailureThatLeavesNothing) {
    const auto done = lay_out({repository(std::string(40, 'a'))});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::upstream_error);
    EXPECT_THAT(done.error().message, HasSubstr("git fetch"));
    EXPECT_THAT(done.error().message, HasSubstr((folder_ / "repo").c_str()));
    EXPECT_TRUE(!fs::exists(kept_) || fs::is_empty(kept_));
}

TEST_F(Packs, ATagOrATreeIsNoCommit) {
    const std::string tree = shell("cd repo && git rev-parse HEAD^{tree}");
    EXPECT_FALSE(lay_out({repository(tree)}));
    const std::string tag = shell("cd repo && git tag -a -m x v1 && git rev-parse v1");
    const auto done = lay_out({repository(tag)});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::hash_mismatch);
}

TEST_F(Packs, NothingOfARepositoryIsRun) {
    const std::string ran = folder_ / "ran";
    const std::string hook = folder_.write("hook", "#!/bin/sh\ntouch " + ran + "\n");
    ::chmod(hook.c_str(), 0700);
    // Hooks, filters and configuration of the user, and of the system.
    folder_.write(
        ".gitconfig",
        "[core]\n hooksPath = " + folder_.path().string() + "\n[filter \"x\"]\n smudge = " + hook +
            "\n required = true\n[init]\n templateDir = " + folder_ / "template" + "\n"
    );
    folder_.write("post-checkout", "#!/bin/sh\ntouch " + ran + "\n");
    ::chmod((folder_ / "post-checkout").c_str(), 0700);
    folder_.write("template/hooks/post-checkout", "#!/bin/sh\ntouch " + ran + "\n");
    ::chmod((folder_ / "template/hooks/post-checkout").c_str(), 0700);
    const std::string home = std::getenv("HOME") == nullptr ? "/" : std::getenv("HOME");
    ::setenv("HOME", folder_.path().c_str(), 1);
    folder_.write("repo/.gitattributes", "* filter=x\n");
    folder_.write("repo/.gitmodules", "[submodule \"s\"]\n path = s\n url = /nowhere\n");
    const std::string at = shell(
        "rm -f .gitconfig.off; mv .gitconfig .gitconfig.off; cd repo && git add -A . && git commit "
        "-q -m x && mv ../.gitconfig.off ../.gitconfig && git rev-parse HEAD"
    );
    const auto done = lay_out({repository(at)});
    ::setenv("HOME", home.c_str(), 1);
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(read_file(into_ / "repo/one"), "1");
    EXPECT_FALSE(fs::exists(ran));
}

TEST_F(Packs, LinksLeadNowhere) {
    folder_.write("secret", "x");
    fs::create_symlink(folder_.path() / "secret", folder_.path() / "repo/link");
    fs::create_directory_symlink("/", folder_.path() / "repo/root");
    const std::string at = commit("two", "2");
    ASSERT_TRUE(lay_out({repository(at)}));
    EXPECT_FALSE(fs::is_symlink(into_ / "repo/link"));
    EXPECT_NE(read_file(into_ / "repo/link"), "x");
    const auto done = lay_out({{.folder = folder_.path() / "repo"}});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(read_file(into_ / "repo/two"), "2");
    EXPECT_FALSE(fs::exists(fs::symlink_status(into_ / "repo/link")));
    EXPECT_FALSE(fs::exists(fs::symlink_status(into_ / "repo/root")));
    EXPECT_FALSE(fs::exists(into_ / "repo/.git"));
}

TEST_F(Packs, WhatIsTooLargeIsNotLaidOut) {
    // It packs to nothing: seen before it is unpacked.
    const std::string at = commit("zeros", std::string(3'000'000, '\0'));
    rules_.bytes_max = 2'000'000;
    for (const NodePack& pack : {repository(at), NodePack{.folder = folder_.path() / "repo"}}) {
        const auto done = lay_out({pack});
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code, Code::payload_too_large) << done.error().message;
    }
    rules_.bytes_max = 2'000'000'000;
    rules_.files_max = 1;
    EXPECT_EQ(lay_out({repository(at)}).error().code, Code::payload_too_large);
    EXPECT_TRUE(fs::is_empty(kept_));
}

TEST_F(Packs, AFetchHasALimitOfItsFiles) {
    std::string noise;
    std::uint64_t state = 1;
    while (noise.size() < 3'000'000) {
        state = state * 6'364'136'223'846'793'005ULL + 1'442'695'040'888'963'407ULL;
        noise += static_cast<char>(state >> 56);
    }
    const std::string at = commit("noise", noise);
    rules_.bytes_max = 500'000;
    const auto done = lay_out({repository(at)});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::upstream_error) << done.error().message;
    EXPECT_TRUE(fs::is_empty(kept_));
}

TEST_F(Packs, AFetchThatHangsIsEnded) {
    const std::string git = folder_.write("slow", "#!/bin/sh\nsleep 600 & wait\n");
    ::chmod(git.c_str(), 0700);
    rules_.git = git;
    rules_.time_max = Millis(100);
    const auto done = lay_out({repository(first_)});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::execution_timeout);
    rules_.git = "/no/such/git";
    EXPECT_EQ(lay_out({repository(first_)}).error().code, Code::not_found);
}

TEST_F(Packs, OnlyWhatIsAllowedAndWellNamedIsTouched) {
    const std::string at(40, 'a');
    rules_.allows_paths = false;
    rules_.allowed = {
        "https://example.com/one/", "https://example.com/two/pack.git", "/srv/packs/"
    };
    const auto code = [&](NodePack pack) {
        const auto good = check_packs({std::move(pack)}, rules_);
        return good ? "good" : std::string(to_string(good.error().code));
    };
    EXPECT_EQ(code({"https://example.com/one/x", at}), "good");
    EXPECT_EQ(code({"https://example.com/one/x.git", at}), "good");
    EXPECT_EQ(code({"https://example.com/two/pack", at}), "good");
    EXPECT_EQ(code({"https://example.com/two/pack", std::string(64, 'B')}), "good");
    EXPECT_EQ(code({.folder = "/srv/packs/mine and yours"}), "good");
    EXPECT_EQ(code({"https://example.com/one", at}), "forbidden");
    EXPECT_EQ(code({"https://example.com/one/", at}), "forbidden");
    EXPECT_EQ(code({"https://example.com/onemore/x", at}), "forbidden");
    EXPECT_EQ(code({"https://example.com/two/pack2", at}), "forbidden");
    EXPECT_EQ(code({"https://example.com.evil/one/x", at}), "forbidden");
    EXPECT_EQ(code({.folder = "/srv/packsmore"}), "forbidden");
    for (const char* url : {
             "http://example.com/one/x",
             "ssh://example.com/one/x",
             "git@example.com:one/x",
             "ext::sh -c id",
             "file:///srv/packs/x",
             "/srv/packs/x",
             "--upload-pack=id",
             "https://user:password@example.com/one/x",
             "https://example.com/one/../../x",
             "https://example.com/one/..",
             "https://example.com/one/x?y",
             "https://example.com/one/x#y",
             "https://example.com/one/%2e%2e/x",
             "https://example.com/one/x y",
             "https://example.com/one/x\n",
             "https://",
             "https:///x",
         }) {
        EXPECT_EQ(code({url, at}), "invalid_argument") << url;
    }
    for (const char* wrong : {"", "main", "HEAD", "abc1234", "--all"}) {
        EXPECT_EQ(code({"https://example.com/one/x", wrong}), "invalid_argument") << wrong;
    }
    for (const char* path : {"srv/packs/x", "/srv/packs/../x", "/srv/packs/./x"}) {
        EXPECT_EQ(code({.folder = path}), "invalid_argument") << path;
    }
    EXPECT_EQ(code({}), "invalid_argument");
    EXPECT_EQ(code({"https://example.com/one/x", at, "/srv/packs/x"}), "invalid_argument");
    // Ours is there, and a name only once.
    EXPECT_EQ(code({"https://example.com/one/comfyd", at}), "invalid_argument");
    EXPECT_EQ(code({"https://example.com/one/.git", at}), "invalid_argument");
    const NodePack x{"https://example.com/one/x", at};
    EXPECT_FALSE(check_packs({x, {.folder = "/srv/packs/x"}}, rules_));
}

TEST_F(Packs, OfOneInTheImageItIsSeenWhetherItIsThere) {
    const std::string at(40, 'a');
    rules_.comfyui = folder_.path() / "ComfyUI";
    const auto pack = read_pack("image:https://example.com/Some-Nodes.git@" + at);
    ASSERT_TRUE(pack);
    EXPECT_TRUE(pack->is_in_image);
    rules_.allowed.emplace_back("https://example.com/");
    const auto missing = lay_out({*pack});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::not_found);
    EXPECT_THAT(missing.error().message, HasSubstr("custom_nodes/Some-Nodes"));
    folder_.write("ComfyUI/custom_nodes/Some-Nodes/__init__.py", "");
    folder_.write("opt/mine/__init__.py", "");
    EXPECT_TRUE(lay_out({*pack, *read_pack("image:" + (folder_ / "opt/mine"))}));
    EXPECT_FALSE(lay_out({*read_pack("image:" + (folder_ / "opt/other"))}));
    EXPECT_TRUE(!fs::exists(into_) || fs::is_empty(into_)) << "it is where it was";
    rules_.allowed.clear();
    EXPECT_EQ(lay_out({*pack}).error().code, Code::forbidden) << "it runs all the same";
}

TEST_F(Packs, AreReadAsTheyAreWritten) {
    const std::string at(40, 'a');
    const auto packs =
        read_packs(join_packs({"https://example.com/x@" + at, "/srv/y", "image:/opt/z"}) + "  ");
    ASSERT_TRUE(packs);
    ASSERT_EQ(packs->size(), 3U);
    EXPECT_EQ((*packs)[0].url, "https://example.com/x");
    EXPECT_EQ((*packs)[0].commit, at);
    EXPECT_EQ((*packs)[1].folder, "/srv/y");
    EXPECT_FALSE((*packs)[1].is_in_image);
    EXPECT_EQ((*packs)[2].folder, "/opt/z");
    EXPECT_TRUE((*packs)[2].is_in_image);
    EXPECT_TRUE(read_packs("")->empty());
    for (const char* wrong : {"x", "https://example.com/x", "image:", "/a\nb", "/a\x01"}) {
        EXPECT_FALSE(read_packs(wrong)) << wrong;
    }
    EXPECT_FALSE(read_packs("/" + std::string(kPacksBytesMax, 'x')));
    std::vector<NodePack> many;
    for (std::size_t i = 0; i <= kPacksMax; ++i) {
        many.push_back({.folder = "/srv/" + std::to_string(i)});
    }
    EXPECT_FALSE(check_packs(many, {.allows_all = true}));
    many.pop_back();
    EXPECT_TRUE(check_packs(many, {.allows_all = true}));
}

TEST_F(Packs, AFetchIsStopped) {
    const std::string begun = folder_ / "begun";
    const std::string git =
        folder_.write("slow", "#!/bin/sh\ntouch '" + begun + "'\nsleep 600 & wait\n");
    ::chmod(git.c_str(), 0700);
    rules_.git = git;
    std::stop_source stop;
    rules_.stop = stop.get_token();
    const std::jthread stopping([&] {
        support::wait_until([&] { return fs::exists(begun); });
        stop.request_stop();
    });
    const auto done = lay_out({repository(first_)});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, Code::cancelled);
    EXPECT_TRUE(fs::is_empty(kept_));
    EXPECT_EQ(lay_out({{.folder = folder_.path() / "repo"}}).error().code, Code::cancelled);
}

}  // namespace
}  // namespace comfyd::agent
