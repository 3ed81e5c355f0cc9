# The libraries that draw the pictures of pages (-o html), as npm has them: NAME VERSION SHA512 FILE. The sum is npm's
# own "integrity", in hexadecimal; a file with another is refused.
set(SCALECALC_CHART_LIBRARIES
    "vega 6.4.0 ac75c2ab62e911608b3235c1123ee1a1c63d1b4fe2e5319845ac861928f4e954c5e3e976206d99ee87992828d66d487fee14c4fe65616da38f07bdb0084961ea build/vega.min.js"
    "vega-lite 6.5.0 7cc5c5eacd0cac88345135a72c87de16d8122f3561cb348aa1bcc6ae1e6b852fa62fa14e6051b79bba2e278536de08fae442be825f452084f9c3bc0b35a03390 build/vega-lite.min.js"
    "vega-embed 7.3.0 c10f2ce46692ceaa0a82645f6d1a25801ae313608fed92875ea1fb3628f132a3e3a5d5b14ace039fcb6fa7d83482242f87670afb7a79eacc63596334c0d9e01b build/vega-embed.min.js")
# For tests alone: what judges whether a page can be used without eyes or a mouse.
set(SCALECALC_TEST_LIBRARIES
    "axe-core 4.14.1 1477dafa598d8d065f273d6af302aa203c02e83131707b7fa648cd41bd3d6b734f8c22a0dab86ee6a6f64b8afbe804b214d36db85a2826965edfb3a0b9d546b5 axe.min.js")

# Sets <prefix>_name, _version, _sum, _file of an entry, and _archive as npm calls it.
macro(scalecalc_read_library prefix entry)
  separate_arguments(_fields UNIX_COMMAND "${entry}")
  list(GET _fields 0 ${prefix}_name)
  list(GET _fields 1 ${prefix}_version)
  list(GET _fields 2 ${prefix}_sum)
  list(GET _fields 3 ${prefix}_file)
  set(${prefix}_archive "${${prefix}_name}-${${prefix}_version}.tgz")
endmacro()
# For the documents' site: formulas as print has them.
set(SCALECALC_SITE_LIBRARIES
    "katex 0.19.1 8c6f2e2a7b63484726d84a503a1d17b6eae93eeb82f6bdd2ab91cb1ddb05756653dbb13aef6485d7d4048bea1fd3f61e3b2d7994381184abebe7ad78b91ac47c dist/katex.min.js")
