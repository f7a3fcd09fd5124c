// A real container engine of a test's own: dockerd or podman, from Debian's packages, with an image
// of a few programs that plays an agent, and one for the real agent. It has its own network, mounts
// and processes, which end with it: nothing of the computer is touched. Needs root.
//
// Starting it takes a second: tests share one. All members from one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace comfyd::support {

class ContainerEngine {
public:
    enum class Kind { docker, podman };

    // An agent that answers GET /healthz on $SERVER_HOST:$SERVER_PORT, prints two lines ("agent of
    // INSTANCE" and, to stderr, "a warning") and ends on SIGTERM. `crash CODE` and `eat` (memory)
    // as its command do that instead.
    static constexpr const char* kImage = "localhost/agent:1";
    // Its entrypoint is a folder: it can be made and not started.
    static constexpr const char* kBrokenImage = "localhost/broken:1";
    // The first one in a registry that only the engine reaches; not pulled yet. dockerd's only.
    static constexpr const char* kRemoteImage = "127.0.0.1:5000/agent:1";

    // Has nothing in it but the places for what is mounted there: /usr of this computer, comfyd and
    // comfy-double in /programs, and /journal. Its entrypoint is `comfyd worker` with a ComfyUI
    // that is the double, whose journal is /journal/lines. The second name of it is in dockerd's
    // registry; not pulled yet.
    static constexpr const char* kComfyUiImage = "localhost/comfyui:1";
    static constexpr const char* kRemoteComfyUiImage = "127.0.0.1:5000/comfyui:1";

    // Throws std::runtime_error with what is missing when it cannot be started.
    explicit ContainerEngine(Kind kind);
    ~ContainerEngine();

    // One for all tests of this process, started when first asked for.
    static ContainerEngine& shared(Kind kind);

    std::string socket() const { return folder_ / "engine.sock"; }
    // What an HTTP address in the engine's network answers; empty when nothing does.
    std::string get(const std::string& url) const;
    // curl at the engine's API: somebody else who uses it. The answer's body.
    std::string api(
        const std::string& method, const std::string& path, const std::string& body = {}
    ) const;
    // Kills dockerd, not its containers; it comes back by itself, up to five times.
    void crash();
    // It answers nothing until it is thawed; likewise dockerd's registry.
    void freeze();
    void thaw();
    void freeze_registry() { signal("registry.pid", "STOP"); }
    void thaw_registry() { signal("registry.pid", "CONT"); }
    // An image that must be pulled again.
    void forget_image(const std::string& image) const;

    // While there is one, the thread that made it, and what it starts, is in the engine's network,
    // where containers have their ports.
    class Inside {
    public:
        explicit Inside(const ContainerEngine& engine);
        ~Inside();
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

    private:
        int before_ = -1;
    };

private:
    void start();
    void make_agent_image();
    void make_comfyui_image();
    void import_image(
        const std::string& archive, const std::string& repository, const std::string& entrypoint
    ) const;
    void push_image(const std::string& repository) const;
    void signal(const std::string& pid_file, const std::string& name) const;
    std::vector<std::string> command() const;

    Kind kind_;
    TempDir folder_;
    std::unique_ptr<Process> process_;
    std::string init_pid_;  // of the engine, whose namespaces are entered
};

}  // namespace comfyd::support
