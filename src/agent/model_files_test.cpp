#include "agent/model_files.hpp"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "base/crypto.hpp"
#include "models/hash_file.hpp"
#include "net/io_threads.hpp"
#include "support/model_server.hpp"
#include "support/temp_dir.hpp"
#include "support/wait.hpp"

namespace comfyd::agent {
namespace {

std::string names(const std::vector<ModelFile>& files) {
    std::string text;
    for (const ModelFile& file : files) {
        text += file.folder + ":" + file.name + ":" + std::to_string(file.size) + " ";
    }
    return text;
}

TEST(ModelFiles, AreListedAsComfyUiNamesThem) {
    const support::TempDir root;
    root.write("checkpoints/b.safetensors", "12345");
    root.write("checkpoints/sub/a.ckpt", "1");
    root.write("checkpoints/put_checkpoints_here", "");
    root.write("loras/x.pt", "");
    root.write("top.safetensors", "in no folder");
    std::filesystem::create_symlink("nowhere", root / "loras/dead.pt");
    std::filesystem::create_directory_symlink(root / "checkpoints", root / "checkpoints/sub/loop");
    const auto files = list_models(root.path(), 100);
    EXPECT_TRUE(names(files).starts_with("checkpoints:b.safetensors:5 checkpoints:sub/a.ckpt:1 "))
        << names(files);
    EXPECT_TRUE(names(files).ends_with("loras:x.pt:0 ")) << names(files);
    EXPECT_EQ(list_models(root.path(), 2).size(), 2U);
    EXPECT_TRUE(list_models("/nowhere", 100).empty());
}

TEST(ModelFiles, Hashes) {
    const support::TempDir root;
    const std::string bytes(3'000'000, 'x');
    root.write("f", bytes);
    const auto go_on = [] { return false; };
    EXPECT_EQ(models::hash_file(root / "f", go_on), to_hex(sha256(bytes)));
    EXPECT_EQ(models::hash_file(root / "f", [] { return true; }), "");
    EXPECT_EQ(models::hash_file(root / "none", go_on), "");
}

class Watched {
public:
    explicit Watched(const support::TempDir& folder, bool is_idle) : is_idle_(is_idle) {
        thread_.start();
        run(begin(folder));
    }
    ~Watched() {
        run(end());
        thread_.stop();
    }
    std::string shown() { return json::serialize(run(show())); }

private:
    template <class T>
    T run(Task<T> task) {
        return boost::asio::co_spawn(thread_.executor(), std::move(task), boost::asio::use_future)
            .get();
    }
    Task<bool> begin(const support::TempDir& folder) {
        tasks_ = std::make_unique<TaskGroup>(thread_.executor());
        ModelFilesOptions options;
        options.root = folder / "models";
        options.cache = folder / "hashes.json";
        options.look = Millis(20);
        files_ = std::make_unique<ModelFiles>(pool_, options, [this] { return is_idle_; });
        files_->start(*tasks_);
        co_return true;
    }
    Task<bool> end() {
        tasks_->cancel();
        co_await tasks_->join();
        tasks_.reset();
        co_return true;
    }
    Task<json::object> show() { co_return files_->to_json(); }

    bool is_idle_;
    net::IoThread thread_{"test"};
    Pool pool_{1};
    std::unique_ptr<TaskGroup> tasks_;
    std::unique_ptr<ModelFiles> files_;
};

TEST(ModelFiles, TheirHeadsAreReadWhateverComfyUiDoes) {
    const support::TempDir folder;
    folder.write("models/loras/ink.safetensors", support::lora_file(768));
    folder.write("models/checkpoints/base.safetensors", support::checkpoint_file(2048));
    folder.write("models/checkpoints/odd.safetensors", "is none");
    Watched busy(folder, false);
    EXPECT_TRUE(support::wait_until([&] {
        const std::string shown = busy.shown();
        return shown.find(R"("kind":"lora","family":"sd15","dtype":"U8")") != std::string::npos &&
               shown.find(R"("kind":"checkpoint","family":"sdxl")") != std::string::npos;
    })) << busy.shown();
    EXPECT_NE(
        busy.shown().find(R"("name":"odd.safetensors","size":7,"sha256":null})"), std::string::npos
    ) << busy.shown();
}

TEST(ModelFiles, AreHashedWhileIdleAndKnownAgain) {
    const support::TempDir folder;
    folder.write("models/vae/a.safetensors", "abc");
    const std::string hash = to_hex(sha256("abc"));
    {
        Watched busy(folder, false);
        EXPECT_TRUE(support::wait_until([&] {
            return busy.shown().find("a.safetensors") != std::string::npos;
        }));
        EXPECT_EQ(busy.shown().find(hash), std::string::npos);
    }
    {
        Watched idle(folder, true);
        EXPECT_TRUE(support::wait_until([&] { return idle.shown().find(hash) != std::string::npos; }
        ));
        folder.write("models/vae/later.safetensors", "later");
        EXPECT_TRUE(support::wait_until([&] {
            return idle.shown().find(to_hex(sha256("later"))) != std::string::npos;
        }));
    }
    Watched again(folder, false);
    EXPECT_TRUE(support::wait_until([&] { return again.shown().find(hash) != std::string::npos; }));
}

}  // namespace
}  // namespace comfyd::agent
