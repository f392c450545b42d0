/* Manual page of the simulation file: text around a paragraph for each key. */
#include "launch/sim_page.h"

#include "launch/key_page.h"
#include "launch/sim.h"

static const char head[] =
    ".\\\" Written by `akin sim --keys=man`.\n"
    ".TH AKIN.SIM 5 2026-11-30 Akin \"File Formats Manual\"\n"
    ".SH NAME\n"
    "akin.sim \\- simulation file of akin\n"
    ".SH DESCRIPTION\n"
    "A simulation file says what\n"
    ".BR akin\\-sim (1)\n"
    "simulates: a model on a machine, its workers, the requests that come, "
    "and\n"
    "the policies to compare.\n"
    "It may have any name.\n"
    "Either\n"
    ".B requests.rate\n"
    "or\n"
    ".B requests.in_flight\n"
    "must be set, or the arrivals be those of a trace; all other keys have a\n"
    "default.\n"
    ".PP\n"
    "The syntax and the kinds of values are those of\n"
    ".BR akin.conf (5);\n"
    "no environment variable changes a key, but\n"
    ".BI \\-\\-set \" key\" = value\n"
    "does.\n"
    "A key's name below is its path:\n"
    ".B requests.rate\n"
    "is\n"
    ".B rate\n"
    "in the group\n"
    ".BR requests .\n"
    ".IP\n"
    ".EX\n"
    "model    = \"qwen3\\-30b\\-a3b\";\n"
    "requests = { rate = 60.0; };\n"
    "roles    = { prefill = 8; decode = 16; };\n"
    ".EE\n"
    ".SH KEYS\n"
    "Every key with what it means, what may be written and its default.\n"
    ".B akin sim \\-\\-keys\n"
    "prints the same table, with the values of a file.\n";

static const char tail[] =
    ".SH FILES\n"
    "Simulations of published set\\-ups are installed with akin, in\n"
    ".I \\%akin/examples/paper\n"
    "below the folder of shared data\n"
    ".RI ( /usr/share\n"
    "in a Debian package).\n"
    ".SH SEE ALSO\n"
    ".BR akin (1),\n"
    ".BR akin\\-report (1),\n"
    ".BR akin\\-sim (1),\n"
    ".BR akin.conf (5)\n";

void akini_sim_page_write(FILE *stream)
{
    (void)fputs(head, stream);
    akini_key_page_write(akin_sim_rows, akin_sim_n_rows, stream);
    (void)fputs(tail, stream);
}
