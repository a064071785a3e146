#pragma once
#include <string>

#include "tapehead/files/arrays.hpp"

// safetensors, the format in which PyTorch and Hugging Face keep weights: a JSON header that says name, type,
// shape and place of each tensor, and then the elements. https://github.com/huggingface/safetensors

namespace tapehead {

/// F64, F32, BOOL and I64 as they are; F16 and BF16 as float, other integers as int64. Throws FileError where
/// anything is wrong with the file, before more memory is asked for than its bytes fill.
NamedTensors load_safetensors(const std::string& path);
/// Larger elements first, so that each tensor is aligned; otherwise in the given order. The file is written
/// under another name and then renamed. `safetensors.torch.load_file(path)` reads it.
void save_safetensors(const std::string& path, const NamedTensors& tensors);

}  // namespace tapehead
