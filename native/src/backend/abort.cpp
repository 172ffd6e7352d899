#include "backend/abort.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ggml.h"

namespace ds4::backend {
namespace {

constexpr int kAbort = -1;
std::atomic<int> exit_code{kAbort};

/// Removes the folder of the path in "PATH/file.cpp:LINE: TEXT".
std::string_view without_folder(std::string_view message) {
    const size_t slash = message.substr(0, message.find(": ")).find_last_of("/\\");
    return slash == std::string_view::npos ? message : message.substr(slash + 1);
}

const char* advice(std::string_view message) {
    if (message.find("ggml-rpc") == std::string_view::npos) return "";
    return "; the server of --device rpc:HOST:PORT is gone or has refused: see its output, and start it again";
}

void explain(const char* message) {
    const std::string_view text = without_folder(message);
    std::fprintf(stderr, "ds4py: error: ggml cannot go on: %.*s%s\n", static_cast<int>(text.size()), text.data(),
                 advice(text));
    std::fflush(stderr);
    if (const int code = exit_code; code != kAbort) std::_Exit(code);
}

}  // namespace

void explain_aborts() { ggml_set_abort_callback(explain); }

void exit_on_abort(int code) { exit_code = code; }

}  // namespace ds4::backend
