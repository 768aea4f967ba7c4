package reconciletest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// A write of a field that Heartbeats names is not a finding. Other writes are.
func TestHeartbeats(t *testing.T) {
	s := passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
		s.Status.LastSeen = new(metav1.Now())
		return resultOf(30*time.Second, client.IgnoreNotFound(c.Status().Update(ctx, s)))
	})
	assert.NotEmpty(t, reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{WithoutFaults: true})).Failures)
	s.Heartbeats = map[string][]string{"Shop": {"status.slot"}}
	assert.NotEmpty(t, reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{WithoutFaults: true})).Failures, "another field")
	s.Heartbeats = map[string][]string{"Shop": {"status.lastSeen"}}
	report := reconciletest.ExploreQuietly(t, s)
	assert.Empty(t, report.Failures, report.String())
	assert.NotEmpty(t, report.Survived)
}

// An exploration leaves half of the time to the tests after it, unless it is the only test or has a budget.
func TestShareOf(t *testing.T) {
	start := time.Date(2030, time.January, 1, 12, 0, 0, 0, time.UTC)
	deadline := start.Add(10 * time.Minute)
	assert.Equal(t, start.Add(5*time.Minute), reconciletest.ShareOf(start, deadline, false))
	assert.Equal(t, deadline, reconciletest.ShareOf(start, deadline, true), "it is alone, or has a budget")
	assert.Zero(t, reconciletest.ShareOf(start, time.Time{}, false), "there is no deadline")
	assert.Equal(t, "^TestA$/^b$", reconciletest.Only(strings.Join([]string{"TestA", "b"}, "/")))
}

// An operator has two fields that it writes again and again, and Heartbeats names one. The report shows the other one.
func TestReportNamesTheOtherHeartbeat(t *testing.T) {
	s := passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
		s.Status.Phase, s.Status.LastSeen = "Open", new(metav1.Now())
		if err := c.Status().Update(ctx, s); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		seen := config("seen")
		_, err := controllerutil.CreateOrUpdate(ctx, c, seen, func() error {
			seen.Annotations = map[string]string{"example.com/seen": time.Now().Format(time.RFC3339)}
			return nil
		})
		return ctrl.Result{}, err
	})
	s.Heartbeats = map[string][]string{"Shop": {"status.lastSeen"}}
	report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{WithoutFaults: true}))
	require.NotEmpty(t, report.Failures)
	assert.Regexp(t, `(?s)one more pass still had to update ConfigMap default/seen:\n  metadata.annotations.*Heartbeats: map\[string\]\[\]string\{"ConfigMap"`, report.Failures[0].Err.Error())
	assert.NotContains(t, report.Failures[0].Err.Error(), "status.phase")
}
