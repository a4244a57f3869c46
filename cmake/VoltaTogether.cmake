# Small files are compiled several at a time: most of a compiler's work on them is the same headers and the same templates.

# volta_compile_together(TARGET SOURCES...) compiles the target's sources in groups of five. A file with a file-scope constant `op`
# or with options of its own is compiled alone.
function(volta_compile_together target)
  get_filename_component(folder ${ARGV1} DIRECTORY)
  get_filename_component(folder ${folder} NAME)
  set(count 0)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} own REGEX "^const.* op = " LIMIT_COUNT 1)
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    if(own OR options)
      continue()
    endif()
    math(EXPR group "${count} / 5")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}${group})
    math(EXPR count "${count} + 1")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC treats a grouped source as a header, and warns of classes whose members have types of an anonymous namespace.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
