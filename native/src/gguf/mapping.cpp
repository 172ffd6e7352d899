#include "gguf/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "gguf/text.h"

namespace ds4::gguf {

namespace {

/// Closes a file descriptor at the end of its scope.
struct Descriptor {
    int fd;
    ~Descriptor() {
        if (fd >= 0) ::close(fd);
    }
};

std::string reason() { return std::generic_category().message(errno); }

/// Returns the size of an open regular file in bytes. Throws FormatError for anything else.
uint64_t regular_size(int fd, const Mapping& file) {
    struct stat info{};
    if (::fstat(fd, &info) != 0) throw file.error("cannot be read: " + reason());
    if (S_ISDIR(info.st_mode)) {
        throw file.error(
            "is a directory, wanted a GGUF file; name the file inside it, or convert a checkpoint with "
            "deepseek4-quantize");
    }
    if (!S_ISREG(info.st_mode)) throw file.error("is not a regular file, wanted a GGUF file that can be mapped");
    if (info.st_size == 0) throw file.error("is empty (0 bytes), wanted a GGUF file; download it again");
    return static_cast<uint64_t>(info.st_size);
}

}  // namespace

Mapping::Mapping(std::string path) : path_(std::move(path)) {
    // O_NONBLOCK keeps a named pipe from blocking the call.
    const Descriptor file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (file.fd < 0) throw error("cannot be opened: " + reason());
    size_ = regular_size(file.fd, *this);
    if (size_ > SIZE_MAX) throw error("has " + std::to_string(size_) + " bytes, more than can be mapped");
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.fd, 0);
    if (address == MAP_FAILED) throw error("cannot be mapped into memory: " + reason());
    data_ = static_cast<const std::byte*>(address);
}

Mapping::~Mapping() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void Mapping::release(std::span<const std::byte> bytes) {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(bytes.data());
    const uintptr_t first = (at + page - 1) / page * page, last = (at + bytes.size()) / page * page;
    // A failure is ignored: the call only saves memory.
    if (first < last) (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

FormatError Mapping::error(const std::string& what) const { return FormatError(show_path(path_) + ": " + what); }

}  // namespace ds4::gguf
