#include "support/container_engine.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "support/wait.hpp"

namespace comfyd::support {
namespace {

constexpr std::chrono::seconds kPatience{120};

constexpr const char* kAgent = R"(#!/bin/busybox sh
case "$1" in
crash) exit "$2" ;;
eat) x=0123456789; while :; do x="$x$x"; done ;;
esac
trap 'echo ending; exit 0' TERM
echo "agent of $COMFYD_INSTANCE"
echo "a warning" >&2
busybox httpd -p "$SERVER_HOST:$SERVER_PORT" -h /www
while :; do busybox sleep 1 & wait $!; done
)";

constexpr const char* kComfyUi = R"(while [ "$1" != --port ]; do shift; done
exec /programs/comfy-double --listen "127.0.0.1:$2" --journal /journal/lines
)";
constexpr const char* kComfyUiEntry =
    R"("/programs/comfyd","worker","--comfyui","/ComfyUI","--python","/bin/sh","--folder","/worker")";

// No limits that a computer without CAP_SYS_RESOURCE could not set, and no systemd.
constexpr const char* kPodmanSettings = R"([containers]
default_ulimits=["nofile=1024:1024","nproc=1024:1024"]
[engine]
runtime="runc"
cgroup_manager="cgroupfs"
events_logger="file"
)";

constexpr const char* kRegistrySettings = R"(version: 0.1
storage: {filesystem: {rootdirectory: %}}
http: {addr: "127.0.0.1:5000"}
)";

std::string run(std::vector<std::string> command, bool may_fail = false) {
    const std::string name = command.front();
    Process process(std::move(command));
    if (process.wait(kPatience) != 0 && !may_fail) {
        throw std::runtime_error(
            name + " failed (scripts/packages.txt has what tests need): " + process.output() +
            process.errors()
        );
    }
    return process.output();
}

}  // namespace

ContainerEngine::ContainerEngine(Kind kind) : kind_(kind) {
    if (::geteuid() != 0) {
        throw std::runtime_error("a container engine of one's own needs root: run the tests as root"
        );
    }
    folder_.write("containers.conf", kPodmanSettings);
    std::string registry = kRegistrySettings;
    registry.replace(registry.find('%'), 1, folder_ / "registry");
    folder_.write("registry.yml", registry);
    folder_.write(
        "start-docker",
        "cd " + folder_.path().string() +
            " && ip link set lo up || exit 1\n"
            "docker-registry serve registry.yml >registry.log 2>&1 & echo $! >registry.pid\n"
            "for start in 1 2 3 4 5; do dockerd --data-root $PWD/data --exec-root $PWD/exec "
            "-p $PWD/pid -H unix://" +
            socket() + " --storage-driver overlay2 >>engine.log 2>&1; rm -f pid; done\n"
    );
    folder_.write(
        "start-podman",
        "cd " + folder_.path().string() +
            " && ip link set lo up || exit 1\nexport CONTAINERS_CONF=$PWD/containers.conf\n"
            "take() { podman --root $PWD/store --runroot $PWD/run import -q "
            "--change \"ENTRYPOINT [$3]\" $1 \"$2\" >>engine.log 2>&1 || exit 1; }\n"
            "take image.tar " +
            kImage + " '\"/agent\"'\ntake image.tar " + kBrokenImage +
            " '\"/www\"'\ntake comfyui.tar " + kComfyUiImage + " '" + kComfyUiEntry +
            "'\n"
            "exec podman --root $PWD/store --runroot $PWD/run system service --time=0 unix://" +
            socket() + " >>engine.log 2>&1\n"
    );
    make_agent_image();
    make_comfyui_image();
    start();
    if (kind_ == Kind::docker) {
        import_image("image.tar", "localhost/agent", R"("/agent")");
        import_image("image.tar", "localhost/broken", R"("/www")");
        import_image("comfyui.tar", "localhost/comfyui", kComfyUiEntry);
        // Another content, or its layers would be here already.
        folder_.write("root/more", "of it");
        run({"tar", "-C", folder_ / "root", "-rf", folder_ / "image.tar", "more"});
        import_image("image.tar", "127.0.0.1:5000/agent", R"("/agent")");
        push_image("127.0.0.1:5000/agent");
        import_image("comfyui.tar", "127.0.0.1:5000/comfyui", kComfyUiEntry);
        push_image("127.0.0.1:5000/comfyui");
    }
}

void ContainerEngine::make_agent_image() {
    folder_.write("root/agent", kAgent);
    folder_.write("root/www/healthz", "{\"status\":\"ok\"}");
    // More than a moment's worth of bytes, which do not shrink.
    run(
        {"dd",
         "if=/dev/urandom",
         "of=" + (folder_ / "root/weights"),
         "bs=1M",
         "count=4",
         "status=none"}
    );
    ::chmod((folder_ / "root/agent").c_str(), 0755);
    std::filesystem::create_directories(folder_.path() / "root/bin");
    std::filesystem::create_directories(folder_.path() / "root/tmp");
    run({"sh", "-c", "cp \"$(command -v busybox)\" " + (folder_ / "root/bin/busybox")});
    std::filesystem::create_symlink("busybox", folder_.path() / "root/bin/sh");
    run({"tar", "-C", folder_ / "root", "-cf", folder_ / "image.tar", "."});
}

void ContainerEngine::make_comfyui_image() {
    const auto root = folder_.path() / "comfyui";
    for (const char* place : {"usr", "programs", "journal", "tmp", "worker"}) {
        std::filesystem::create_directories(root / place);
    }
    for (const char* part : {"bin", "lib", "lib64"}) {
        std::filesystem::create_symlink(std::string("usr/") + part, root / part);
    }
    folder_.write("comfyui/ComfyUI/main.py", kComfyUi);
    run({"tar", "-C", root, "-cf", folder_ / "comfyui.tar", "."});
}

ContainerEngine::~ContainerEngine() {
    process_->kill(SIGKILL);
    process_->wait(kPatience);
    // All of its processes are gone before the first of them is.
    wait_until([&] { return ::access(("/proc/" + init_pid_).c_str(), F_OK) != 0; }, kPatience);
}

ContainerEngine& ContainerEngine::shared(Kind kind) {
    if (kind == Kind::docker) {
        static ContainerEngine docker(Kind::docker);
        return docker;
    }
    static ContainerEngine podman(Kind::podman);
    return podman;
}

std::vector<std::string> ContainerEngine::command() const {
    return {
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        folder_ / (kind_ == Kind::docker ? "start-docker" : "start-podman")
    };
}

void ContainerEngine::start() {
    process_ = std::make_unique<Process>(command());
    const bool is_up =
        wait_until([&] { return api("GET", "/_ping") == "OK" || !process_->running(); }, kPatience);
    if (!is_up || !process_->running()) {
        throw std::runtime_error(
            "no container engine comes up (scripts/packages.txt has them): " + process_->output() +
            process_->errors() + read_file(folder_.path() / "engine.log")
        );
    }
    const std::string parent = std::to_string(process_->pid());
    init_pid_ = read_file("/proc/" + parent + "/task/" + parent + "/children");
    init_pid_ = init_pid_.substr(0, init_pid_.find(' '));
}

void ContainerEngine::crash() {
    signal("pid", "KILL");
}

void ContainerEngine::freeze() {
    // Podman is the first process of its own, which nobody in there can stop.
    kind_ == Kind::podman ? void(::kill(std::stoi(init_pid_), SIGSTOP)) : signal("pid", "STOP");
}

void ContainerEngine::thaw() {
    kind_ == Kind::podman ? void(::kill(std::stoi(init_pid_), SIGCONT)) : signal("pid", "CONT");
}

void ContainerEngine::signal(const std::string& pid_file, const std::string& name) const {
    const std::string kill = "kill -" + name + " \"$(cat " + (folder_ / pid_file) + ")\"";
    run({"nsenter", "-t", init_pid_, "--pid", "--mount", "sh", "-c", kill});
}

ContainerEngine::Inside::Inside(const ContainerEngine& engine) {
    const auto open = [](const std::string& path) {
        return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    };
    before_ = open("/proc/thread-self/ns/net");
    const int inside = open("/proc/" + engine.init_pid_ + "/ns/net");
    if (before_ < 0 || inside < 0 || ::setns(inside, CLONE_NEWNET) != 0) {
        throw std::runtime_error("the engine's network cannot be entered");
    }
    ::close(inside);
}

ContainerEngine::Inside::~Inside() {
    static_cast<void>(::setns(before_, CLONE_NEWNET));
    ::close(before_);
}

std::string ContainerEngine::get(const std::string& url) const {
    return run(
        {"nsenter", "--net=/proc/" + init_pid_ + "/ns/net", "curl", "-s", "-m", "10", url}, true
    );
}

std::string ContainerEngine::api(
    const std::string& method, const std::string& path, const std::string& body
) const {
    std::vector<std::string> command{
        "curl", "-s", "-m", "60", "--unix-socket", socket(), "-X", method, "http://engine" + path
    };
    if (!body.empty()) {
        command.insert(command.end(), {"-H", "Content-Type: application/json", "-d", body});
    }
    return run(std::move(command), true);
}

void ContainerEngine::import_image(
    const std::string& archive, const std::string& repository, const std::string& entrypoint
) const {
    std::string encoded;
    for (const char c : entrypoint) {
        encoded += c == '"' ? "%22" : std::string(1, c);
    }
    run(
        {"curl",
         "-sS",
         "--fail",
         "--unix-socket",
         socket(),
         "-X",
         "POST",
         "-H",
         "Content-Type: application/x-tar",
         "--data-binary",
         "@" + (folder_ / archive),
         "http://engine/images/create?fromSrc=-&tag=1&repo=" + repository +
             "&changes=ENTRYPOINT%20%5B" + encoded + "%5D"}
    );
}

// And away from here.
void ContainerEngine::push_image(const std::string& repository) const {
    const std::string pushed = run(
        {"curl",
         "-sS",
         "--fail",
         "--unix-socket",
         socket(),
         "-X",
         "POST",
         "-H",
         "X-Registry-Auth: e30=",
         "http://engine/images/" + repository + "/push?tag=1"}
    );
    if (pushed.find("\"error\"") != std::string::npos) {
        throw std::runtime_error("the image cannot be pushed: " + pushed);
    }
    forget_image(repository + ":1");
}

void ContainerEngine::forget_image(const std::string& image) const {
    api("DELETE", "/images/" + image + "?force=1");
}

}  // namespace comfyd::support
