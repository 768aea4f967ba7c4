package reconciletest

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// pageVariable is the environment variable that names the folder to which [Explore] writes the page of a failure.
const pageVariable = "RECONCILETEST_PAGES"

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows: the first failure of an exploration, beside the run without faults.
type page struct {
	Test, Headline, Error, Replay, Others string
	Single                                bool // the run without faults fails, so the page shows only that run
	Sections                              []pageSection
}

// pageSection is what happened from one action of the user until the next one.
type pageSection struct {
	Title           string
	Failed, Without []*pagePass
}

// pagePass is a pass, or what happened between two passes.
type pagePass struct {
	Number       int // 0: between passes
	Title, Cause string
	At           string // the virtual time at which the pass began; "" between passes
	Silent       bool   // nothing was sent
	Rows         []pageRow
}

type pageRow struct {
	trace.Moment
	Label string
}

var pageLabels = map[trace.MomentKind]string{
	trace.MomentWrite: "write", trace.MomentRead: "read", trace.MomentCached: "cache",
	trace.MomentChange: "server", trace.MomentMessage: "", trace.MomentOther: "",
}

// WritePage writes the first failure as one HTML page, which needs no other file: the passes with their requests and
// what the cache showed, the fault, and the run without faults beside it. The values of Secrets are left out. It writes
// nothing if nothing failed, or if the scenario could not be run.
func (r *Report) WritePage(to io.Writer) error {
	if len(r.failedRun) == 0 {
		return nil
	}
	first := &r.Failures[0]
	p := &page{
		Test: r.test, Headline: first.headline(), Error: strings.TrimSuffix(first.Err.Error()+"\n"+first.hints(), "\n"), Single: len(r.soundRun) == 0,
		Sections: sectionsOf(r.failedRun, r.soundRun),
	}
	if len(first.Faults) > 0 {
		p.Replay = r.replayCommand(first)
	}
	if len(r.Failures) > 1 {
		p.Others = "the first of " + r.findings()
	}
	return pageTemplate.Execute(to, p)
}

// sectionsOf puts two runs side by side, action by action.
func sectionsOf(failed, without []trace.Moment) (sections []pageSection) {
	section := func(m *trace.Moment) *pageSection {
		for len(sections) <= m.Phase {
			sections = append(sections, pageSection{Title: "start"})
		}
		s := &sections[m.Phase]
		if m.What == trace.MomentAction {
			s.Title = "user: " + m.Text
		}
		return s
	}
	for i := range without {
		s := section(&without[i])
		s.Without = addMoment(s.Without, &without[i])
	}
	for i := range failed {
		s := section(&failed[i])
		s.Failed = addMoment(s.Failed, &failed[i])
	}
	return slices.DeleteFunc(sections, func(s pageSection) bool { return len(s.Failed)+len(s.Without) == 0 })
}

// addMoment adds a moment to the pass that it belongs to, or to what happened since the last pass.
func addMoment(passes []*pagePass, m *trace.Moment) []*pagePass {
	switch m.What {
	case trace.MomentAction:
		return passes
	case trace.MomentPass:
		return append(passes, &pagePass{Number: m.Pass, Title: m.Text, Cause: m.Answer, At: m.At.Round(time.Millisecond).String(), Silent: true})
	}
	var to *pagePass
	for _, p := range passes {
		if p.Number == m.Pass && m.Pass > 0 {
			to = p
		}
	}
	if to == nil {
		if n := len(passes); n > 0 && passes[n-1].Number == 0 {
			to = passes[n-1]
		} else {
			to = &pagePass{}
			passes = append(passes, to)
		}
	}
	to.Silent = to.Silent && m.Fault == "" && (m.What == trace.MomentCached || m.What == trace.MomentMessage && !m.Failed)
	to.Rows = append(to.Rows, pageRow{*m, pageLabels[m.What]})
	return passes
}

// logPage writes the page of the first failure into a file and logs its address.
func (r *Report) logPage(t *testing.T) {
	t.Helper()
	if len(r.failedRun) == 0 {
		return // the scenario could not be run
	}
	address, err := r.writePageFile(t)
	if err != nil {
		t.Logf("the page of this failure could not be written: %v: set %s to a folder that can be written", err, pageVariable)
		return
	}
	t.Logf("look at it in a browser: %s", address)
}

// writePageFile writes the page of a failure into a file, and returns the file's address for a browser.
func (r *Report) writePageFile(t *testing.T) (address string, err error) {
	folder := os.Getenv(pageVariable)
	if folder == "" {
		folder = filepath.Join(os.TempDir(), fmt.Sprintf("reconciletest-%d", os.Getuid()))
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	directory, err := os.Getwd() // in a test the folder of its package
	if err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(folder, pageName(directory, t.Name())))
	if err != nil {
		return "", err
	}
	if err := r.WritePage(file); err != nil {
		_ = file.Close() // the error of the write is the one to report
		return "", err
	}
	path, err := filepath.Abs(file.Name())
	if err != nil {
		return "", err
	}
	return "file://" + filepath.ToSlash(path), file.Close()
}

// pageName returns the name of the file with the page of a test that runs in this working directory. The hash of the
// directory separates packages of the same name, and working copies of the same package.
func pageName(directory, test string) string {
	hash := sha256.Sum256([]byte(directory))
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, fmt.Sprintf("%s-%x-%s.html", filepath.Base(directory), hash[:4], test))
}
