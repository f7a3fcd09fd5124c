// Which models there are, where each is had from, and which version a name means. A value that
// never changes; any thread.
//
// A model has a name, as workflows write it, and versions. The file of its first version has that
// name itself, those of later ones the number before the ending ("ink@2.safetensors"), so that
// several of them lie beside each other on a worker. The name alone means the current one.
//
// A model that was removed is remembered for its numbers: one of its name that is added later goes
// on behind them, so that a file's name never means other bytes than before.
//
// Beside them stands what is known of contents by their hash, as agents have read it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/time.hpp"
#include "models/file_facts.hpp"
#include "models/register_store.hpp"

namespace comfyd::models {

inline constexpr std::size_t kVersionsMax = 100;
inline constexpr std::size_t kSourcesMax = 8;

struct ModelVersion {
    int number = 1;
    std::vector<std::string> sources{};  // models/source.hpp; the first that has it is taken
    std::string sha256{};                // in small hex; empty: whatever a source has
    std::optional<std::uint64_t> bytes{};
    std::optional<Time> created_at{};

    bool operator==(const ModelVersion&) const = default;
};

struct RegisteredModel {
    std::string folder;
    std::string name;
    std::uint64_t revision = 0;  // 0: of the configuration
    int current = 1;             // the version that the name alone means
    int last = 0;                // that there ever was: no number comes twice
    std::vector<ModelVersion> versions{};

    std::string path() const { return folder + "/" + name; }
    const ModelVersion* find(int number) const;
    bool operator==(const RegisteredModel&) const = default;
};

// A file that a worker is to have.
struct WantedModel {
    std::string folder;
    std::string name;  // of the file
    std::vector<std::string> sources{};
    std::string sha256{};
    std::optional<std::uint64_t> bytes{};

    json::object to_json() const;
    static std::optional<WantedModel> from_json(const json::object& from);
    bool operator==(const WantedModel&) const = default;
};

// The name of a version's file.
std::string file_name(const std::string& name, int version);

// {"sources" or "source", "sha256", "bytes"}, of a new version of that model.
// Code::invalid_argument as of read_wish().
Result<ModelVersion> read_version(
    const std::string& folder, const std::string& name, const json::object& from
);

json::object to_json(const ModelVersion& version);
ModelRecord to_record(const RegisteredModel& model);
// nullopt: it is none of ours.
std::optional<RegisteredModel> from_record(const ModelRecord& record);
// What is known of a content, under its hash.
ModelRecord to_record(const std::string& sha256, const FileFacts& facts);

class Register {
public:
    Register() = default;
    // What the configuration has counts before what was stored.
    Register(
        const std::vector<RegisteredModel>& configured, const std::vector<ModelRecord>& stored
    );

    bool empty() const { return models_.empty(); }
    // By their paths.
    const std::map<std::string, RegisteredModel, std::less<>>& models() const { return models_; }
    const RegisteredModel* find(std::string_view path) const;
    // One that is not there, to be given its first version.
    RegisteredModel begin(const std::string& folder, const std::string& name) const;
    std::size_t removed() const { return removed_.size(); }
    // nullptr: nobody has told of it.
    const FileFacts* find_content(std::string_view sha256) const;
    std::size_t contents() const { return contents_.size(); }

    // What a workflow means that names this file in one of these folders, or, without folders, in
    // the only one that has it. nullopt: it is not known.
    std::optional<WantedModel> resolve(
        std::span<const std::string_view> folders, std::string_view name
    ) const;

private:
    std::optional<WantedModel> resolve_at(std::string_view folder, std::string_view name) const;

    std::map<std::string, RegisteredModel, std::less<>> models_;
    std::map<std::string, RegisteredModel, std::less<>> removed_;           // without versions
    std::map<std::string, std::vector<std::string>, std::less<>> folders_;  // by name
    std::map<std::string, FileFacts, std::less<>> contents_;
};

}  // namespace comfyd::models
