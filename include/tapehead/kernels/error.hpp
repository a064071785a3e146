#pragma once
#include <stdexcept>
#include <string>

namespace tapehead {

/// Everything the library throws. The message names the operation, shows what came (every shape or value
/// involved) and says what would be right.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Shapes that do not fit together, or a shape that cannot be.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// An axis or an index outside its range.
class IndexError : public Error {
 public:
  using Error::Error;
};

/// An argument whose type and shape are right and whose value is not.
class ValueError : public Error {
 public:
  using Error::Error;
};

/// A gradient that does not exist, or would silently be lost.
class GradientError : public Error {
 public:
  using Error::Error;
};

/// A file that cannot be read or written, or is not what it claims to be.
class FileError : public Error {
 public:
  using Error::Error;
};

}  // namespace tapehead
