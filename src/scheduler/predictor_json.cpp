// What was learned, as a document and back. Lists stand oldest first, so that reading them in order
// also restores what is forgotten next.
#include <algorithm>
#include <cmath>
#include <ranges>

#include "base/learned_json.hpp"
#include "scheduler/predictor.hpp"
#include "scheduler/predictor_keys.hpp"

namespace comfyd::scheduler {
namespace {

constexpr int kVersion = 1;

template <class Recent>
json::array by_type_json(const std::vector<std::pair<std::string, Recent>>& list) {
    json::array made;
    for (const auto& [type, recent] : list) {
        made.emplace_back(json::array{type, samples_json(recent)});
    }
    return made;
}

template <class Map, class Write>
json::array map_json(const Map& map, Write write) {
    json::array made;
    made.reserve(map.size());
    for (const auto& [key, value] : map.entries() | std::views::reverse) {
        made.emplace_back(write(key, value));
    }
    return made;
}

template <std::size_t kSamplesMax>
void read_by_type(
    const json::value& from,
    std::vector<std::pair<std::string, RecentMedian<kSamplesMax>>>& into,
    std::size_t size_max
) {
    each_learned(&from, 2, [&](std::string_view type, const json::array& fields) {
        use_entry(into, type, size_max) = read_samples<kSamplesMax>(fields[1]);
    });
}

}  // namespace

json::object Predictor::to_json() const {
    json::object made{{"kind", "comfyd learned times"}, {"version", kVersion}};
    made["shapes"] = map_json(shapes_, [](const std::string& key, const Shape& shape) {
        json::array on;
        for (const OnGpu& gpu : shape.on) {
            on.emplace_back(
                json::array{gpu.gpu_type, gpu.mixed, gpu.vram, samples_json(gpu.log_seconds)}
            );
        }
        return json::array{key, std::move(on)};
    });
    json::array batches;
    for (const auto& [key, shape] : shapes_.entries() | std::views::reverse) {
        json::array on;
        for (const OnGpu& gpu : shape.on) {
            if (!gpu.batches.empty() || gpu.batched_vram > 0) {
                on.emplace_back(json::array{gpu.gpu_type, gpu.batched_vram, gpu.batches.to_json()});
            }
        }
        if (!on.empty()) {
            batches.emplace_back(json::array{key, std::move(on)});
        }
    }
    made["batches"] = std::move(batches);
    made["class_sets"] = map_json(class_sets_, [](const std::string& key, const ClassSet& set) {
        return json::array{
            key, json::array(set.classes.begin(), set.classes.end()), by_type_json(set.log_rates)
        };
    });
    made["gpu_types"] = map_json(gpu_types_, [](const std::string& key, const GpuType& type) {
        return json::array{key, samples_json(type.log_factor), by_type_json(type.log_ratios)};
    });
    const auto recent_json = [](const std::string& key, const Recent& recent) {
        return json::array{key, samples_json(recent)};
    };
    made["loads"] = map_json(loads_, recent_json);
    made["load_rates"] = map_json(load_rates_, recent_json);
    return made;
}

Result<> Predictor::restore(const json::object& from) {
    const json::value* version = json::find(from, "version");
    if (version == nullptr || *version != kVersion) {
        return fail(
            Code::invalid_argument,
            "what was learned before is of another version of comfyd; it is learned anew"
        );
    }
    shapes_.clear();
    class_sets_.clear();
    gpu_types_.clear();
    loads_.clear();
    load_rates_.clear();
    restore_shapes(from);
    restore_batches(from);
    restore_rates(from);
    ++version_;
    return {};
}

void Predictor::restore_shapes(const json::object& from) {
    each_learned(
        json::find(from, "shapes"),
        2,
        [&](std::string_view key, const json::array& fields) {
            each_learned(&fields[1], 4, [&](std::string_view type, const json::array& gpu) {
                OnGpu& made = use_on(key, type);
                made.mixed = gpu[1].is_bool() && gpu[1].get_bool();
                const double vram = gpu[2].is_number() ? gpu[2].to_number<double>() : 0;
                made.vram = vram > 0 && vram < 1e15 ? vram : 0;
                made.log_seconds = read_samples<kRecent>(gpu[3]);
            });
        }
    );
    each_learned(
        json::find(from, "class_sets"),
        3,
        [&](std::string_view key, const json::array& fields) {
            const json::array* classes = fields[1].if_array();
            if (classes == nullptr) {
                return;
            }
            ClassSet& set = class_sets_.use(key);
            set.classes.clear();
            for (const json::value& one : *classes) {
                if (one.is_uint64() || one.is_int64()) {
                    set.classes.push_back(
                        one.is_uint64() ? one.get_uint64()
                                        : static_cast<std::uint64_t>(one.get_int64())
                    );
                }
            }
            std::ranges::sort(set.classes);
            read_by_type(fields[2], set.log_rates, limits_.gpu_types);
        }
    );
}

// Of shapes that are there only.
void Predictor::restore_batches(const json::object& from) {
    each_learned(
        json::find(from, "batches"),
        2,
        [&](std::string_view key, const json::array& fields) {
            if (shapes_.find(key) == nullptr) {
                return;
            }
            each_learned(&fields[1], 3, [&](std::string_view type, const json::array& gpu) {
                OnGpu& made = use_on(key, type);
                const double bytes = gpu[1].is_number() ? gpu[1].to_number<double>() : 0;
                made.batched_vram = bytes > 0 && bytes < 1e15 ? bytes : 0;
                made.batches = BatchTimes::from_json(gpu[2]);
            });
        }
    );
}

void Predictor::restore_rates(const json::object& from) {
    each_learned(
        json::find(from, "gpu_types"),
        3,
        [&](std::string_view key, const json::array& fields) {
            GpuType& type = gpu_types_.use(key);
            type.log_factor = read_samples<kRecentMany>(fields[1]);
            read_by_type(fields[2], type.log_ratios, limits_.gpu_types);
        }
    );
    const auto read_recent = [&from](const char* name, LruMap<Recent>& into) {
        each_learned(
            json::find(from, name),
            2,
            [&](std::string_view key, const json::array& fields) {
                into.use(key) = read_samples<kRecent>(fields[1]);
            }
        );
    };
    read_recent("loads", loads_);
    read_recent("load_rates", load_rates_);
}

}  // namespace comfyd::scheduler
