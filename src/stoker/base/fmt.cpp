// SPDX-License-Identifier: Apache-2.0
// fmt's own functions, compiled once for all rooms: by its headers alone each unit would compile them, which takes
// 2 to 3 s a unit. Templates that fmt declares, but defines in format-inl.h, are instantiated here for char; wchar_t
// and fmt/os.h are left out.
#include "stoker/base/fmt.h"

#include <fmt/format-inl.h>

template FMT_API auto fmt::detail::dragonbox::to_decimal(float x) noexcept -> decimal_fp<float>;
template FMT_API auto fmt::detail::dragonbox::to_decimal(double x) noexcept -> decimal_fp<double>;
template FMT_API auto fmt::locale_ref::get<std::locale>() const -> std::locale;  // fmt/chrono.h asks for it
template FMT_API auto fmt::detail::thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto fmt::detail::decimal_point_impl(locale_ref) -> char;
