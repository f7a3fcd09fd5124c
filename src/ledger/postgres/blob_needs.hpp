// What new records of assets need of the table blobs (blob_records.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "base/id.hpp"
#include "base/time.hpp"
#include "ledger/postgres/table.hpp"

namespace comfyd::ledger::postgres {

// Its statements follow those that write the assets.
class BlobNeeds {
public:
    struct Need {
        const AssetId& asset;
        const std::string& hash;
        std::uint64_t size_bytes = 0;
        const std::string& store;      // where it is to be; empty: here
        std::uint64_t generation = 0;  // under which its bytes have come in here; 0: they were here
        bool is_kept = false;          // its bytes are in the table contents
    };
    void add(const Need& need, Time now);
    Statements statements(Time now) const;

private:
    Array hashes_{kText};
    Table new_ones_{{kUuid, kText, kInteger, kText, kInteger}};
    Table needed_{{kUuid, kText, kText, kInteger, kText, kInteger}};
};

}  // namespace comfyd::ledger::postgres
