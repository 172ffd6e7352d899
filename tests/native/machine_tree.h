#pragma once
// A folder that describes a machine as /proc and /sys do.

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace test {

class MachineTree {
   public:
    MachineTree() {
        std::string name = (std::filesystem::temp_directory_path() / "ds4-machine-XXXXXX").string();
        if (!::mkdtemp(name.data())) throw std::runtime_error("no folder " + name);
        root_ = name;
    }
    ~MachineTree() { std::filesystem::remove_all(root_); }
    MachineTree(const MachineTree&) = delete;
    MachineTree& operator=(const MachineTree&) = delete;

    const std::filesystem::path& root() const { return root_; }

    void write(const std::string& path, const std::string& text) {
        std::filesystem::create_directories((root_ / path).parent_path());
        std::ofstream(root_ / path) << text;
    }

    /// A processor, with those that share its core.
    void cpu(int id, const std::string& siblings) {
        write("sys/devices/system/cpu/cpu" + std::to_string(id) + "/topology/thread_siblings_list", siblings + "\n");
    }

    void node(int id, const std::string& cpus, int64_t kilobytes) {
        const std::string folder = "sys/devices/system/node/node" + std::to_string(id), name = std::to_string(id);
        write(folder + "/cpulist", cpus + "\n");
        write(folder + "/meminfo", "Node " + name + " MemTotal:       " + std::to_string(kilobytes) + " kB\nNode " +
                                       name + " MemFree:        1 kB\n");
    }

   private:
    std::filesystem::path root_;
};

}  // namespace test
