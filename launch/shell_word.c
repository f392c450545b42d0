/* Shell word: single quotes, and what to do about those inside. */
#include "launch/shell_word.h"

#include <string.h>

void akin_shell_word_print(const char *word, FILE *stream)
{
    const char *plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                        "0123456789_-+=./,:@%";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        (void)fputs(word, stream);
        return;
    }
    (void)fputc('\'', stream);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            (void)fputs("'\\''", stream);
        else
            (void)fputc(*word, stream);
    (void)fputc('\'', stream);
}
