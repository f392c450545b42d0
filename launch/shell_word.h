/* Shell word: one argument as a shell takes it. */
#ifndef AKIN_LAUNCH_SHELL_WORD_H
#define AKIN_LAUNCH_SHELL_WORD_H

#include <stdio.h>

/** Print a word, in quotes where it needs them. */
void akin_shell_word_print(const char *word, FILE *stream);

#endif
