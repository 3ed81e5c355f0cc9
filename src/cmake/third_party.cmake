# What a release carries or calls that others wrote, for NOTICES (licence texts) and scalecalc.spdx.json (SPDX 2.3), which
# are installed beside README.md. The one list: PACKAGE of Debian; SPDX licence of the part that is used; how: linked (a
# shared library, which the tarball carries and the .deb depends on) or headers (compiled in). Versions are dpkg's, texts
# those of Debian's packages, so that neither grows old. Scripts of pages are those of charts.cmake and page_notices.txt.
set(SCALECALC_THIRD_PARTY
    "libcli11-dev|BSD-3-Clause|headers"
    "libspdlog-dev|MIT|headers"
    "libtomlplusplus-dev|MIT|headers"
    "nlohmann-json3-dev|MIT|headers"
    "libfmt9|MIT|linked"
    "libgcc-s1|GPL-3.0-or-later WITH GCC-exception-3.1|linked"
    "libmd0|BSD-3-Clause AND BSD-2-Clause AND ISC AND Beerware|linked"
    "libnlopt0|MIT AND BSD-3-Clause AND LGPL-2.1-or-later|linked"
    "libsqlite3-0|blessing|linked"
    "libstdc++6|GPL-3.0-or-later WITH GCC-exception-3.1|linked"
    "libtbb12|Apache-2.0|linked"
    "libyaml-cpp0.7|MIT|linked"
    "zlib1g|Zlib|linked")

set(third_party_dir ${PROJECT_BINARY_DIR}/third-party)
find_program(DPKG_QUERY dpkg-query)

function(scalecalc_debian_version package version source)
  set(found "")
  if(DPKG_QUERY)
    execute_process(COMMAND ${DPKG_QUERY} -W "-f=\${Version} \${source:Package} \${source:Version}\n" ${package}
                    OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(found MATCHES "^([^ \n]+) ([^ \n]+) ([^ \n]+)")
    set(${version} "${CMAKE_MATCH_1}" PARENT_SCOPE)
    set(${source} "${CMAKE_MATCH_2}=${CMAKE_MATCH_3}" PARENT_SCOPE)
  else()
    set(${version} "" PARENT_SCOPE)
    set(${source} "" PARENT_SCOPE)
  endif()
endfunction()

# An SPDX package and how scalecalc uses it.
function(scalecalc_spdx_package name version licence relationship)
  string(MAKE_C_IDENTIFIER "${name}" id)
  string(REPLACE "_" "-" id "${id}")
  set(said "NOASSERTION")
  if(version)
    set(said "${version}")
  endif()
  set(reference "")
  if(ARGN)
    set(reference ",\n     \"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", \"referenceLocator\": \"${ARGN}\"}]")
  endif()
  string(APPEND spdx_packages ",
    {\"name\": \"${name}\", \"SPDXID\": \"SPDXRef-${id}\", \"versionInfo\": \"${said}\", \"downloadLocation\": \"NOASSERTION\",
     \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", \"licenseDeclared\": \"${licence}\",
     \"copyrightText\": \"NOASSERTION\"${reference}}")
  string(APPEND spdx_relationships ",
    {\"spdxElementId\": \"SPDXRef-scalecalc\", \"relationshipType\": \"${relationship}\", \"relatedSpdxElement\": \"SPDXRef-${id}\"}")
  set(spdx_packages "${spdx_packages}" PARENT_SCOPE)
  set(spdx_relationships "${spdx_relationships}" PARENT_SCOPE)
endfunction()

set(spdx_packages "")
set(spdx_relationships "")
set(notices "Libraries that scalecalc ${PROJECT_VERSION} carries or calls, and their licences. scalecalc's own is in LICENSE.

NLopt: scalecalc calls its BOBYQA alone (MIT); the shared library also holds Luksan's algorithms (LGPL 2.1 or later). It is
linked dynamically: another libnlopt.so.0 in its place is used without building scalecalc again. The GCC runtime libraries
are under the GPL 3 with the GCC runtime library exception. The source of each package of Debian: apt-get source NAME=VERSION.
")
set(common_licences "")
foreach(entry IN LISTS SCALECALC_THIRD_PARTY)
  string(REPLACE "|" ";" fields "${entry}")
  list(GET fields 0 package)
  list(GET fields 1 licence)
  list(GET fields 2 how)
  scalecalc_debian_version(${package} version source)
  if(how STREQUAL "linked")
    set(relationship DYNAMIC_LINK)
  else()
    set(relationship STATIC_LINK)
  endif()
  string(REPLACE "+" "%2B" purl "${package}@${version}")
  string(REPLACE ":" "%3A" purl "${purl}")
  set(purl "pkg:deb/debian/${purl}?distro=debian-12")
  scalecalc_spdx_package(${package} "${version}" "${licence}" ${relationship} "${purl}")
  set(text_file /usr/share/doc/${package}/copyright)
  set(text "The licence text was not on the machine that built this: ${text_file} of Debian 12's package has it.\n")
  if(EXISTS ${text_file})
    file(READ ${text_file} text)
    foreach(common IN ITEMS Apache-2.0 GPL-3 LGPL-2.1)
      if(text MATCHES "common-licenses/${common}" OR licence MATCHES "^${common}")
        list(APPEND common_licences ${common})
      endif()
    endforeach()
  else()
    list(APPEND third_party_missing ${text_file})
  endif()
  string(APPEND notices "\n================ ${package} ${version} (${licence}; ${how}; source ${source})\n\n${text}")
endforeach()
list(REMOVE_DUPLICATES common_licences)
foreach(common IN LISTS common_licences)
  if(EXISTS /usr/share/common-licenses/${common})
    file(READ /usr/share/common-licenses/${common} text)
    string(APPEND notices "\n================ /usr/share/common-licenses/${common}\n\n${text}")
  else()
    list(APPEND third_party_missing /usr/share/common-licenses/${common})
  endif()
endforeach()
if(SCALECALC_CHARTS_INCLUDED)
  foreach(entry IN LISTS SCALECALC_CHART_LIBRARIES)
    scalecalc_read_library(lib "${entry}")
    scalecalc_spdx_package(${lib_name} ${lib_version} BSD-3-Clause CONTAINS "pkg:npm/${lib_name}@${lib_version}")
  endforeach()
  file(READ ${PROJECT_SOURCE_DIR}/src/cmake/page_notices.txt text)
  string(APPEND notices "\n================ scripts of pages\n\n${text}")
endif()
# A package without its licences would be one that nobody may pass on.
if(SCALECALC_CHARTS STREQUAL "ON" AND third_party_missing)
  message(FATAL_ERROR "licence texts that a package must carry are missing: ${third_party_missing}")
endif()

# The time is the commit's, as everything in a package is.
if(NOT DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND git log -1 --format=%ct WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE commit_time
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE no_commit_time)
  if(no_commit_time)
    set(commit_time 0)
  endif()
  set(ENV{SOURCE_DATE_EPOCH} ${commit_time})
  string(TIMESTAMP spdx_created "%Y-%m-%dT%H:%M:%SZ" UTC)
  unset(ENV{SOURCE_DATE_EPOCH})
else()
  string(TIMESTAMP spdx_created "%Y-%m-%dT%H:%M:%SZ" UTC)
endif()
string(SHA256 spdx_digest "${PROJECT_VERSION} ${spdx_created} ${spdx_packages}")
file(CONFIGURE OUTPUT ${third_party_dir}/scalecalc.spdx.json @ONLY CONTENT [[{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "scalecalc-@PROJECT_VERSION@",
  "documentNamespace": "https://spdx.org/spdxdocs/scalecalc-@PROJECT_VERSION@-@spdx_digest@",
  "creationInfo": {"created": "@spdx_created@", "creators": ["Tool: scalecalc src/cmake/third_party.cmake"]},
  "documentDescribes": ["SPDXRef-scalecalc"],
  "packages": [
    {"name": "scalecalc", "SPDXID": "SPDXRef-scalecalc", "versionInfo": "@PROJECT_VERSION@", "downloadLocation": "NOASSERTION",
     "filesAnalyzed": false, "licenseConcluded": "MIT", "licenseDeclared": "MIT", "copyrightText": "NOASSERTION"}@spdx_packages@
  ],
  "relationships": [
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-scalecalc"}@spdx_relationships@
  ]
}
]])
file(WRITE ${third_party_dir}/NOTICES.new "${notices}")
file(COPY_FILE ${third_party_dir}/NOTICES.new ${third_party_dir}/NOTICES ONLY_IF_DIFFERENT)
install(FILES ${third_party_dir}/NOTICES ${third_party_dir}/scalecalc.spdx.json DESTINATION ${CMAKE_INSTALL_DOCDIR})
