package main

import (
	"errors"
	"fmt"
	"strings"
)

// contains checks for a text in the output.
func contains(text string) func(string) error {
	return func(out string) error {
		if !strings.Contains(out, text) {
			return fmt.Errorf("the output does not contain %s", text)
		}
		return nil
	}
}

// is checks that the output is a text, and nothing more.
func is(text string) func(string) error {
	return func(out string) error {
		if out = strings.TrimSpace(out); out != text {
			return fmt.Errorf("the output is %q, want %q", out, text)
		}
		return nil
	}
}

// present checks that there is an output.
func present(out string) error {
	if strings.TrimSpace(out) == "" {
		return errors.New("the output is empty")
	}
	return nil
}

// nothing checks that no object is listed, except the Service of the API server.
func nothing(out string) error {
	for line := range strings.Lines(out) {
		if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "NAME ") && !strings.HasPrefix(line, "service/kubernetes ") {
			return fmt.Errorf("this is left: %s", strings.TrimSpace(line))
		}
	}
	return nil
}

// row checks for a table row with a beginning.
func row(want string) func(string) error {
	return func(out string) error {
		for line := range strings.Lines(out) {
			if strings.HasPrefix(strings.Join(strings.Fields(line), " "), want) {
				return nil
			}
		}
		return fmt.Errorf("no row begins with %s: %q", want, out)
	}
}

// containsAll checks for several texts in the output.
func containsAll(parts ...string) func(string) error {
	return func(out string) error {
		for _, part := range parts {
			if err := contains(part)(out); err != nil {
				return err
			}
		}
		return nil
	}
}
