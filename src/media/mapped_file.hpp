// A file that is read where it lies. Blob files never change; one that did would end the reader.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <string_view>

namespace comfyd::media {

class MappedFile {
public:
    explicit MappedFile(int file) {
        // Not by stat(), which takes paths too: a helper may not call it.
        if (const off_t size = ::lseek(file, 0, SEEK_END); size > 0) {
            size_ = static_cast<std::size_t>(size);
            start_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
        }
    }
    ~MappedFile() {
        if (start_ != MAP_FAILED) {
            ::munmap(start_, size_);
        }
    }
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    // Empty where it cannot be read.
    std::string_view bytes() const {
        return start_ == MAP_FAILED ? std::string_view()
                                    : std::string_view(static_cast<const char*>(start_), size_);
    }

private:
    void* start_ = MAP_FAILED;
    std::size_t size_ = 0;
};

}  // namespace comfyd::media
