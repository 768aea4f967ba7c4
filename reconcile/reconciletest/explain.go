package reconciletest

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// missingWatch names the changes that a pass had not been told of: what it reads changed after the
// last pass over its object that something had asked for.
func (r *run) missingWatch() string {
	requests := r.ledger.all()
	last := requests[len(requests)-1].Pass
	reads := map[string]bool{}
	for _, request := range requests {
		if request.Pass == last && !request.IsWrite() && request.External == "" {
			reads[request.Kind.Kind] = true
		}
	}
	var unheard []string
	for _, row := range r.unheardChanges(last) {
		kind := strings.Fields(row)[1]
		if reads[kind] && !slices.Contains(unheard, row) {
			unheard = append(unheard, row)
		}
	}
	if len(unheard) == 0 {
		return ""
	}
	return "no pass came after " + strings.Join(unheard, ", ")
}

// unheardChanges gives the changes since the pass before the given one, over the same object, began.
func (r *run) unheardChanges(pass int) []string {
	r.trace.mu.Lock()
	defer r.trace.mu.Unlock()
	var over string
	var changes []string
	for _, row := range r.trace.rows {
		if row.pass == pass && strings.HasPrefix(row.what, "pass over ") {
			over = row.what
		}
	}
	for _, row := range r.trace.rows {
		switch {
		case row.pass == pass:
			return changes
		case row.what == over:
			changes = nil
		case row.change != "":
			changes = append(changes, row.change)
		}
	}
	return changes
}

// flapping shows what the last two changes of the objects of such requests were.
func (r *run) flapping(names []string) string {
	var lines []string
	history := r.history()
	for _, request := range slices.Backward(r.ledger.all()) {
		if !request.Changed || !slices.Contains(names, request.String()) || request.External != "" {
			continue
		}
		for _, change := range slices.Backward(history) {
			if change.GVK != request.Kind || change.Key != request.Object || change.Old == nil || change.New == nil {
				continue
			}
			lines = append(lines, changedFields(change.Old, change.New)...)
			break
		}
		break
	}
	if len(lines) == 0 {
		return ""
	}
	return ":\n  " + strings.Join(lines, "\n  ")
}

// changedFields gives what differs between two versions of an object.
func changedFields(old, now client.Object) []string {
	content := func(obj client.Object) map[string]any {
		made, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil
		}
		if metadata, ok := made["metadata"].(map[string]any); ok {
			for _, field := range []string{"resourceVersion", "generation", "managedFields", "deletionGracePeriodSeconds"} {
				delete(metadata, field)
			}
		}
		return made
	}
	lines := differ("", content(old), content(now))
	for i := range lines {
		lines[i] = strings.Replace(strings.Replace(lines[i], ": want ", ": from ", 1), ", got ", " to ", 1)
	}
	return lines
}

// mostPaths is how many paths say what a change was.
const mostPaths = 3

// changedPaths gives where two versions of an object differ.
func changedPaths(old, now client.Object) []string {
	var paths []string
	for _, line := range changedFields(old, now) {
		path, _, _ := strings.Cut(line, ": ")
		if paths = append(paths, path); len(paths) == mostPaths {
			break
		}
	}
	return paths
}
