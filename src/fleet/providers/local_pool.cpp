#include "fleet/providers/local_pool.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/filter_process.hpp"
#include "base/find_program.hpp"
#include "base/text.hpp"

namespace comfyd::fleet {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> wrong(const std::string& name, const std::string& why) {
    return fail(Code::config_invalid, "'comfyui." + name + "' " + why);
}

// "any" in the place of GPUs.
constexpr std::string_view kAny = "any";

Result<fs::path> find_comfyui(const std::string& dir) {
    std::error_code error;
    const fs::path folder = fs::canonical(dir, error);
    if (dir.empty() || error || !fs::is_directory(folder, error)) {
        return wrong("dir", "names '" + dir + "', which is no folder");
    }
    const auto has = [&error](const fs::path& in) {
        return fs::is_regular_file(in / "main.py", error) &&
               fs::is_regular_file(in / "nodes.py", error) && fs::is_directory(in / "comfy", error);
    };
    if (has(folder)) {
        return folder;
    }
    for (const fs::path& near : {folder / "ComfyUI", folder.parent_path()}) {
        if (has(near)) {
            return wrong(
                "dir", "names '" + dir + "', but ComfyUI is in '" + near.string() + "': name that"
            );
        }
    }
    return wrong(
        "dir",
        "names '" + dir +
            "', which is no ComfyUI: there must be main.py, nodes.py and the folder comfy in it, "
            "as "
            "in a clone of its repository"
    );
}

Result<std::string> find_python(const LocalSettings& settings, const fs::path& comfyui) {
    if (!settings.python.empty()) {
        std::error_code error;
        const std::string found = find_program(settings.python);
        return found.empty() ? Result<std::string>(wrong(
                                   "python", "names '" + settings.python + "', which is no program"
                               ))
                             : fs::absolute(found, error).string();
    }
    for (const char* place : {"venv/bin/python", ".venv/bin/python"}) {
        if (const std::string found = find_program(comfyui / place); !found.empty()) {
            return found;
        }
    }
    const std::string found = find_program("python3");
    return found.empty() ? Result<std::string>(wrong(
                               "python",
                               "must name the Python that ComfyUI runs with: there is neither a "
                               "virtual environment (venv, .venv) in its folder nor a python3"
                           ))
                         : found;
}

// Without importing anything: that takes seconds, and a GPU.
Result<> check_python(const std::string& python) {
    constexpr const char* kScript =
        "import importlib.util as u\n"
        "print(','.join(m for m in ('torch', 'aiohttp', 'yaml') if u.find_spec(m) is None))\n"
        "print('looked')";
    ChildCommand command{"Python", python, {"-c", kScript}, {}};
    for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH"}) {
        if (const char* value = std::getenv(name)) {
            command.environment.push_back(std::string(name) + "=" + value);
        }
    }
    const auto said = run_filter(command, "", {Millis(60'000), 4'096});
    if (!said || !said->ends_with("looked\n")) {
        return wrong(
            "python",
            "is '" + python + "', which does not run Python code" +
                (said ? std::string() : ": " + said.error().message)
        );
    }
    const std::string missing(trim(said->substr(0, said->find('\n'))));
    if (!missing.empty()) {
        return wrong(
            "python",
            "is '" + python + "', which lacks what ComfyUI needs (" + missing +
                "): name the Python that ComfyUI runs with, or install its requirements.txt"
        );
    }
    return {};
}

std::string names_of(const std::vector<Gpu>& gpus) {
    std::string names;
    for (std::size_t at = 0; at < gpus.size(); ++at) {
        names += (at == 0 ? "" : ", ") + std::to_string(at) + " = " + gpus[at].uuid + " (" +
                 gpus[at].name + ")";
    }
    return names;
}

// The UUIDs of those that shall be used.
Result<std::vector<Gpu>> choose(const std::vector<std::string>& wanted, std::vector<Gpu> all) {
    if (wanted.empty()) {
        return all;
    }
    std::vector<Gpu> chosen;
    for (const std::string& word : wanted) {
        const auto found = std::ranges::find_if(all, [&](const Gpu& gpu) {
            return gpu.uuid == word || std::to_string(&gpu - all.data()) == word;
        });
        if (found == all.end()) {
            return wrong(
                "gpus", "names '" + word + "', which is none of the GPUs here: " + names_of(all)
            );
        }
        if (std::ranges::find(chosen, found->uuid, &Gpu::uuid) == chosen.end()) {
            chosen.push_back(*found);
        }
    }
    return chosen;
}

Result<> add_packs(const LocalSettings& settings, ProcessOptions& options) {
    for (const std::string& text : settings.packs) {
        auto pack = agent::read_pack(text);
        if (!pack) {
            return wrong("packs", "cannot be used: " + pack.error().message);
        }
        options.packs.push_back(std::move(*pack));
    }
    options.pack_rules.allowed = settings.packs_allowed;
    options.pack_rules.comfyui = settings.dir;
    if (auto good = agent::check_packs(options.packs, options.pack_rules); !good) {
        return wrong("packs", "cannot be used: " + good.error().message);
    }
    return {};
}

// What is not there could not be confined to.
Result<> add_walls(const LocalSettings& settings, std::vector<std::string>& arguments) {
    if (!settings.sandbox.empty()) {
        arguments.insert(arguments.end(), {"--sandbox", settings.sandbox});
    }
    const auto add = [&arguments](
                         const char* name, const char* flag, const std::vector<std::string>& paths
                     ) -> Result<> {
        for (const std::string& path : paths) {
            std::error_code error;
            const fs::path found = fs::canonical(path, error);
            if (error) {
                return wrong(name, "names '" + path + "', which is not there");
            }
            arguments.insert(arguments.end(), {flag, found.string()});
        }
        return {};
    };
    auto added = add("readable", "--read", settings.readable);
    return added ? add("writable", "--write", settings.writable) : std::move(added);
}

// How many places the GPUs have when nobody is there.
Result<int> count_places(const LocalSettings& settings, LocalPool& pool) {
    const GpuReading reading = GpuReader(pool.provider.gpus).look();
    if (reading.gpus.empty()) {
        return wrong(
            "gpus",
            "finds no NVIDIA GPU here (" +
                (reading.problem.empty() ? "there is none" : reading.problem) +
                "): install NVIDIA's driver; for other GPUs set it to any, and for none add --cpu "
                "to comfyui.arguments"
        );
    }
    const auto gpus = choose(settings.gpus, reading.gpus);
    if (!gpus) {
        return fail(gpus.error());
    }
    int places = 0;
    std::string reasons;
    for (Gpu gpu : *gpus) {
        pool.provider.gpus_used.push_back(gpu.uuid);
        pool.provider.gpu_kinds.push_back(gpu.name);
        gpu.memory_free_bytes = gpu.memory_total_bytes;
        const GpuPlace place = place_on({gpu, {}, 0}, pool.provider.sharing);
        places += place.free_places;
        reasons += (reasons.empty() ? "" : "; ") + place.reason;
    }
    if (places == 0) {
        return wrong("gpu_memory_mb", "or 'comfyui.per_gpu' is too much for every GPU: " + reasons);
    }
    return places;
}

}  // namespace

Result<LocalPool> local_pool(
    const LocalSettings& settings, const fs::path& folder, const GpuSources& gpus
) {
    constexpr std::uint64_t kMegabyte = 1'000'000;
    LocalPool pool;
    ProcessOptions& provider = pool.provider;
    auto comfyui = find_comfyui(settings.dir);
    if (!comfyui) {
        return fail(std::move(comfyui.error()));
    }
    provider.comfyui = std::move(*comfyui);
    auto python = find_python(settings, provider.comfyui);
    if (!python) {
        return fail(std::move(python.error()));
    }
    provider.python = std::move(*python);
    if (auto good = check_python(provider.python); !good) {
        return fail(std::move(good.error()));
    }
    if (auto added = add_packs(settings, provider); !added) {
        return fail(std::move(added.error()));
    }
    if (auto added = add_walls(settings, provider.agent_arguments); !added) {
        return fail(std::move(added.error()));
    }
    provider.folder = folder;
    provider.comfyui_arguments = settings.arguments;
    provider.gpus = gpus;
    provider.sharing = {
        settings.per_gpu, static_cast<std::uint64_t>(settings.gpu_memory_mb) * kMegabyte
    };
    provider.port_first = settings.port_first;
    provider.port_last = settings.port_last;
    if (settings.recycle_jobs > 0) {
        provider.environment["COMFYD_RECYCLE_JOBS"] = std::to_string(settings.recycle_jobs);
    }
    if (settings.recycle_ram_mb > 0) {
        provider.environment["COMFYD_RECYCLE_RAM_MB"] = std::to_string(settings.recycle_ram_mb);
    }
    const bool is_any = settings.gpus == std::vector{std::string(kAny)};
    const bool is_cpu = std::ranges::find(settings.arguments, "--cpu") != settings.arguments.end();
    if (is_any || is_cpu) {
        provider.finds_gpu_itself = true;
        if (is_cpu) {
            provider.gpu_kinds = {"cpu"};
        }
        pool.size = settings.per_gpu;
        return pool;
    }
    const auto places = count_places(settings, pool);
    if (!places) {
        return fail(places.error());
    }
    pool.size = *places;
    return pool;
}

}  // namespace comfyd::fleet
