# Small files are compiled several at a time: most of a compiler's work on them is the same headers and the same templates.

# volta_compile_together(TARGET SOURCES...) joins the target's sources by fives. Files whose own constants would meet those of
# others stay by themselves.
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
  # GCC takes a joined file for a header, where a class with a member of a file's own type would be a mistake.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
