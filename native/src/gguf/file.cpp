#include <unordered_map>

#include "gguf/gguf.h"
#include "gguf/packed.h"
#include "gguf/shard.h"
#include "gguf/text.h"

namespace ds4::gguf {

struct File::Impl {
    std::vector<Shard> shards;
    std::vector<std::string> paths;
    std::vector<Tensor> tensors;
    std::unordered_map<std::string, size_t> keys, names;
    uint64_t bytes = 0;

    explicit Impl(std::vector<Shard> set) : shards(std::move(set)) {
        for (size_t i = 0; i < shards.size(); ++i) add(shards[i], static_cast<int>(i));
        Metadata& metadata = shards[0].metadata;
        read_packed(*shards[0].file, metadata, tensors);
        for (size_t i = 0; i < metadata.size(); ++i) keys.emplace(metadata[i].first, i);
    }

    void add(Shard& shard, int index) {
        paths.push_back(shard.file->path());
        bytes += shard.file->size();
        for (Tensor& tensor : shard.tensors) {
            tensor.shard = index;
            const auto [found, fresh] = names.emplace(tensor.name, tensors.size());
            if (!fresh) {
                throw shard.file->error("tensor " + quote(tensor.name) + " stands in this shard and in " +
                                        show_path(paths[static_cast<size_t>(tensors[found->second].shard)]) +
                                        ", wanted once");
            }
            tensors.push_back(std::move(tensor));
        }
        shard.tensors.clear();
    }
};

File::File(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
File::~File() = default;

std::shared_ptr<const File> File::open(const std::string& path) {
    return std::shared_ptr<const File>(new File(std::make_unique<Impl>(read_shards(path))));
}

const std::vector<std::string>& File::paths() const { return impl_->paths; }
uint32_t File::version() const { return impl_->shards[0].version; }
uint64_t File::file_bytes() const { return impl_->bytes; }
const std::vector<std::pair<std::string, Value>>& File::metadata() const { return impl_->shards[0].metadata; }
const std::vector<Tensor>& File::tensors() const { return impl_->tensors; }

const Value* File::find(const std::string& key) const {
    const auto found = impl_->keys.find(key);
    return found == impl_->keys.end() ? nullptr : &metadata()[found->second].second;
}

void File::release(const Tensor& tensor) const {
    Mapping::release({static_cast<const std::byte*>(tensor.data), static_cast<size_t>(tensor.nbytes)});
}

const Tensor* File::find_tensor(const std::string& name) const {
    const auto found = impl_->names.find(name);
    return found == impl_->names.end() ? nullptr : &impl_->tensors[found->second];
}

FormatError File::error(const std::string& what) const { return impl_->shards[0].file->error(what); }

}  // namespace ds4::gguf
