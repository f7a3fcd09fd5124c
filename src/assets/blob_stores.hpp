// The stores there are, by name. The first, "local", is always there: whatever comes in goes to it,
// and from there to the store that it is meant for.
//
// Owned by the application; does not change after open(). Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "assets/blob_store.hpp"
#include "base/pool.hpp"

namespace comfyd::assets {

inline constexpr std::string_view kLocalStore = "local";

// One store of the configuration.
struct StoreSetting {
    std::string name;
    std::string provider;  // "folder", "s3", "drive"
    // In the provider's own words, with its credentials: never shown.
    std::map<std::string, std::string> options{};
    std::vector<std::string> tenants{};  // who may ask for it; empty: everybody
};

// The store of a record's `store`: "main" of "main/renders", and the folder behind it.
std::string_view store_name(std::string_view store);
std::string_view store_folder(std::string_view store);

class BlobStores {
public:
    // Replaces one of the same name.
    void add(std::string name, std::unique_ptr<BlobStore> store);
    // Those that are there already are left alone.
    void add_all(BlobStores others);
    // Blocks.
    Result<> open();

    BlobStore& local() const { return *stores_.find(kLocalStore)->second; }
    // By a record's `store`; nullptr: the configuration names it no longer.
    BlobStore* find(std::string_view store) const;
    // The same, or Code::config_invalid.
    Result<BlobStore*> get(std::string_view store) const;
    std::vector<std::string> names() const;

private:
    std::map<std::string, std::unique_ptr<BlobStore>, std::less<>> stores_;
};

// The store that the setting describes. Code::config_invalid names what is wrong. `clock` and
// `pool` outlive it.
Result<std::unique_ptr<BlobStore>> make_blob_store(
    const StoreSetting& setting, Clock& clock, Pool& pool
);

}  // namespace comfyd::assets
