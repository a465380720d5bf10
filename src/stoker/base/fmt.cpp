// SPDX-License-Identifier: Apache-2.0
// fmt's own functions, compiled once for all rooms: with headers only, each unit would compile them, which takes 2 to 3
// s per unit. Templates that fmt declares, but defines in format-inl.h, are instantiated here for char, not for
// wchar_t; fmt/os.h is not included.
#include "stoker/base/fmt.h"

#include <fmt/format-inl.h>

template FMT_API auto fmt::detail::dragonbox::to_decimal(float x) noexcept -> decimal_fp<float>;
template FMT_API auto fmt::detail::dragonbox::to_decimal(double x) noexcept -> decimal_fp<double>;
template FMT_API auto fmt::locale_ref::get<std::locale>() const -> std::locale;  // fmt/chrono.h needs it
template FMT_API auto fmt::detail::thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto fmt::detail::decimal_point_impl(locale_ref) -> char;
