#include "jobs/usage.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace comfyd::jobs {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr double kMemoryUnitGib = 24;
constexpr double kMemoryUnitSurcharge = 0.5;

template <class T>
void keep_larger(std::optional<T>& kept, const std::optional<T>& other) {
    kept = std::max(kept, other);  // nothing is less than anything
}

std::int64_t integer_of(const json::object& from, std::string_view key) {
    return std::max<std::int64_t>(0, json::find_int(from, key).value_or(std::nullopt).value_or(0));
}

int count_of(const json::object& from, std::string_view key) {
    constexpr std::int64_t kMax = std::numeric_limits<int>::max();
    return static_cast<int>(std::min(integer_of(from, key), kMax));
}

std::optional<double> number_of(const json::object& from, std::string_view key) {
    const auto number = json::find_number(from, key).value_or(std::nullopt);
    return number && std::isfinite(*number) && *number >= 0 ? number : std::nullopt;
}

std::optional<std::uint64_t> bytes_of(const json::object& from, std::string_view key) {
    const auto number = json::find_int(from, key).value_or(std::nullopt);
    return number && *number >= 0 ? std::optional(static_cast<std::uint64_t>(*number))
                                  : std::nullopt;
}

}  // namespace

void Usage::add(const Usage& attempt) {
    gpu += attempt.gpu;
    model_load += attempt.model_load;
    inference += attempt.inference;
    images += attempt.images;
    models = std::max(models, attempt.models);
    model_loads += attempt.model_loads;
    keep_larger(vram_peak_bytes, attempt.vram_peak_bytes);
    keep_larger(ram_peak_bytes, attempt.ram_peak_bytes);
    keep_larger(gpu_percent, attempt.gpu_percent);
    keep_larger(cpu_percent, attempt.cpu_percent);
    gpu_second_usd = attempt.gpu_second_usd;
    cost_usd += attempt.cost_usd;
}

// What is nothing is left out: most attempts have little to tell, and every job keeps this.
json::object Usage::to_json() const {
    json::object object;
    const auto set = [&object](const char* key, auto value) {
        if (value != 0) {
            object[key] = value;
        }
    };
    set("gpu_ms", gpu.count());
    set("load_ms", model_load.count());
    set("inference_ms", inference.count());
    set("images", images);
    set("models", models);
    set("loads", model_loads);
    set("price", gpu_second_usd);
    set("cost", cost_usd);
    const auto set_bytes = [&object](const char* key, std::optional<std::uint64_t> bytes) {
        if (bytes) {
            object[key] = static_cast<std::int64_t>(*bytes);
        }
    };
    set_bytes("vram", vram_peak_bytes);
    set_bytes("ram", ram_peak_bytes);
    const auto set_percent = [&object](const char* key, std::optional<double> percent) {
        if (percent) {
            object[key] = *percent;
        }
    };
    set_percent("gpu", gpu_percent);
    set_percent("cpu", cpu_percent);
    return object;
}

Usage Usage::from_json(const json::object& from) {
    Usage usage;
    usage.gpu = Millis(integer_of(from, "gpu_ms"));
    usage.model_load = Millis(integer_of(from, "load_ms"));
    usage.inference = Millis(integer_of(from, "inference_ms"));
    usage.images = count_of(from, "images");
    usage.models = count_of(from, "models");
    usage.model_loads = count_of(from, "loads");
    usage.gpu_second_usd = number_of(from, "price").value_or(0);
    usage.cost_usd = number_of(from, "cost").value_or(0);
    usage.vram_peak_bytes = bytes_of(from, "vram");
    usage.ram_peak_bytes = bytes_of(from, "ram");
    usage.gpu_percent = number_of(from, "gpu");
    usage.cpu_percent = number_of(from, "cpu");
    return usage;
}

double cost_of(const Usage& attempt) {
    const double seconds = std::chrono::duration<double>(attempt.gpu).count();
    const double memory = static_cast<double>(attempt.vram_peak_bytes.value_or(0)) / kGibibyte;
    return seconds * attempt.gpu_second_usd * (1 + memory / kMemoryUnitGib * kMemoryUnitSurcharge);
}

}  // namespace comfyd::jobs
