// The report's page and uPlot, embedded into the program when it is built (embed.cmake).
#pragma once

#include <string_view>

namespace hybridsync::assets {

extern const std::string_view page_html;
extern const std::string_view page_css;
extern const std::string_view page_js;
extern const std::string_view uplot_css;
extern const std::string_view uplot_js;
extern const std::string_view uplot_licence;

}  // namespace hybridsync::assets
