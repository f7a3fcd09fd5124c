// Recorded conversations with a real ComfyUI, held with comfyd instead: in front of its engine
// where that has the nodes, of a double, or of engine servers that have the nodes of ComfyUI's test
// pack too.
#include "native_support.hpp"
#include "standalone/test_support.hpp"
#include "support/conversation.hpp"
#include "support/engine_test_nodes.hpp"

namespace comfyd::support {
namespace {

enum class Behind { engine, worker, engine_server, engine_servers };

std::size_t count_workers(Behind behind) {
    return behind == Behind::engine_servers ? 2 : 1;
}

struct Recording {
    const char* name;
    Behind behind;
    std::vector<const char*> before{};  // held on the same server first: they fill its cache

    friend void PrintTo(const Recording& shown, std::ostream* out) { *out << shown.name; }
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
        const Behind behind = GetParam().behind;
        const std::size_t workers = count_workers(behind);
        if (behind != Behind::engine) {
            options.arguments.emplace_back("--no-engine");
        }
        if (behind == Behind::worker) {
            worker_.start();
            options.arguments.insert(options.arguments.end(), {"--worker", worker_.url()});
        } else if (behind != Behind::engine) {
            for (std::size_t i = 0; i < workers; ++i) {
                standalone::Options with;
                with.add_classes = &add_test_nodes;
                servers_.push_back(std::make_unique<standalone::test::TestServer>(with));
                options.arguments.insert(
                    options.arguments.end(), {"--worker", servers_.back()->url()}
                );
            }
        }
        comfyd_ = std::make_unique<Comfyd>(options);
        ASSERT_TRUE(wait_until([this, workers] {
            return comfyd_->http().get("/api/v1/workers/metrics").json_at("/idle_workers") ==
                   json::value(workers);
        }));
    }

    void play(const char* name) {
        // Files of a job lie in a subfolder of their own here, and uploads may be larger.
        // Several prompts at once: the next one begins while the end of one is being stored.
        const std::string_view number = std::string_view(name).substr(0, 2);
        const bool may_hurry = number == "07" || number == "15";
        const ConversationOptions options{{"subfolder", "max_upload_size"}, may_hurry};
        const std::string file = std::string(COMFYD_SOURCE) + "/tests/data/conversations/" + name;
        Conversation(comfyd_->url(), file, options).play();
    }

    net::IoThread thread_{"double"};
    ComfyDouble worker_{thread_.context(), {}};
    std::vector<std::unique_ptr<standalone::test::TestServer>> servers_;
    std::unique_ptr<Comfyd> comfyd_;
};

TEST_P(NativeConversation, IsHeldAsByTheRealServer) {
    ASSERT_NO_FATAL_FAILURE(start());
    for (const char* name : GetParam().before) {
        play(name);
    }
    play(GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
    Recorded,
    NativeConversation,
    testing::Values(
        Recording{"01-simple-success.json", Behind::engine},
        Recording{"01-simple-success.json", Behind::worker},
        Recording{"02-cached-rerun.json", Behind::engine, {"01-simple-success.json"}},
        Recording{"03-partly-cached.json", Behind::engine, {"01-simple-success.json"}},
        Recording{"04-node-error.json", Behind::engine_servers},
        Recording{"05-interrupt-running.json", Behind::worker},
        Recording{"06-delete-from-queue.json", Behind::worker},
        Recording{"07-two-clients.json", Behind::worker},
        Recording{"08-reconnect-same-client-id.json", Behind::worker},
        Recording{"09-second-socket-same-client-id.json", Behind::engine},
        Recording{"09-second-socket-same-client-id.json", Behind::worker},
        Recording{"10-preview-image-and-websocket-image.json", Behind::worker},
        Recording{"11-feature-flags-preview-metadata.json", Behind::worker},
        Recording{"12-progress.json", Behind::engine_servers},
        Recording{"13-list-outputs.json", Behind::engine},
        Recording{"14-partial-execution-targets.json", Behind::engine},
        Recording{"14-partial-execution-targets.json", Behind::worker},
        Recording{"15-own-prompt-id-and-order.json", Behind::worker},
        Recording{"16-free-and-history.json", Behind::engine},
        Recording{"16-free-and-history.json", Behind::worker},
        Recording{"17-validation-failure-sends-no-message.json", Behind::engine},
        Recording{"17-validation-failure-sends-no-message.json", Behind::worker},
        // One server: its last prompt is about what the server's cache has of the one before.
        Recording{"18-lazy-and-blocked.json", Behind::engine_server},
        Recording{"19-node-expansion-loop.json", Behind::engine_servers}
    ),
    [](const auto& entry) {
        const Behind behind = entry.param.behind;
        return "number_" + std::string(entry.param.name).substr(0, 2) +
               (behind == Behind::worker   ? "_worker"
                : behind == Behind::engine ? "_engine"
                                           : "_test_nodes");
    }
);

}  // namespace
}  // namespace comfyd::support
