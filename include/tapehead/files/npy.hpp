#pragma once
#include <string>

#include "tapehead/files/arrays.hpp"
#include "tapehead/tensor/tensor.hpp"

// NumPy's file formats: a .npy file holds one array (format versions 1.0, 2.0 and 3.0, either byte order,
// row-major or Fortran order), and a .npz file is a zip archive of them. float16 is read as float, every
// integer type as int64. A damaged file throws FileError, before more memory is allocated than the file can
// fill. Saving keeps the old file whole until the new one is written, and keeps its mode and symbolic link.

namespace tapehead {

/// Throws FileError, or ValueError where the elements do not fit E exactly: see NamedTensors::get.
template <class E> Tensor<E> load_npy(const std::string& path);
template <class E> void save_npy(const std::string& path, const Tensor<E>& x);

/// The arrays of an archive that np.savez wrote, under their names. Throws FileError for a compressed archive:
/// write it with np.savez instead of np.savez_compressed.
NamedTensors load_npz(const std::string& path);
/// Without compression; the same tensors give the same bytes. Throws ValueError beyond 4 GiB, and for a name
/// that is not UTF-8 or contains NUL.
void save_npz(const std::string& path, const NamedTensors& tensors);

}  // namespace tapehead
