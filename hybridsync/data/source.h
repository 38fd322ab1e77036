// Where data comes from: the value of train.data.
#pragma once

#include <string>
#include <variant>

#include "hybridsync/data/image_data.h"
#include "hybridsync/data/text_data.h"

namespace hybridsync {

using Data = std::variant<ImageData, TextData>;

// "fashion-mnist": the folder of Debian's package dataset-fashion-mnist, or $HYBRIDSYNC_DATA where
// that is set; "bible": see read_bible(); a folder: images in IDX files; any other file: a text.
// Throws ConfigError that names what is missing and the package to install.
Data read_data(const std::string& name);

}  // namespace hybridsync
