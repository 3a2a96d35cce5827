# What C++ has of the options in strata/v1/*.proto, beside their descriptors. buf formats the protos, so they are as regular as this
# takes them to be; else it fails, and names what it does not find.
set(reason_proto ${CMAKE_CURRENT_LIST_DIR}/strata/v1/error_reason.proto)

# strata_constant(NAME OUT): kVersionConflict of VERSION_CONFLICT, kRead of read.
function(strata_constant name out)
  set(constant k)
  string(TOUPPER ${name} words)
  string(REPLACE "_" ";" words ${words})
  foreach(word ${words})
    string(SUBSTRING ${word} 0 1 first)
    string(SUBSTRING ${word} 1 -1 rest)
    string(TOLOWER "${rest}" rest)
    string(APPEND constant "${first}${rest}")
  endforeach()
  set(${out} ${constant} PARENT_SCOPE)
endfunction()

# strata_reasons(FOLDER): makes below FOLDER strata/error_reasons.def, a line for each reason with its options, and
# strata/client/reason.h, the reasons as an enumeration with the comments of the proto.
function(strata_reasons folder)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${reason_proto})
  file(READ ${reason_proto} text)
  string(REGEX REPLACE "^.*\nenum ErrorReason {\n" "" text "${text}")
  string(REGEX REPLACE "\n}.*$" "\n" text "${text}")
  string(REPLACE "// Never sent." "// No Strata server said why, or by a name that this library does not know." enumeration "${text}")
  string(REGEX REPLACE " \\[\n    \\([^]]*\\];" "," enumeration "${enumeration}")
  string(REPLACE "ERROR_REASON_UNSPECIFIED = 0;" "kNone = 0," enumeration "${enumeration}")
  set(rows "")
  string(REGEX MATCHALL "ERROR_REASON_[A-Z_]+ = [1-9][0-9]*" reasons "${text}")
  foreach(reason ${reasons})
    if(NOT text MATCHES "${reason} \\[\n    \\(code\\) = \"([A-Z_]+)\",\n    (\\(retry_delay_ms\\) = ([0-9]+))?")
      message(FATAL_ERROR "${reason_proto}: ${reason} does not begin with option (code)")
    endif()
    set(retry_delay_ms 0)
    if(CMAKE_MATCH_3)
      set(retry_delay_ms ${CMAKE_MATCH_3})
    endif()
    strata_constant(${CMAKE_MATCH_1} code)
    string(REGEX REPLACE "^ERROR_REASON_([A-Z_]+) = .*" "\\1" name ${reason})
    strata_constant(${name} constant)
    string(REPLACE "ERROR_REASON_${name} =" "${constant} =" enumeration "${enumeration}")
    string(APPEND rows "REASON(${constant}, \"${name}\", ${code}, ${retry_delay_ms})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/strata/error_reasons.def CONTENT
"// REASON(enumerator, name on the wire, canonical code, milliseconds in RetryInfo), made from strata/v1/error_reason.proto.
${rows}" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/strata/client/reason.h @ONLY CONTENT
"// Why a server refused, made from strata/v1/error_reason.proto.
#pragma once

namespace strata::client {

enum class Reason {
${enumeration}};

}  // namespace strata::client
")
endfunction()

# strata_method_rows(PROTO TEXT OUT): a line for each RPC of a service proto with that text, with its options.
function(strata_method_rows proto text out)
  set(rows "")
  string(REGEX MATCHALL "\n  rpc [A-Za-z]+" methods "${text}")
  foreach(method ${methods})
    string(REGEX REPLACE "\n  rpc " "" name ${method})
    string(CONCAT described "\n  rpc ${name}\\((stream )?([A-Za-z]+)\\) returns [^\n]+ {\n"
                            "    option idempotency_level = ([A-Z_]+);[^\n]*\n"
                            "    option \\(permission\\) = \"([a-z]+)\";\n"
                            "(    option \\(resource\\) = \"([a-z]+)/([^\"]+)\";\n)?  }")
    if(NOT text MATCHES "${described}")
      message(FATAL_ERROR "${proto}: ${name} needs the options idempotency_level, (permission) and, where it has one, (resource)")
    endif()
    set(request ${CMAKE_MATCH_2})
    set(level_name ${CMAKE_MATCH_3})
    set(kind "${CMAKE_MATCH_6}")
    set(resource "${CMAKE_MATCH_7}")
    strata_constant(${CMAKE_MATCH_4} permission)
    strata_constant(${level_name} level)
    string(APPEND rows "METHOD(${request}, \"${name}\", ${permission}, ${level})\n")
    if(kind)
      strata_constant(${kind} kind)
      string(REGEX REPLACE "^([^{].*)$" "\"\\1\"" resource "${resource}")
      string(REGEX REPLACE "^{([a-z_]+)}$" "request.\\1()" resource "${resource}")
      string(REGEX REPLACE "^{([a-z_]+)=(.+)}$" "NameOr(request.\\1(), \"\\2\")" resource "${resource}")
      string(APPEND rows "RESOURCE(${request}, ${kind}, ${resource})\n")
    endif()
  endforeach()
  set(${out} "${rows}" PARENT_SCOPE)
endfunction()
