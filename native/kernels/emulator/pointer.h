#pragma once
// Pointers that check every access, for arrays that are plain ones on a device.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulator/block.h"

namespace ds4::emulator {

/// A reference to an element of an array that the kernel may write.
template <typename T>
class Element {
   public:
    Element(Region& region, T* at) : region_(region), at_(at) {}
    Element(const Element&) = default;

    operator T() const {
        region_.check_read(offset(), sizeof(T));
        return *at_;
    }
    Element& operator=(T value) {
        region_.check_write(offset(), sizeof(T));
        *at_ = value;
        return *this;
    }
    Element& operator=(const Element& other) { return *this = static_cast<T>(other); }
    Element& operator+=(T value) { return *this = static_cast<T>(*this) + value; }
    Element& operator-=(T value) { return *this = static_cast<T>(*this) - value; }
    Element& operator*=(T value) { return *this = static_cast<T>(*this) * value; }
    Element& operator/=(T value) { return *this = static_cast<T>(*this) / value; }

   private:
    int64_t offset() const { return reinterpret_cast<const std::byte*>(at_) - region_.base(); }

    Region& region_;
    T* at_;
};

/// A T* into one region. Which one is asked when it is first used: among a kernel's arguments there is no kernel yet.
template <typename T>
class Pointer {
   public:
    Pointer(std::nullptr_t = nullptr) {}
    Pointer(T* at) : at_(at) {}
    Pointer(Region& region) : at_(reinterpret_cast<T*>(region.base())), region_(&region) {}
    /// Converts to a pointer to const, as T* does.
    template <typename U>
        requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>)
    Pointer(const Pointer<U>& other) : at_(other.at_), region_(other.region_) {}

    explicit operator bool() const { return at_; }
    Pointer operator+(int64_t n) const {
        Pointer moved = *this;
        moved.region_ = &region();
        moved.at_ += n;
        return moved;
    }
    decltype(auto) operator[](int64_t i) const {
        Region& r = region();
        if constexpr (std::is_const_v<T>) {
            r.check_read(reinterpret_cast<const std::byte*>(at_ + i) - r.base(), sizeof(T));
            return std::remove_const_t<T>(at_[i]);
        } else {
            return Element<T>(r, at_ + i);
        }
    }
    /// The element itself, for an operation that others cannot come between.
    T& atomic(int64_t i) const {
        region().check_atomic(reinterpret_cast<const std::byte*>(at_ + i) - region().base(), sizeof(T));
        return at_[i];
    }
    decltype(auto) operator*() const { return (*this)[0]; }

    /// The region of the first access; Fault where the pointer is in none.
    Region& region() const {
        if (!region_) region_ = &current().memory().find(at_);
        return *region_;
    }
    /// Whether the address is a multiple of `bytes`.
    bool aligned(int64_t i, size_t bytes) const { return reinterpret_cast<uintptr_t>(at_ + i) % bytes == 0; }

   private:
    template <typename U>
    friend class Pointer;

    T* at_ = nullptr;
    mutable Region* region_ = nullptr;
};

/// An array of the running block; the same one for all threads.
template <typename T>
Pointer<T> shared_array(const char* name, size_t count, Place place = Place::current()) {
    return Pointer<T>(current().shared(name, count * sizeof(T), place));
}

}  // namespace ds4::emulator

/// Declares an array of the block; simt.h's word, and Metal's.
#define DS4_SHARED(type, name, count) \
    const ::ds4::emulator::Pointer<type> name = ::ds4::emulator::shared_array<type>(#name, count)
