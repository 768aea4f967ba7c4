package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// resultsFile has one line for each change that was tested.
const resultsFile = "hack/mutants/results.jsonl"

// result says which tests have noticed a change.
type result struct {
	mutant
	Area         string
	Compiles     bool
	Explorations string // the first exploration that fails; "": none does
	Others       string // the first other test that fails; "": none does
	Seconds      int    // how long the tests took
}

// survived reports whether no test has noticed the change.
func (r *result) survived() bool { return r.Compiles && r.Explorations == "" && r.Others == "" }

// results are all results, by the key of the change. Its methods may be called by several goroutines.
type results struct {
	mu    sync.Mutex
	file  string
	byKey map[string]result
}

// readResults returns the results of a file; if the file does not exist, it returns none.
func readResults(file string) (*results, error) {
	all := &results{file: file, byKey: map[string]result{}}
	content, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range bytes.Lines(content) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s has a line that is not a result: remove it: %w", file, err)
		}
		all.byKey[r.Key] = r // a later line replaces an earlier one with the same key
	}
	return all, nil
}

// of returns the result of a change. It returns false if the change was not tested yet.
func (r *results) of(m mutant) (result, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, tested := r.byKey[m.Key]
	return known, tested
}

// add appends a result to the file.
func (r *results) add(one result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byKey[one.Key] = one
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(r.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
