# The package: `cmake --install BUILD --component client`, and by `cpack -G DEB` libstrata-client-dev.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# One archive of all that is ours: a program that links it needs nothing else of this tree.
add_library(strata_client_package STATIC
            $<TARGET_OBJECTS:strata_client_values> $<TARGET_OBJECTS:strata_client_library>
            $<TARGET_OBJECTS:strata_proto> $<TARGET_OBJECTS:strata_proto_grpc>)
set_target_properties(strata_client_package PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME strata_client EXPORT_NAME client
                      ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/package)
target_compile_features(strata_client_package PUBLIC cxx_std_20)
target_include_directories(strata_client_package INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(strata_client_package PUBLIC gRPC::grpc++ protobuf::libprotobuf absl::status absl::statusor absl::strings
                                                   absl::time absl::cord OpenSSL::Crypto Threads::Threads)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/strata)
install(TARGETS strata_client_package EXPORT strata-targets COMPONENT client ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/strata DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT client FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/proto/generated/strata/client/reason.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/strata/client COMPONENT client)
install(EXPORT strata-targets NAMESPACE strata:: DESTINATION ${package_folder} COMPONENT client)
configure_package_config_file(strata-config.cmake.in strata-config.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(strata-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/strata-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/strata-config-version.cmake
        DESTINATION ${package_folder} COMPONENT client)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT client)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL client)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_VENDOR Strata)
set(CPACK_PACKAGE_CONTACT "Strata <strata@localhost>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_CLIENT_PACKAGE_NAME libstrata-client-dev)
set(CPACK_DEBIAN_CLIENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_CLIENT_DESCRIPTION "Client library of Strata, a store of versioned documents, for C++20")
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS "libgrpc++-dev, libprotobuf-dev, protobuf-compiler-grpc, libabsl-dev, libssl-dev")
# The other components are whatever else is installed one day.
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
include(CPack)
