# The batch front: included by CMakeLists.txt of this folder.
set(AKIN_BATCH_SOURCES
  batch_format.c batch_input.c batch_logprobs.c batch_output.c batch_parse.c
  batch_resume.c histogram.c id_set.c json_text.c line_order.c output_file.c
  progress.c request.c request_body.c request_fields.c request_reader.c
  summary.c summary_json.c summary_load.c summary_print.c summary_transports.c)
set(AKIN_BATCH_LINK PkgConfig::JANSSON PkgConfig::XXHASH PkgConfig::CK
  PkgConfig::SMARTCOLS ${UNISTRING_LIBRARY} Threads::Threads)
