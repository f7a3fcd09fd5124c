// A log that nobody reads.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "support/comfyd.hpp"

namespace comfyd::support {
namespace {

// The write end of a pipe that is full, as a file that other processes can open.
class FullPipe {
public:
    FullPipe() {
        EXPECT_EQ(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
        const std::string page(4096, 'x');
        while (::write(ends_[1], page.data(), page.size()) > 0) {
        }
    }
    ~FullPipe() {
        ::close(ends_[0]);
        ::close(ends_[1]);
    }
    std::string path() const {
        return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends_[1]);
    }

private:
    int ends_[2] = {-1, -1};
};

TEST(Log, ThatNobodyReadsStopsNeitherServingNorStopping) {
    const FullPipe pipe;
    const TempDir folder;
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"serve", "--worker", "http://127.0.0.1:9"}, {"engine"}}) {
        ProcessOptions options;
        options.arguments = {COMFYD_BINARY};
        options.arguments.insert(options.arguments.end(), command.begin(), command.end());
        for (const std::string& argument :
             {std::string("--log-level"),
              std::string("debug"),
              std::string("--listen"),
              std::string("127.0.0.1:0"),
              std::string("--data"),
              folder / command.front()}) {
            options.arguments.push_back(argument);
        }
        options.stderr_file = pipe.path();
        Process process(options);
        const auto url = process.wait_for_line("listening on ");
        ASSERT_TRUE(url) << command.front();
        Http http(*url);
        for (int i = 0; i < 10; ++i) {
            EXPECT_EQ(http.get("/queue").status, 200) << command.front();
            EXPECT_EQ(
                http.post_json("/prompt", json::object{{"prompt", small_picture(i)}}).status, 200
            ) << command.front();
        }
        EXPECT_EQ(process.stop(), 0) << command.front();
    }
}

}  // namespace
}  // namespace comfyd::support
