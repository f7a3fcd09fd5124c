// Plays recorded conversations with a real ComfyUI against the double and compares what both say.
#include <gtest/gtest.h>

#include "net/io_threads.hpp"
#include "support/comfy_double.hpp"
#include "support/conversation.hpp"

namespace comfyd::support {
namespace {

class Recorded : public testing::TestWithParam<const char*> {};

TEST_P(Recorded, ConversationIsHeldAsByTheRealServer) {
    net::IoThread thread("double");
    ComfyDouble server(thread.context(), {});
    thread.start();
    server.start();
    Conversation(server.url(), std::string(CONVERSATIONS) + "/" + GetParam()).play();
    server.stop();
}

INSTANTIATE_TEST_SUITE_P(
    Conversations,
    Recorded,
    testing::Values(
        "01-simple-success.json",
        "05-interrupt-running.json",
        "06-delete-from-queue.json",
        "10-preview-image-and-websocket-image.json",
        "11-feature-flags-preview-metadata.json",
        "15-own-prompt-id-and-order.json",
        "17-validation-failure-sends-no-message.json"
    ),
    [](const auto& entry) { return "number_" + std::string(entry.param).substr(0, 2); }
);

}  // namespace
}  // namespace comfyd::support
