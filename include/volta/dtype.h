// Element types: the closed set of dtypes, their traits, the half types, promotion, and one visitor.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#ifdef __CUDACC__
#define VOLTA_HD __host__ __device__
#else
#define VOLTA_HD
#endif

namespace volta {

enum class DType : uint8_t { f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, boolean };
inline constexpr int dtype_count = 13;

enum class Kind : uint8_t { boolean, unsigned_int, signed_int, floating };

inline constexpr DType f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32, f64 = DType::f64;
inline constexpr DType i8 = DType::i8, i16 = DType::i16, i32 = DType::i32, i64 = DType::i64;
inline constexpr DType u8 = DType::u8, u16 = DType::u16, u32 = DType::u32, u64 = DType::u64;
inline constexpr DType boolean = DType::boolean;

// IEEE binary16. Storage only: arithmetic happens in float, with one rounding on the way back.
struct float16 {
  uint16_t bits = 0;
  float16() = default;
  VOLTA_HD explicit constexpr float16(float x) : bits(round(x)) {}
  VOLTA_HD explicit constexpr operator float() const { return widen(bits); }
  VOLTA_HD static constexpr float16 from_bits(uint16_t b) {
    float16 h;
    h.bits = b;
    return h;
  }
  // Branch-free so that loops over it vectorise. Denormals go through one exact multiplication.
  VOLTA_HD static constexpr float widen(uint16_t h) {
    const uint32_t rest = (uint32_t(h) & 0x7fffu) << 13;
    const float scaled = std::bit_cast<float>(rest) * 0x1p112f;
    const uint32_t finite = std::bit_cast<uint32_t>(scaled), special = rest | 0x7f800000u;
    return std::bit_cast<float>((uint32_t(h) & 0x8000u) << 16 | ((h & 0x7c00u) == 0x7c00u ? special : finite));
  }
  VOLTA_HD static constexpr uint16_t round(float x) {  // to nearest, ties to even
    const uint32_t u = std::bit_cast<uint32_t>(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    const uint32_t nan = 0x7e00u, inf = 0x7c00u;
    const uint32_t normal = (a + 0xfffu + (a >> 13 & 1u) - (112u << 23)) >> 13;
    const float shifted = std::bit_cast<float>(a) + 0.5f;  // aligns the denormal's last bit with float's
    const uint32_t tiny = std::bit_cast<uint32_t>(shifted) - 0x3f000000u;
    const uint32_t finite = a < (113u << 23) ? tiny : normal;
    return uint16_t(sign | (a > 0x7f800000u ? nan : a >= 0x477ff000u ? inf : finite));
  }
};

// The upper half of a float. Storage only, like float16.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  VOLTA_HD explicit constexpr bfloat16(float x) : bits(round(x)) {}
  VOLTA_HD explicit constexpr operator float() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
  VOLTA_HD static constexpr bfloat16 from_bits(uint16_t b) {
    bfloat16 h;
    h.bits = b;
    return h;
  }
  VOLTA_HD static constexpr uint16_t round(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16, nan = (u >> 16) | 0x40u;
    return uint16_t((u & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
};

struct DTypeTraits {
  std::string_view name;
  uint8_t size;
  Kind kind;
  DType compute;  // halves load to f32, everything else computes as itself
};

inline constexpr DTypeTraits dtype_traits[dtype_count] = {
    {"f16", 2, Kind::floating, f32},     {"bf16", 2, Kind::floating, f32},    {"f32", 4, Kind::floating, f32},
    {"f64", 8, Kind::floating, f64},     {"i8", 1, Kind::signed_int, i8},     {"i16", 2, Kind::signed_int, i16},
    {"i32", 4, Kind::signed_int, i32},   {"i64", 8, Kind::signed_int, i64},   {"u8", 1, Kind::unsigned_int, u8},
    {"u16", 2, Kind::unsigned_int, u16}, {"u32", 4, Kind::unsigned_int, u32}, {"u64", 8, Kind::unsigned_int, u64},
    {"bool", 1, Kind::boolean, boolean},
};

constexpr const DTypeTraits& traits(DType t) { return dtype_traits[size_t(t)]; }
constexpr std::string_view name(DType t) { return size_t(t) < dtype_count ? traits(t).name : "no dtype"; }
constexpr int64_t size_of(DType t) { return traits(t).size; }
constexpr bool is_floating(DType t) { return traits(t).kind == Kind::floating; }
constexpr bool is_integral(DType t) {
  return traits(t).kind == Kind::signed_int || traits(t).kind == Kind::unsigned_int;
}
constexpr bool is_half(DType t) { return t == f16 || t == bf16; }

template <class T> struct TypeTag { using type = T; };

// Calls f(TypeTag<T>{}) with the C++ type of dt: visit(dt, [&](auto tag) { using T = typename decltype(tag)::type; … }).
template <class F> constexpr decltype(auto) visit(DType dt, F&& f) {
  switch (dt) {
    case DType::f16: return f(TypeTag<float16>{});
    case DType::bf16: return f(TypeTag<bfloat16>{});
    case DType::f32: return f(TypeTag<float>{});
    case DType::f64: return f(TypeTag<double>{});
    case DType::i8: return f(TypeTag<int8_t>{});
    case DType::i16: return f(TypeTag<int16_t>{});
    case DType::i32: return f(TypeTag<int32_t>{});
    case DType::i64: return f(TypeTag<int64_t>{});
    case DType::u8: return f(TypeTag<uint8_t>{});
    case DType::u16: return f(TypeTag<uint16_t>{});
    case DType::u32: return f(TypeTag<uint32_t>{});
    case DType::u64: return f(TypeTag<uint64_t>{});
    case DType::boolean: break;
  }
  return f(TypeTag<bool>{});
}

template <class T> constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float16>) return f16;
  else if constexpr (std::is_same_v<T, bfloat16>) return bf16;
  else if constexpr (std::is_same_v<T, float>) return f32;
  else if constexpr (std::is_same_v<T, double>) return f64;
  else if constexpr (std::is_same_v<T, bool>) return boolean;
  else {
    static_assert(std::is_integral_v<T>, "no dtype holds this type");
    constexpr DType table[2][4] = {{u8, u16, u32, u64}, {i8, i16, i32, i64}};
    return table[std::is_signed_v<T>][std::countr_zero(sizeof(T))];
  }
}

// The array API's lattice: bool < integers < floats; u64 with a signed type and f16 with bf16 meet one level up.
constexpr DType promote(DType a, DType b) {
  if (a == b) return a;
  const DTypeTraits &x = traits(a), &y = traits(b);
  if (x.kind == Kind::floating || y.kind == Kind::floating) {
    if (x.kind != y.kind) return x.kind == Kind::floating ? a : b;
    if (x.size == y.size) return f32;
    return x.size > y.size ? a : b;
  }
  if (x.kind == Kind::boolean) return b;
  if (y.kind == Kind::boolean) return a;
  if (x.kind == y.kind) return x.size > y.size ? a : b;
  const DTypeTraits& s = x.kind == Kind::signed_int ? x : y;
  const DTypeTraits& u = x.kind == Kind::signed_int ? y : x;
  if (s.size > u.size) return x.kind == Kind::signed_int ? a : b;
  switch (u.size) {
    case 1: return i16;
    case 2: return i32;
    case 4: return i64;
    default: return f32;  // no integer holds both; the default float, as the standard allows
  }
}

}  // namespace volta
