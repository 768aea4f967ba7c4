package reconciletest

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
)

// CompareRole returns what [AssertRole] prints below the first line.
func CompareRole(file string, reports []*Report, unexplored ...string) (string, error) {
	grants, err := readRoles(file)
	if err != nil {
		return "", err
	}
	return compareRole(grants, reports, unexplored), nil
}

// NewReport returns a report of an operator that needed some rights.
func NewReport(rights map[Right]string) *Report {
	r := &Report{requestOf: rights}
	for right := range rights {
		r.Rights = append(r.Rights, right)
	}
	return r
}

// Allows reports whether the roles in a file grant the right.
func Allows(file string, right Right) (bool, error) {
	grants, err := readRoles(file)
	for i := range grants {
		if grants[i].covers(&right) {
			return true, nil
		}
	}
	return false, err
}

// PageName returns the name of the file with the page of a test in this working directory.
func PageName(directory, test string) string { return pageName(directory, test) }

// WritePageFile writes the page of the first failure, as [Explore] does.
func WritePageFile(t *testing.T, r *Report) (address string, err error) { return r.writePageFile(t) }

// EndOf returns when an exploration ends, and the reason if the deadline sets that time.
var EndOf = endOf

// ExploreUntil explores the scenario in a test with the deadline. The channels end runs that have begun.
func ExploreUntil(t *testing.T, s Scenario, deadline time.Time, stop, abandon <-chan struct{}) *Report {
	t.Helper()
	return explore(t, s, nil, deadline, func(time.Time, time.Time) (run.Deadline, func()) {
		return run.Deadline{Stop: stop, Abandon: abandon}, func() {}
	})
}

// ExploreHung explores the scenario. A run that takes no step for a short time counts as hung.
func ExploreHung(t *testing.T, s Scenario, hung time.Duration) *Report {
	t.Helper()
	return explore(t, s, nil, time.Time{}, func(time.Time, time.Time) (run.Deadline, func()) {
		return run.Deadline{Hung: hung}, func() {}
	})
}

// ShareOf returns the deadline of an exploration. Only returns the pattern of go test -run that selects one test.
var (
	ShareOf = shareOf
	Only    = only
)

// AllFaults returns the kinds of faults in the order in which they are tried.
func AllFaults() (all []FaultKind) {
	for _, kind := range kinds.Faults() {
		all = append(all, FaultKind{kind})
	}
	return all
}

// AllFindings returns the kinds of findings in the order in which reports have them.
func AllFindings() (all []FindingKind) {
	for _, kind := range kinds.Findings() {
		all = append(all, FindingKind{kind})
	}
	return all
}

// Apply removes from an object what is ignored.
func Apply(i Ignore, obj *unstructured.Unstructured) { i.apply(obj) }

// EndRuns returns the channels that are closed before a deadline.
var EndRuns = endRuns

// Pace returns how fast runs were.
var Pace = pace
