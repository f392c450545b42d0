/* Report page: the frame and the style of a page. */
#include "launch/report_page.h"

#include "base/version.h"
#include "launch/report_tiles.h"

/* The colours are told apart by people who see few colours, and lines differ
 * in the shapes of their points as well. */
static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--mute:#57606a;"
    "--grid:#e3e6ea;--card:#f7f8fa;--warn:#fff4d6;--best:#dff3e4;"
    "--c0:#0072b2;--c1:#d55e00;--c2:#008f6b;--c3:#b8588f;--c4:#b07800;"
    "--c5:#3a9bd6;--c6:#4d4d4d;--m1:#e1ecf4;--m2:#c0d8ea;--m3:#94bfdc;"
    "--m4:#5f9fc9;--m5:#2f7ab0;--m6:#12558c;--m7:#08305c}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e6e9ed;"
    "--mute:#9aa4af;--grid:#2c323a;--card:#1b1f25;--warn:#3d3314;"
    "--best:#17402a;--c0:#4aa8e8;--c1:#ff8a3d;--c2:#2fc79b;--c3:#e69cc6;"
    "--c4:#f0c24a;--c5:#a4d8ff;--c6:#c9ced4;--m1:#1f2f3d;--m2:#234a63;"
    "--m3:#276a8c;--m4:#2c8db8;--m5:#5ab4d8;--m6:#a3d8ee;--m7:#f0fbff}}\n"
    "*{box-sizing:border-box}body{margin:0 auto;padding:24px;max-width:1360px;"
    "background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif}\n"
    "h1{font-size:24px;margin:0}h2{font-size:18px;margin:32px 0 8px}"
    "p{margin:6px 0;max-width:80ch}.lead,.none,.note{color:var(--mute)}"
    ".note{font-size:13px}\n"
    ".charts{display:grid;gap:16px;grid-template-columns:"
    "repeat(auto-fill,minmax(min(100%,480px),1fr))}\n"
    "figure{margin:0;padding:12px;background:var(--card);border:1px solid "
    "var(--grid);border-radius:6px;max-width:720px}"
    "figcaption{font-weight:600;margin-bottom:4px;overflow-wrap:anywhere}\n"
    "svg{display:block;max-width:100%;height:auto}figure>svg{width:100%}"
    "svg text{fill:var(--mute);font:12px system-ui,sans-serif}"
    "svg text.at{fill:var(--fg)}svg "
    "text.s{font-size:9px}.g{stroke:var(--grid);fill:none}"
    ".w{stroke:var(--fg);fill:none}.t{stroke:var(--grid)}path.t{fill:none}"
    ".a{fill:var(--c0);fill-opacity:.45;stroke:var(--c0)}\n"
    ".legend{list-style:none;margin:6px 0 0;padding:0;display:flex;flex-wrap:"
    "wrap;gap:2px 16px;font-size:13px}.legend li{display:flex;gap:6px;"
    "align-items:center;overflow-wrap:anywhere}.legend svg{flex:none}"
    ".key{gap:2px 9px}.key li{gap:3px}\n"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;font-size:13px;"
    "font-variant-numeric:tabular-nums}th,td{padding:4px 10px;border-bottom:"
    "1px solid var(--grid);text-align:right;white-space:nowrap}"
    "th{font-weight:600;vertical-align:bottom}th small{display:block;"
    "font-weight:400;color:var(--mute)}\n"
    "th:first-child,.facts th,.facts "
    "td{text-align:left}td.best{background:var(--best);"
    "font-weight:600}.warn{background:var(--warn);padding:8px 12px 8px 28px;"
    "border-radius:6px;margin:12px 0}\n";

/* A line has one colour and an area another; so has a cell of a map. */
static void write_colours(FILE *out)
{
    for (unsigned i = 1; i < AKIN_REPORT_COLOURS; i++)
        (void)fprintf(out, "path.m%u{fill:var(--m%u)}\n", i, i);
    for (int i = 0; i < 7; i++)
        (void)fprintf(out,
                      ".f%d{fill:var(--c%d)}.l%d{stroke:var(--c%d);fill:none;"
                      "stroke-width:2}\n",
                      i, i, i, i);
}

akin_status_t akin_report_page(FILE *out, const akin_report_input_t *input)
{
    (void)fprintf(out,
                  "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
                  "<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
                  "content=\"width=device-width, initial-scale=1\">\n"
                  "<title>Akin report</title>\n<style>\n%s",
                  style);
    write_colours(out);
    (void)fprintf(out,
                  "</style>\n</head>\n<body>\n<h1>Akin report</h1>\n"
                  "<p class=\"lead\">%zu file%s, %zu line%s in the table. TPOT "
                  "is the time per output token, TTFT the time "
                  "to the first one.</p>\n",
                  input->n_files, input->n_files == 1 ? "" : "s",
                  input->n_cases, input->n_cases == 1 ? "" : "s");
    akini_report_warnings(out, input);
    akini_report_table(out, input);
    const akin_status_t status = akini_report_charts(out, input);
    akini_report_facts(out, input);
    (void)fprintf(out, "<p class=\"note\">akin %s</p>\n</body>\n</html>\n",
                  AKIN_VERSION);
    return status;
}
