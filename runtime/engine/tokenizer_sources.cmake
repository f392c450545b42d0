# The tokenizer's and the chat's sources, for this folder's akin_module().
set(AKIN_TOKENIZER_SOURCES
  utf8.c byte_level.c pair_map.c token_table.c added_tokens.c pre_split.c
  bpe.c tokenizer.c tokenizer_encode.c tokenizer_load.c tokenizer_pipeline.c
  tokenizer_vocab.c decoder.c chat.c)
