// Recorded conversations with a real ComfyUI, held with comfyd instead: in front of its engine
// where that has the nodes, else of a double.
//
// Not held here, for want of nodes of a test pack that neither has: 04 (TestSyncError),
// 12 (TestSyncProgressUpdate), 19 (TestDynamicAsyncGeneration), and of 18 all but the first prompt
// (TestExecutionBlocker). What they are about is asked in native_socket_test.cpp.
#include "native_support.hpp"
#include "support/conversation.hpp"

namespace comfyd::support {
namespace {

enum class Behind { engine, worker };

struct Recording {
    const char* name;
    Behind behind;
    std::vector<const char*> before{};  // held on the same server first: they fill its cache
    std::size_t prompts = SIZE_MAX;
};

class NativeConversation : public testing::TestWithParam<Recording> {
protected:
    ~NativeConversation() override {
        comfyd_.reset();
        worker_.stop();
        thread_.stop();
    }

    void start() {
        thread_.start();
        ComfydOptions options;
        options.arguments = {"--set", "fleet.poll_ms=100"};
        if (GetParam().behind == Behind::worker) {
            worker_.start();
            options.arguments.insert(
                options.arguments.end(), {"--no-engine", "--worker", worker_.url()}
            );
        }
        comfyd_ = std::make_unique<Comfyd>(options);
        ASSERT_TRUE(wait_until([this] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") ==
                   json::value(1);
        }));
    }

    void play(const char* name, std::size_t prompts = SIZE_MAX) {
        // Files of a job lie in a subfolder of their own here, and uploads may be larger.
        // Several prompts at once: the next one begins while the end of one is being stored.
        const std::string_view number = std::string_view(name).substr(0, 2);
        const bool may_hurry = number == "07" || number == "15";
        const ConversationOptions options{{"subfolder", "max_upload_size"}, prompts, may_hurry};
        const std::string file = std::string(COMFYD_SOURCE) + "/tests/data/conversations/" + name;
        Conversation(comfyd_->url(), file, options).play();
    }

    net::IoThread thread_{"double"};
    ComfyDouble worker_{thread_.context(), {}};
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_P(NativeConversation, IsHeldAsByTheRealServer) {
    ASSERT_NO_FATAL_FAILURE(start());
    for (const char* name : GetParam().before) {
        play(name);
    }
    play(GetParam().name, GetParam().prompts);
}

INSTANTIATE_TEST_SUITE_P(
    Recorded,
    NativeConversation,
    testing::Values(
        Recording{"01-simple-success.json", Behind::engine},
        Recording{"01-simple-success.json", Behind::worker},
        Recording{"02-cached-rerun.json", Behind::engine, {"01-simple-success.json"}},
        Recording{"03-partly-cached.json", Behind::engine, {"01-simple-success.json"}},
        Recording{"05-interrupt-running.json", Behind::worker},
        Recording{"06-delete-from-queue.json", Behind::worker},
        Recording{"07-two-clients.json", Behind::worker},
        Recording{"08-reconnect-same-client-id.json", Behind::worker},
        Recording{"09-second-socket-same-client-id.json", Behind::engine},
        Recording{"09-second-socket-same-client-id.json", Behind::worker},
        Recording{"10-preview-image-and-websocket-image.json", Behind::worker},
        Recording{"11-feature-flags-preview-metadata.json", Behind::worker},
        Recording{"13-list-outputs.json", Behind::engine},
        Recording{"14-partial-execution-targets.json", Behind::engine},
        Recording{"14-partial-execution-targets.json", Behind::worker},
        Recording{"15-own-prompt-id-and-order.json", Behind::worker},
        Recording{"16-free-and-history.json", Behind::engine},
        Recording{"16-free-and-history.json", Behind::worker},
        Recording{"17-validation-failure-sends-no-message.json", Behind::engine},
        Recording{"17-validation-failure-sends-no-message.json", Behind::worker},
        Recording{"18-lazy-and-blocked.json", Behind::engine, {}, 1}
    ),
    [](const auto& entry) {
        return "number_" + std::string(entry.param.name).substr(0, 2) +
               (entry.param.behind == Behind::worker ? "_worker" : "_engine");
    }
);

}  // namespace
}  // namespace comfyd::support
