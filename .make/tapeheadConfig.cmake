# find_package(tapehead) gives the target tapehead::tapehead.
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(Threads)
if(NOT TARGET tapehead::tapehead)
  get_filename_component(_tapehead_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  separate_arguments(_tapehead_flags UNIX_COMMAND "@CFLAGS@")
  add_library(tapehead::tapehead STATIC IMPORTED)
  set_target_properties(tapehead::tapehead PROPERTIES
    IMPORTED_LOCATION "${_tapehead_prefix}/lib/libtapehead.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES CXX
    INTERFACE_INCLUDE_DIRECTORIES "${_tapehead_prefix}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_COMPILE_OPTIONS "${_tapehead_flags}"
    INTERFACE_LINK_LIBRARIES "@FMT@;Threads::Threads")
  unset(_tapehead_prefix)
  unset(_tapehead_flags)
endif()
