#pragma once
#include <string>

#include "tapehead/files/arrays.hpp"
#include "tapehead/tensor/tensor.hpp"

// NumPy's own files: .npy holds one array (format versions 1.0, 2.0 and 3.0, either byte order and either
// layout), .npz is a zip archive of them, stored or compressed (np.savez, np.savez_compressed). float16 is
// read as float, every integer type as int64. Whatever is wrong with a file throws FileError, and before more
// memory is asked for than the file can fill. A file is written under another name first and then renamed, so
// that an old one is whole until the new one is.

namespace tapehead {

/// Throws FileError, or ValueError where the elements do not fit E exactly: see NamedTensors::get.
template <class E>
Tensor<E> load_npy(const std::string& path);
template <class E>
void save_npy(const std::string& path, const Tensor<E>& x);

/// The arrays of an archive under their names, without the `.npy` they have inside.
NamedTensors load_npz(const std::string& path);
/// Without compression; the same tensors give the same bytes. Throws ValueError beyond 4 GiB.
void save_npz(const std::string& path, const NamedTensors& tensors);

}  // namespace tapehead
