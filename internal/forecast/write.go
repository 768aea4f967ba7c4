package forecast

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Format is a format in which a report is written.
type Format string

// The formats.
const (
	Text     Format = "text"
	JSON     Format = "json"
	Markdown Format = "markdown"
)

// Check returns an error if the format is not known.
func (f Format) Check() error {
	switch f {
	case Text, JSON, Markdown:
		return nil
	}
	return fmt.Errorf("the format %q of a plan is not known: use %s, %s or %s", string(f), Text, JSON, Markdown)
}

// Write writes the report.
func (r *Report) Write(w io.Writer, f Format) error {
	if err := f.Check(); err != nil {
		return err
	}
	if f == JSON {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r.document())
	}
	var text strings.Builder
	switch f {
	case Text:
		r.writeText(&text)
	case Markdown:
		r.writeMarkdown(&text)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

const (
	notMadeTitle = "What fails, waits or is not known:"
	notMadeNote  = "A child that fails or waits holds up only the children that come after it. The others of its object are changed, and also deleted and created again. " +
		"But while one fails, what the object does not want any more is not deleted."
)

func (r *Report) writeText(w *strings.Builder) {
	if r.Ended != "" {
		fmt.Fprintf(w, "THE PLAN IS NOT COMPLETE: %s\n", oneLine(r.Ended))
	}
	for _, line := range r.summary() {
		fmt.Fprintln(w, line)
	}
	for _, g := range r.changes() {
		fmt.Fprintf(w, "\n%s\n", g.title())
		for _, line := range append(g.fields(), g.details()...) {
			fmt.Fprintf(w, "    %s\n", line)
		}
		fmt.Fprintf(w, "  %s\n", g.shown())
	}
	section := func(title string, groups []*group) {
		if len(groups) > 0 {
			fmt.Fprintf(w, "\n%s\n", title)
		}
		for _, g := range groups {
			fmt.Fprintf(w, "  %d × %s\n      %s\n", g.count, g.failure, g.shown())
		}
	}
	section(notMadeTitle, r.notMade())
	if len(r.notMade()) > 0 {
		fmt.Fprintf(w, "  %s\n", notMadeNote)
	}
	section("Skipped:", r.skipped())
	fmt.Fprint(w, "\nThis plan is not exact in this:\n")
	for _, line := range r.limits() {
		fmt.Fprintf(w, "  - %s\n", line)
	}
}

func (r *Report) writeMarkdown(w *strings.Builder) {
	if r.Ended != "" {
		fmt.Fprintf(w, "**The plan is not complete:** %s\n\n", escaped(oneLine(r.Ended)))
	}
	for _, line := range r.summary() {
		fmt.Fprintf(w, "- %s\n", escaped(line))
	}
	for _, g := range r.changes() {
		fmt.Fprintf(w, "\n<details><summary>%s</summary>\n\n", escaped(g.title()))
		if fields := g.fields(); len(fields) > 0 {
			fence := fenceOf(fields)
			fmt.Fprintf(w, "%s\n%s\n%s\n\n", fence, strings.Join(fields, "\n"), fence)
		}
		for _, line := range append(g.details(), g.shown()) {
			fmt.Fprintf(w, "- %s\n", escaped(line))
		}
		fmt.Fprint(w, "\n</details>\n")
	}
	section := func(title string, groups []*group) {
		if len(groups) > 0 {
			fmt.Fprintf(w, "\n%s\n\n", title)
		}
		for _, g := range groups {
			fmt.Fprintf(w, "- %d × %s (%s)\n", g.count, escaped(g.failure), escaped(g.shown()))
		}
	}
	section(notMadeTitle, r.notMade())
	if len(r.notMade()) > 0 {
		fmt.Fprintf(w, "\n%s\n", notMadeNote)
	}
	section("Skipped:", r.skipped())
	fmt.Fprint(w, "\n<details><summary>In what this plan is not exact</summary>\n\n")
	for _, line := range r.limits() {
		fmt.Fprintf(w, "- %s\n", escaped(line))
	}
	fmt.Fprint(w, "\n</details>\n")
}

// escaped returns a text in which Markdown and HTML find no special characters.
func escaped(text string) string {
	return markdown.Replace(text)
}

var markdown = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", `\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "@", "&#64;", "#", `\#`,
)

// fenceOf returns the fence of a Markdown code block with these lines: more backticks than stand side by side in any of the lines.
func fenceOf(lines []string) string {
	fence := "```"
	for _, line := range lines {
		for strings.Contains(line, fence) {
			fence += "`"
		}
	}
	return fence
}
