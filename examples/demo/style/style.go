// Package style formats the output of the demo.
package style

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Printer prints to standard output, with colours if that is a terminal.
type Printer struct{ colours bool }

// New returns a printer.
func New() Printer {
	info, err := os.Stdout.Stat()
	return Printer{err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""}
}

// Title prints the title of a section.
func (p Printer) Title(text string) {
	fmt.Printf("\n%s\n", p.in("1", "── "+text+" "+strings.Repeat("─", max(0, 76-len(text)))))
}

// Say prints a paragraph.
func (p Printer) Say(text string) { fmt.Println("\n" + wrap(text, 80)) }

// Command prints a command as a user would type it.
func (p Printer) Command(name string, args ...string) {
	words := []string{name}
	for _, arg := range args {
		if strings.ContainsAny(arg, " {}[]()!?*@<>|&;\"'$") {
			arg = quoted(arg)
		}
		words = append(words, arg)
	}
	fmt.Printf("\n%s\n", p.in("1", "$ "+strings.Join(words, " ")))
}

// Output prints the output of a command.
func (p Printer) Output(out string) {
	if out = strings.TrimRight(out, "\n"); out != "" {
		fmt.Println(out)
	}
}

// Succeeded prints what was checked, and how long it took.
func (p Printer) Succeeded(what string, began time.Time) {
	p.Checked(fmt.Sprintf("%s (%.1f s)", what, time.Since(began).Seconds()))
}

// Checked prints what was checked.
func (p Printer) Checked(what string) { fmt.Println(p.in("32", "✓ "+what)) }

func (p Printer) in(code, text string) string {
	if !p.colours {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// quoted quotes an argument for a shell.
func quoted(arg string) string {
	if strings.Contains(arg, "'") && !strings.ContainsAny(arg, "\"$`\\!") {
		return `"` + arg + `"`
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// wrap breaks a text into lines of a width.
func wrap(text string, width int) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}
