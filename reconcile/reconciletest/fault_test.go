//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// The cache of a new process shows the past until a pass over every object has run, whichever object comes first.
func TestTimeTravelOfEachObject(t *testing.T) {
	for _, other := range []string{"aaa", "zzz"} {
		t.Run(other, func(t *testing.T) {
			s := faultyEffects["EffectForADeletedObject"].scenario(false)
			s.Objects = []client.Object{shop(func(s *Shop) { s.Name = other })}
			assert.True(t, hasFault(reconciletest.ExploreQuietly(t, s), reconciletest.Faults.TimeTravel))
		})
	}
}

// A cache that is StaleLong leads to exactly one more pass than a Stale one.
func TestStaleLongLastsTwoPasses(t *testing.T) {
	// passes counts the passes in all runs. Some runs happen at the same time.
	passes := map[reconciletest.FaultKind]*atomic.Int32{reconciletest.Faults.Stale: {}, reconciletest.Faults.StaleLong: {}}
	count := func(fault reconciletest.FaultKind) string { return fault.String() + ": added ConfigMap default/web #1" }
	for _, kind := range []reconciletest.FaultKind{reconciletest.Faults.Stale, reconciletest.Faults.StaleLong} {
		s := of(func(*reconciletest.Process) shopFunc {
			return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				is := config(s.Name)
				if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); err == nil {
					return ctrl.Result{}, nil
				}
				passes[kind].Add(1)
				return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, owned(c, s, s.Name, nil)))
			}
		}, reconciletest.Create(shop()))
		assert.Empty(t, reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{Replay: count(kind)})).Failures)
	}
	assert.Equal(t, passes[reconciletest.Faults.Stale].Load()+1, passes[reconciletest.Faults.StaleLong].Load())
}

// TestKinds checks that Faults and Findings have each kind once. In fault.go the comment beside each fault is the text of the fault, as
// String returns it: the test checks that too.
func TestKinds(t *testing.T) {
	all := func(fields reflect.Value) (found []fmt.Stringer) {
		for _, field := range fields.Fields() {
			kind, isKind := reflect.TypeAssert[fmt.Stringer](field)
			require.True(t, isKind)
			found = append(found, kind)
		}
		return found
	}
	var faults, findings []fmt.Stringer
	for _, kind := range reconciletest.AllFaults() {
		faults = append(faults, kind)
	}
	for _, kind := range reconciletest.AllFindings() {
		findings = append(findings, kind)
	}
	assert.ElementsMatch(t, faults, all(reflect.ValueOf(reconciletest.Faults)))
	assert.ElementsMatch(t, findings, all(reflect.ValueOf(reconciletest.Findings)))

	source, err := os.ReadFile("fault.go")
	require.NoError(t, err)
	said := regexp.MustCompile(`(?m)^\t(\w+)\s+FaultKind // "(.*)"$`).FindAllStringSubmatch(string(source), -1)
	assert.Len(t, said, len(faults))
	for _, line := range said {
		assert.Equal(t, line[2], fmt.Sprint(reflect.ValueOf(reconciletest.Faults).FieldByName(line[1])))
	}
}

// TestPageHasEachFault checks that the table of the faults in docs/testing.md has a row for each fault.
func TestPageHasEachFault(t *testing.T) {
	page, err := os.ReadFile("../../docs/testing.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## The faults\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\nAfter each fault ")
	var said, faults []string
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`[^|]*`"+`) \|`).FindAllStringSubmatch(section, -1) {
		for _, name := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(row[1], -1) {
			said = append(said, name[1])
		}
	}
	for _, kind := range reconciletest.AllFaults() {
		faults = append(faults, kind.String())
	}
	assert.ElementsMatch(t, faults, said)
}
