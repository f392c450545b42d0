/* json_value: prints one value of a JSON file, for shell scripts.
 *
 * usage: json_value FILE [KEY|INDEX]...
 *
 * The file must hold exactly one JSON object and a newline. A string is
 * printed as it is, anything else as compact JSON. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing but white space that ends in a newline may follow the value. */
static int ends_well(FILE *file)
{
    return fseek(file, -2, SEEK_END) == 0 && getc(file) == '}' &&
           getc(file) == '\n';
}

int main(int argc, char **argv)
{
    json_error_t where;
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (file == NULL) {
        (void)fprintf(stderr, "json_value: cannot open the file\n");
        return 2;
    }
    json_t *all = json_loadf(file, JSON_REJECT_DUPLICATES, &where);
    if (all == NULL || !json_is_object(all) || !ends_well(file)) {
        (void)fprintf(stderr, "json_value: %s: not one JSON object: %s\n",
                      argv[1], all == NULL ? where.text : "more than that");
        json_decref(all);
        (void)fclose(file);
        return 1;
    }
    (void)fclose(file);
    const json_t *value = all;
    for (int i = 2; i < argc && value != NULL; i++)
        value = json_is_array(value)
                    ? json_array_get(value, strtoul(argv[i], NULL, 10))
                    : json_object_get(value, argv[i]);
    int code = value == NULL;
    if (value == NULL)
        (void)fprintf(stderr, "json_value: %s: no such key\n", argv[1]);
    else if (json_is_string(value))
        code = fwrite(json_string_value(value), 1, json_string_length(value),
                      stdout) != json_string_length(value);
    else
        code = json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY) != 0;
    json_decref(all);
    return code;
}
