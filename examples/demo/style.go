package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// style colours text if the output is a terminal.
type style struct{ colours bool }

func styleOf(f *os.File) style {
	info, err := f.Stat()
	return style{err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == ""}
}

func (s style) bold(text string) string  { return s.in("1", text) }
func (s style) green(text string) string { return s.in("32", text) }

func (s style) in(code, text string) string {
	if !s.colours {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// command prints a command as a user would type it.
func (t *tour) command(name string, args ...string) {
	words := []string{name}
	for _, arg := range args {
		if strings.ContainsAny(arg, " {}[]()!?*@<>|&;\"'$") {
			arg = quoted(arg)
		}
		words = append(words, arg)
	}
	fmt.Printf("\n%s\n", t.style.bold("$ "+strings.Join(words, " ")))
}

// quoted quotes an argument for a shell.
func quoted(arg string) string {
	if strings.Contains(arg, "'") && !strings.ContainsAny(arg, "\"$`\\!") {
		return `"` + arg + `"`
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

func (t *tour) output(out string) {
	if out = strings.TrimRight(out, "\n"); out != "" {
		fmt.Println(out)
	}
}

func (t *tour) succeeded(what string, began time.Time) {
	fmt.Println(t.style.green(fmt.Sprintf("✓ %s (%.1f s)", what, time.Since(began).Seconds())))
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
