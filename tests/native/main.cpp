// ds4_tests --list           names, one a line
// ds4_tests [NAME...]        runs these cases, or all; exit status 1 when one fails, 2 when a name is not known

#include <algorithm>
#include <string>
#include <vector>

#include "check.h"
#include "ds4/model.h"

namespace {

bool passes(const check::Case& c) {
    check::failures() = 0;
    try {
        c.body();
    } catch (const std::exception& e) {
        check::fail(c.name.c_str(), 0, std::string("thrown: ") + e.what());
    }
    const int failed = check::failures();
    std::printf("%s %s", failed ? "FAILED" : "passed", c.name.c_str());
    std::printf(failed ? " (%d checks)\n" : "\n", failed);
    return failed == 0;
}

const check::Case* find(const std::string& name) {
    const auto& all = check::cases();
    auto it = std::find_if(all.begin(), all.end(), [&](const check::Case& c) { return c.name == name; });
    return it == all.end() ? nullptr : &*it;
}

int run(const std::vector<std::string>& names) {
    bool good = true;
    for (const std::string& name : names) {
        const check::Case* c = find(name);
        if (!c) {
            std::printf("no case is named '%s'; --list shows them\n", name.c_str());
            return 2;
        }
        good &= passes(*c);
    }
    return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IONBF, 0);  // what was printed must survive an abort
#ifdef DS4_BACKENDS
    ds4::load_backends(DS4_BACKENDS);
#endif
    std::vector<std::string> names(argv + 1, argv + argc);
    if (names == std::vector<std::string>{"--list"}) {
        for (const check::Case& c : check::cases()) std::puts(c.name.c_str());
        return 0;
    }
    if (names.empty()) {
        for (const check::Case& c : check::cases()) names.push_back(c.name);
    }
    return run(names);
}
