# Sources that read a model directory: config, tensors, binding by name.
set(AKIN_LOADER_SOURCES
  config_reader.c
  model_config.c
  model_file.c
  model.c
  model_support.c
  safetensors.c
  safetensors_header.c
  safetensors_index.c)
