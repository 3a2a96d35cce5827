# strata_client_reasons(FOLDER): makes strata/client/reason.h, the reasons of error_reason.proto as an enumeration with the
# comments of the proto, and clients/cpp/reason_names.h, their names on the wire, below FOLDER.
set(reason_proto ${CMAKE_CURRENT_LIST_DIR}/../../proto/strata/v1/error_reason.proto)

function(strata_client_reasons folder)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${reason_proto})
  file(READ ${reason_proto} text)
  string(REGEX REPLACE "^.*\nenum ErrorReason {\n" "" text "${text}")
  string(REGEX REPLACE "\n}.*$" "\n" text "${text}")
  string(REPLACE "// Never sent." "// No Strata server said why, or by a name that this library does not know." text "${text}")
  string(REGEX MATCHALL "ERROR_REASON_[A-Z_]+ =" reasons "${text}")
  set(rows "")
  foreach(reason ${reasons})
    string(REGEX REPLACE "^ERROR_REASON_([A-Z_]+) =$" "\\1" name ${reason})
    set(constant k)
    string(REPLACE "_" ";" words ${name})
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOLOWER "${rest}" rest)
      string(APPEND constant "${first}${rest}")
    endforeach()
    if(name STREQUAL "UNSPECIFIED")
      set(constant kNone)
    else()
      string(APPEND rows "    {Reason::${constant}, \"${name}\"},\n")
    endif()
    string(REGEX REPLACE "${reason} ([0-9]+);" "${constant} = \\1," text "${text}")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/strata/client/reason.h @ONLY CONTENT
"// Why a server refused, made from strata/v1/error_reason.proto.
#pragma once

namespace strata::client {

enum class Reason {
${text}};

}  // namespace strata::client
")
  file(CONFIGURE OUTPUT ${folder}/clients/cpp/reason_names.h @ONLY CONTENT
"// The names that reasons have on the wire, made from strata/v1/error_reason.proto.
#pragma once

#include \"strata/client/reason.h\"

namespace strata::client {

struct NamedReason {
  Reason reason;
  const char* name;
};

inline constexpr NamedReason kReasonNames[] = {
${rows}};

}  // namespace strata::client
")
endfunction()
