package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	pageFile    = "docs/mutants.md"
	reasonsFile = "hack/mutants/reasons.txt"
)

const introduction = `# Mutants

For those who ask how good the tests are: what they do not notice is listed below, each with its reason.

[hack/mutants](../hack/mutants) makes small changes in the code, one at a time: it negates a condition, leaves out an option or a call, does not
return an error, or changes a number. It runs the tests with each change. A change that no test notices has survived.

- **Explorations** are the tests that call ` + "`reconciletest.Explore`" + `. They try a sample of the faults, as with ` + "`go test -short`" + `.
- **Other tests** are all others: for examples also those on the real control plane; for packages of the library those that need none,
  among them the tests of the package itself.

The changes are a sample that follows from a seed. Run it again by ` + "`make mutants`" + `, which goes on where it was stopped: the results are in
[results.jsonl](../hack/mutants/results.jsonl). A result counts as long as the function that was changed stays as it is; ` + "`-again`" + ` tests once more what has survived.

`

// figures are the numbers of one area.
type figures struct{ wanted, tested, explorations, others, both int }

func (f *figures) add(r *result) {
	f.tested++
	f.explorations += count(r.Explorations != "")
	f.others += count(r.Others != "")
	f.both += count(!r.survived())
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// row returns a row of the table on the page.
func (f *figures) row(name string) string {
	tested := fmt.Sprint(f.tested)
	if f.tested < f.wanted {
		tested += fmt.Sprintf(" of %d so far", f.wanted)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", name, tested, f.share(f.explorations), f.share(f.others), f.share(f.both))
}

func (f *figures) share(n int) string {
	if f.tested == 0 {
		return "–"
	}
	return fmt.Sprintf("%d (%d %%)", n, 100*n/f.tested)
}

// writePage writes the page from the results of the sample.
func writePage(root string, sample []sampled, known *results) error {
	reasons, err := readReasons(filepath.Join(root, reasonsFile))
	if err != nil {
		return err
	}
	var page, survivors bytes.Buffer
	page.WriteString(introduction)
	page.WriteString("| changed code | changes | noticed by explorations alone | by other tests alone | by both together |\n| --- | --- | --- | --- | --- |\n")
	var all, operators figures
	for _, s := range sample {
		of := figures{wanted: s.area.count}
		all.wanted += s.area.count
		if strings.HasPrefix(s.area.name, "examples/") {
			operators.wanted += s.area.count
		}
		for _, r := range s.resultsIn(known) {
			of.add(&r)
			all.add(&r)
			if strings.HasPrefix(r.Area, "examples/") {
				operators.add(&r)
			}
			if r.survived() {
				fmt.Fprintf(&survivors, "| [%s:%d](../%s) | %s | %s: `%s` | %s |\n", filepath.Base(r.File), r.Line, r.File, r.Function, r.Kind, short(r.Before), reasons[r.Key])
			}
		}
		page.WriteString(of.row(s.area.name))
	}
	page.WriteString(operators.row("the examples together"))
	page.WriteString(all.row("all"))
	page.WriteString("\n## What survives\n\n| where | function | the change | why nothing notices |\n| --- | --- | --- | --- |\n")
	page.Write(survivors.Bytes())
	return os.WriteFile(filepath.Join(root, pageFile), page.Bytes(), 0o644)
}

// resultsIn returns the results of the sample of an area.
func (s *sampled) resultsIn(known *results) (all []result) {
	for _, m := range s.mutants {
		if r, tested := known.of(m); tested && r.Compiles && len(all) < s.area.count {
			r.mutant = m // the line may have changed since the test
			all = append(all, r)
		}
	}
	return all
}

// short returns code in one line. If it is long, only its beginning is returned. It has no |, which would end the cell of a table.
func short(code string) string {
	line := strings.ReplaceAll(strings.Join(strings.Fields(code), " "), "|", "∣")
	if runes := []rune(line); len(runes) > 70 {
		return string(runes[:70]) + "…"
	}
	return line
}

// readReasons returns the reasons, by the key of the change. Each line of the file has a key and a reason.
func readReasons(file string) (map[string]string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reasons := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		key, reason, found := strings.Cut(lines.Text(), " ")
		switch {
		case strings.HasPrefix(key, "#") || key == "":
		case !found:
			return nil, fmt.Errorf("%s: the line of %s has no reason", file, key)
		default:
			reasons[key] = reason
		}
	}
	return reasons, lines.Err()
}
