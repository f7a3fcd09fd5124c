// What was done in a schedule, in words. Only written where somebody will read it: a schedule that
// failed is run again with a journal.
#pragma once

#include <cstdio>
#include <string>

#include "base/id.hpp"
#include "base/time.hpp"

namespace comfyd::simulation {

class Journal {
public:
    Journal(const Clock& clock, Time start, bool is_kept)
        : clock_(clock), start_(start), is_kept_(is_kept) {}

    // `words` makes the text.
    template <class Words>
    void add(Words words) {
        if (is_kept_) {
            std::printf(
                "%10.3f s  %s\n",
                std::chrono::duration<double>(clock_.now() - start_).count(),
                std::string(words()).c_str()
            );
            std::fflush(stdout);
        }
    }

private:
    const Clock& clock_;
    Time start_;
    bool is_kept_;
};

// Short, as jobs of a schedule are numbered.
inline std::string name_of(const JobId& id) {
    return "job " + std::to_string(id.uuid.bytes[15] + 256 * id.uuid.bytes[14]);
}

}  // namespace comfyd::simulation
