#pragma once
#include <string>

#include "tapehead/files/arrays.hpp"

// safetensors, the format in which PyTorch and Hugging Face keep weights: a JSON header with the name, type,
// shape and position of each tensor, and then the elements. https://github.com/huggingface/safetensors

namespace tapehead {

/// F64, F32, BOOL and I64 as they are; F16 and BF16 as float, other integers as int64. A damaged file throws
/// FileError, before more memory is allocated than its bytes fill.
NamedTensors load_safetensors(const std::string& path);
/// Tensors with larger elements come first, so that each is aligned; otherwise the given order is kept.
/// `safetensors.torch.load_file(path)` reads the file. Throws ValueError for a name that is not UTF-8, contains
/// NUL or is "__metadata__". Saving keeps the old file whole until the new one is written, and keeps its mode
/// and symbolic link.
void save_safetensors(const std::string& path, const NamedTensors& tensors);

}  // namespace tapehead
