#pragma once
// Pointers that check every access. The emulator uses them where a device has plain pointers.

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

/// A T* into one region. The region is found on the first access, since no kernel runs yet when arguments are made.
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
    /// Returns the element itself, for an atomic operation.
    T& atomic(int64_t i) const {
        region().check_atomic(reinterpret_cast<const std::byte*>(at_ + i) - region().base(), sizeof(T));
        return at_[i];
    }
    decltype(auto) operator*() const { return (*this)[0]; }

    /// Returns the region that the pointer points into. Throws Fault if there is none.
    Region& region() const {
        if (!region_) region_ = &current().memory().find(at_);
        return *region_;
    }
    /// Returns whether the address of element i is a multiple of `bytes`.
    bool aligned(int64_t i, size_t bytes) const { return reinterpret_cast<uintptr_t>(at_ + i) % bytes == 0; }

   private:
    template <typename U>
    friend class Pointer;

    T* at_ = nullptr;
    mutable Region* region_ = nullptr;
};

/// Returns a shared array of the running block; all its threads get the same one.
template <typename T>
Pointer<T> shared_array(const char* name, size_t count, Place place = Place::current()) {
    return Pointer<T>(current().shared(name, count * sizeof(T), place));
}

}  // namespace ds4::emulator

/// Declares a shared array of the block, in the kernels of simt.h and of Metal.
#define DS4_SHARED(type, name, count) \
    const ::ds4::emulator::Pointer<type> name = ::ds4::emulator::shared_array<type>(#name, count)
