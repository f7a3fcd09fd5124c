#include "fleet/providers/process_record.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <utility>

#include "base/disk.hpp"
#include "base/json.hpp"
#include "base/text.hpp"

namespace comfyd::fleet {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kRecordBytesMax = 1'000'000;
constexpr std::uint64_t kWorkerBytesMax = 64'000;

// Reads members one by one, and remembers the first that is wrong.
class Members {
public:
    explicit Members(const json::object& from) : from_(from) {}

    std::string text(std::string_view key) {
        return take(json::find_string(from_, key)).value_or("");
    }
    std::uint64_t number(std::string_view key, std::int64_t most) {
        const std::int64_t number = take(json::find_int(from_, key)).value_or(0);
        if (number < 0 || number > most) {
            error_ =
                error_.value_or(Error(Code::invalid_argument, std::string(key) + " cannot be"));
            return 0;
        }
        return static_cast<std::uint64_t>(number);
    }
    bool flag(std::string_view key) { return take(json::find_bool(from_, key)).value_or(false); }
    std::map<std::string, std::string> texts(std::string_view key) {
        std::map<std::string, std::string> texts;
        const auto found = json::find_object(from_, key);
        if (found && *found != nullptr) {
            for (const auto& [name, value] : **found) {
                if (value.is_string()) {
                    texts.emplace(view(name), view(value.get_string()));
                }
            }
        }
        return texts;
    }
    std::vector<std::string> list(std::string_view key) {
        std::vector<std::string> list;
        const auto found = json::find_array(from_, key);
        if (found && *found != nullptr) {
            for (const json::value& value : **found) {
                if (value.is_string()) {
                    list.emplace_back(view(value.get_string()));
                }
            }
        }
        return list;
    }
    const std::optional<Error>& error() const { return error_; }

private:
    template <class T>
    std::optional<T> take(Result<std::optional<T>> found) {
        if (!found) {
            error_ = error_.value_or(std::move(found.error()));
            return std::nullopt;
        }
        return std::move(*found);
    }

    const json::object& from_;
    std::optional<Error> error_;
};

json::object to_json(const std::map<std::string, std::string>& texts) {
    json::object object;
    for (const auto& [name, value] : texts) {
        object[name] = value;
    }
    return object;
}

Result<json::object> read_object(const fs::path& file, std::uint64_t bytes_max) {
    const auto text = read_file(file, bytes_max);
    if (!text) {
        return fail(text.error());
    }
    return json::parse_object(*text);
}

constexpr auto kPidMax = std::numeric_limits<pid_t>::max();
constexpr auto kNumberMax = std::numeric_limits<std::int64_t>::max();
constexpr int kPortMax = 65'535;
constexpr int kPerGpuMax = 1'000;

}  // namespace

bool is_machine_name(std::string_view name) {
    const auto is_good = [](char c) {
        return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' ||
               c == '_' || c == '.';
    };
    return !name.empty() && name.size() <= 128 && name.front() != '.' && name.front() != '-' &&
           std::ranges::all_of(name, is_good);
}

Result<ProcessRecord> read_record(const fs::path& folder) {
    const auto object = read_object(folder / "machine.json", kRecordBytesMax);
    if (!object) {
        return fail(object.error());
    }
    Members members(*object);
    ProcessRecord record;
    record.name = members.text("name");
    record.fleet = members.text("fleet");
    record.instance = members.text("instance");
    record.pool = members.text("pool");
    record.gpu = members.text("gpu");
    record.memory_bytes = members.number("memory_bytes", kNumberMax);
    record.per_gpu = static_cast<int>(members.number("per_gpu", kPerGpuMax));
    record.hides_gpus = members.flag("hides_gpus");
    record.port = static_cast<int>(members.number("port", kPortMax));
    record.comfyui_port = static_cast<int>(members.number("comfyui_port", kPortMax));
    record.arguments = members.list("arguments");
    record.environment = members.texts("environment");
    record.made_at = from_unix_ms(static_cast<std::int64_t>(members.number("made_at", kNumberMax)));
    record.agent.pid = static_cast<pid_t>(members.number("pid", kPidMax));
    record.agent.started = members.number("started", kNumberMax);
    record.boot = members.text("boot");
    record.cgroup = members.text("cgroup");
    record.is_stopped = members.flag("is_stopped");
    if (members.error()) {
        return fail(*members.error());
    }
    if (record.name != folder.filename()) {
        return fail(Code::invalid_argument, "it is the record of another machine");
    }
    return record;
}

Result<> write_record(const fs::path& folder, const ProcessRecord& record) {
    json::array arguments;
    for (const std::string& argument : record.arguments) {
        arguments.emplace_back(argument);
    }
    const json::object object{
        {"name", record.name},
        {"fleet", record.fleet},
        {"instance", record.instance},
        {"pool", record.pool},
        {"gpu", record.gpu},
        {"memory_bytes", record.memory_bytes},
        {"per_gpu", record.per_gpu},
        {"hides_gpus", record.hides_gpus},
        {"port", record.port},
        {"comfyui_port", record.comfyui_port},
        {"arguments", std::move(arguments)},
        {"environment", to_json(record.environment)},
        {"made_at", to_unix_ms(record.made_at)},
        {"pid", record.agent.pid},
        {"started", record.agent.started},
        {"boot", record.boot},
        {"cgroup", record.cgroup},
        {"is_stopped", record.is_stopped},
    };
    return write_file(folder / "machine.json", json::serialize(object) + "\n");
}

Result<std::map<std::string, std::string>> read_secrets(const fs::path& folder) {
    const auto object = read_object(folder / "secrets", kRecordBytesMax);
    if (!object) {
        return fail(object.error());
    }
    const json::object all{{"secrets", *object}};
    return Members(all).texts("secrets");
}

Result<> write_secrets(const fs::path& folder, const std::map<std::string, std::string>& secrets) {
    return write_file(folder / "secrets", json::serialize(to_json(secrets)) + "\n");
}

std::string this_boot() {
    // A file of the kernel says that it has no length.
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    std::getline(file, id);
    return id;
}

bool agent_is_up(const fs::path& folder, const ProcessRecord& record) {
    const auto object = read_object(folder / "work" / "worker.json", kWorkerBytesMax);
    if (!object) {
        return false;
    }
    Members members(*object);
    const ProcessMark told{
        static_cast<pid_t>(members.number("pid", kPidMax)), members.number("started", kNumberMax)
    };
    const std::string instance = members.text("instance");
    return !members.error() && told == record.agent && instance == record.instance;
}

}  // namespace comfyd::fleet
