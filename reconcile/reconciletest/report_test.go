//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"crypto/rand"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// If a process fails because its cache shows the past, the report says how to avoid the failure.
func TestReportExplainsThePast(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, faultyEffects["EffectForADeletedObject"].scenario(false)).String()
	assert.Contains(t, report, "it must read from the API server")
	assert.Contains(t, report, "modified Shop default/web #2 (metadata.deletionTimestamp")
	assert.Contains(t, report, "The process sees the past. Before it sends effect keep account web, it must read from the API server\n"+
		"what that depends on", "it names what was sent because of it")
	assert.NotContains(t, report, "deletes")
}

// listOf returns what a report lists after the first failure.
func listOf(t *testing.T, report *reconciletest.Report) string {
	t.Helper()
	_, list, found := strings.Cut(report.String(), "'\n\n")
	require.True(t, found, report.String())
	return list
}

// threeKinds is an operator with three mistakes. It creates the child till only together with the child back. Its children keep the motto
// with which they were created. Each pass writes the status.
func threeKinds() reconciletest.Scenario {
	return of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(config("back")), config(""))
			if client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
			children := []string{"front"}
			if apierrors.IsNotFound(err) {
				children = []string{"front", "back", "till"}
			}
			for _, name := range children {
				if err := keepFirst(ctx, c, owned(c, s, name, map[string]string{"motto": s.Spec.Motto})); err != nil {
					return ctrl.Result{}, err
				}
			}
			s.Status.Phase = "Open"
			return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
		}
	}, painted("red", "blue")...)
}

func TestReportGroupsFindings(t *testing.T) {
	only := []reconciletest.FaultKind{reconciletest.Faults.CrashBefore, reconciletest.Faults.CrashDowntime, reconciletest.Faults.InternalError}
	var skipped []reconciletest.FaultKind
	for _, kind := range reconciletest.AllFaults() {
		if kind != only[0] && kind != only[1] && kind != only[2] {
			skipped = append(skipped, kind)
		}
	}
	report := reconciletest.ExploreQuietly(t, with(threeKinds(), reconciletest.Options{SkipFaults: skipped}))
	assert.Equal(t, `5 findings in 22 runs; the others, by what differs:
does not survive: 2
  2 runs: ConfigMap: present without faults, absent here
    internal error at: create ConfigMap default/till #1
    crash with downtime after: create ConfigMap default/back #1
depends on timing: 1
  1 run: ConfigMap data.motto differs
    crash with downtime after: create ConfigMap default/front #1
breaks a convention: 1
  1 run: a pass that has nothing to do sends update Shop/status default/web, which changes nothing: compare first, with the defaults that the API server sets, and write …
    without faults
`, listOf(t, report))

	report = reconciletest.ExploreQuietly(t, with(threeKinds(), reconciletest.Options{SkipFaults: skipped, SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.DoesNotSurvive, reconciletest.Findings.BreaksConvention}}))
	require.NotEmpty(t, report.Failures)
	assert.Equal(t, reconciletest.Findings.DependsOnTiming, report.Failures[0].Kind)
	assert.Contains(t, report.String(), "It depends on timing, as is shown by one fault: crash with downtime after: create ConfigMap default/front #1.\n")
	assert.Contains(t, report.String(), "findings left out by SkipFindings: 3 \"does not survive\", 1 \"breaks a convention\"")
	assert.Equal(t, 4, report.Silenced)

	report = reconciletest.ExploreQuietly(t, with(threeKinds(), reconciletest.Options{SkipFaults: skipped, SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.DoesNotSurvive, reconciletest.Findings.BreaksConvention, reconciletest.Findings.DependsOnTiming}}))
	assert.Empty(t, report.Failures)
	assert.Contains(t, report.String(), "survived ")
	assert.Contains(t, report.String(), "findings left out by SkipFindings: 3 \"does not survive\", 1 \"depends on timing\", 1 \"breaks a convention\"")
}

// If a fault leaves a condition behind, the report names the condition, and does not print both lists of conditions.
func TestReportNamesTheCondition(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			err := ensure(ctx, c, s, owned(c, s, s.Name, nil))
			is := metav1.Condition{Type: "Open", Status: metav1.ConditionTrue, Reason: "Opened", Message: strings.Repeat("open at all hours, ", 20)}
			if err != nil {
				is = metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "Failed", Message: err.Error()}
			}
			if !meta.SetStatusCondition(&s.Status.Conditions, is) {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, firstOf(c.Status().Update(ctx, s), err)
		}
	}, reconciletest.Create(shop()))
	report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{Replay: "internal error at: create ConfigMap default/web #1"}))
	require.Len(t, report.Failures, 1)
	assert.EqualError(t, report.Failures[0].Err, "after \"create Shop default/web\" the state is not the same as without faults:\n"+
		"  Shop default/web: status.conditions[Degraded]: absent without faults, present here\n"+
		"Which of the two is right, the scenario does not say: see Action.Then")
}

// If a value differs between two runs without faults, it is not compared, and the report names it.
func TestReportNamesRandomValues(t *testing.T) {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
			err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(secret), secret)
			if !apierrors.IsNotFound(err) {
				return ctrl.Result{}, err
			}
			secret.Data = map[string][]byte{"password": []byte(rand.Text()), "username": []byte("web")}
			return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret))
		}
	}, reconciletest.Create(shop()))
	report := reconciletest.Explore(t, s)
	assert.Empty(t, report.Failures)
	assert.Equal(t, []string{"Secret default/web: data.password"}, report.Random)
	assert.True(t, strings.HasSuffix(report.String(),
		"\nnot compared, since two runs without faults differ there (a random value, the order of a Go map, or a package variable): Secret default/web: data.password"), report.String())
}

// If a failed run ends in another way when it is repeated, the report says that the operator is not deterministic.
func TestReportNamesVaryingRuns(t *testing.T) {
	var refused atomic.Int64 // creations in all runs together
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			err := ensure(ctx, c, s, owned(c, s, s.Name, nil))
			if apierrors.IsInternalError(err) && refused.Add(1) == 1 {
				err = nil
			}
			return ctrl.Result{}, err
		}
	}, reconciletest.Create(shop()))
	report := reconciletest.ExploreQuietly(t, s)
	require.Len(t, report.Failures, 1)
	assert.True(t, report.Failures[0].Varies)
	assert.Contains(t, report.String(), "\nThe same once more ends otherwise, so the operator is not deterministic")

	report = reconciletest.ExploreQuietly(t, faultyChildren["CreateWithoutAlreadyExists"].scenario(false))
	assert.False(t, report.Failures[0].Varies)
	assert.NotContains(t, report.String(), "deterministic")
}

// If one of two runs without faults fails, the report says that the operator is not deterministic.
func TestReportVaryingWithoutFaults(t *testing.T) {
	var runs atomic.Int64
	s := of(func(*reconciletest.Process) shopFunc {
		fails := runs.Add(1) > 1
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if fails {
				return ctrl.Result{}, errMotto
			}
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
		}
	}, reconciletest.Create(shop()))
	report := reconciletest.ExploreQuietly(t, s)
	require.Len(t, report.Failures, 1)
	assert.Empty(t, report.Failures[0].Faults)
	assert.Equal(t, reconciletest.Findings.DoesNotSucceed, report.Failures[0].Kind)
	assert.ErrorContains(t, report.Failures[0].Err, "of two runs without faults one succeeds, and the other one fails: the operator is not deterministic")
	assert.ErrorContains(t, report.Failures[0].Err, errMotto.Error())
}

// A fault may make an action take longer, so that the operator gets further in the action than without the fault. With
// EachAction that is a failure.
func TestFurtherThanWithoutFaults(t *testing.T) {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if age := time.Since(s.CreationTimestamp.Time); s.Status.Phase == "Old" || age < 20*time.Minute {
				return ctrl.Result{RequeueAfter: 6 * time.Minute}, nil
			}
			return resultOf(6*time.Minute, client.IgnoreNotFound(open(ctx, c, s, "Old")))
		}
	}, painted("red", "blue", "green")...)
	assert.Empty(t, reconciletest.ExploreQuietly(t, s).Failures)
	report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{EachAction: true}))
	if assert.NotEmpty(t, report.Failures) {
		assert.ErrorContains(t, report.Failures[0].Err, `status.phase: nothing without faults, "Old" here`)
	}
}

// If SkipFindings has DoesNotRest, runs go on after such a finding. A process that starts after a fault may then do the work that was
// missing, and that is not a finding.
func TestSkipFindingsGoesOn(t *testing.T) {
	s := faultyWiring["MissingWatch"].scenario(false)
	report := reconciletest.ExploreQuietly(t, s)
	require.Len(t, report.Failures, 1)
	assert.Equal(t, 1, report.Runs, "nothing else can be explored")

	report = reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.DoesNotRest}}))
	assert.Empty(t, report.Failures)
	assert.NotEmpty(t, report.Survived)
	assert.Positive(t, report.Silenced)
	assert.Contains(t, report.String(), ` "does not come to rest"`)

	endless := faultyStatus["HistoryGrows"].scenario(false)
	report = reconciletest.ExploreQuietly(t, with(endless, reconciletest.Options{SkipFindings: []reconciletest.FindingKind{reconciletest.Findings.DoesNotRest}}))
	require.Len(t, report.Failures, 1, "an operator that never becomes quiet cannot be explored")
	assert.Less(t, strings.Count(report.String(), "\n"), 100, "a long trace is cut")
	assert.Contains(t, report.String(), " lines are left out; the page has them all …\n")
}

// Passes that return a delay beside an error have one cause, whatever the error is.
func TestDelayBesideErrorsIsOneCause(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
		return ctrl.Result{RequeueAfter: time.Minute}, ensure(ctx, c, s, owned(c, s, s.Name, nil))
	}))
	assert.Contains(t, report.String(), "breaks a convention: 10\n  10 runs: a pass returns RequeueAfter beside an error\n")
}
