#pragma once
// Test cases and assertions, as small as they can be. A failed check is printed and counted; the case goes on.

#include <cmath>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Case {
    std::string name;
    void (*body)();
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

struct Registration {
    Registration(const char* name, void (*body)()) { cases().push_back({name, body}); }
};

/// Failures of the running case; only the first ones are printed.
inline int& failures() {
    static int count = 0;
    return count;
}

inline void fail(const char* file, int line, const std::string& text) {
    constexpr int kPrinted = 10;
    if (failures()++ < kPrinted) std::printf("  %s:%d: %s\n", file, line, text.c_str());
}

inline void close(const char* file, int line, const std::string& what, double found, double wanted, double tolerance) {
    // Written so that a NaN fails; the first test lets equal infinities pass.
    if (found == wanted || std::fabs(found - wanted) <= tolerance) return;
    std::ostringstream text;
    text.precision(9);
    text << what << ": found " << found << ", wanted " << wanted << " within " << tolerance;
    fail(file, line, text.str());
}

template <typename A, typename B>
void close(const char* file, int line, const std::string& what, const std::vector<A>& found,
           const std::vector<B>& wanted, double tolerance) {
    if (found.size() != wanted.size()) {
        return fail(
            file, line,
            what + ": found " + std::to_string(found.size()) + " elements, wanted " + std::to_string(wanted.size()));
    }
    for (size_t i = 0; i < found.size(); i++) {
        close(file, line, what + "[" + std::to_string(i) + "]", static_cast<double>(found[i]),
              static_cast<double>(wanted[i]), tolerance);
    }
}

template <typename E, typename F>
void throws(const char* file, int line, const char* what, F body) {
    try {
        body();
        fail(file, line, std::string(what) + ": nothing was thrown");
    } catch (const E&) {
    } catch (const std::exception& e) {
        fail(file, line, std::string(what) + ": another error was thrown: " + e.what());
    }
}

}  // namespace check

/// Defines and registers a test case. test_native.py finds the cases by this macro's name.
#define CASE(name)                                                  \
    static void case_##name();                                      \
    static check::Registration register_##name(#name, case_##name); \
    static void case_##name()

#define CHECK(condition) ((condition) ? void() : check::fail(__FILE__, __LINE__, "not so: " #condition))
/// Numbers or whole vectors; the tolerance is absolute.
#define CHECK_CLOSE(found, wanted, tolerance) check::close(__FILE__, __LINE__, #found, found, wanted, tolerance)
#define REQUIRE_THROWS(error, expression) \
    check::throws<error>(__FILE__, __LINE__, #expression, [&] { (void)(expression); })
