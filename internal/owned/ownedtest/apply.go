package ownedtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// Option sets an option of a child.
type Option = func(*owned.Options)

// Apply applies want as a child of the owner. It first sets the count of requests to zero.
func (s *Server) Apply(t *testing.T, want client.Object, options ...Option) (apply.Result, error) {
	t.Helper()
	o, child := s.declare(t, want, options)
	s.Requests.Sent()
	return One(t.Context(), s.Applier, o, child)
}

// One creates or applies one object, if needed.
func One(ctx context.Context, a *apply.Applier, o *owned.Owner, child owned.Declared) (apply.Result, error) {
	results, err := apply.All(ctx, a, o, []owned.Declared{child})
	return results[0], err
}

// MustApply does the same as Apply, and requires that it succeeds.
func (s *Server) MustApply(t *testing.T, want client.Object, options ...Option) apply.Result {
	t.Helper()
	result, err := s.Apply(t, want, options...)
	require.NoError(t, err)
	return result
}

// Expect applies want, and requires that Apply reports this operation. It also requires that exactly the requests in sent are sent, after
// one read that a cache would answer. It returns the live object.
func (s *Server) Expect(t *testing.T, want client.Object, op apply.Operation, sent ...string) client.Object {
	t.Helper()
	result := s.MustApply(t, want)
	require.Equal(t, op, result.Operation)
	got := s.Requests.Sent()
	require.NotEmpty(t, got, "the read of a cache")
	require.Equal(t, append([]string{}, sent...), slices.Clip(got[1:]))
	return result.Object
}

// Settled requires that applying want sends only one read.
func (s *Server) Settled(t *testing.T, want client.Object) {
	t.Helper()
	s.Expect(t, want, apply.Unchanged)
}

// Diff returns what Apply would change.
func (s *Server) Diff(t *testing.T, want client.Object, options ...Option) (preview.Change, error) {
	t.Helper()
	o, child := s.declare(t, want, options)
	return apply.New().Previews().Diff(t.Context(), o, child)
}

func (s *Server) declare(t *testing.T, want client.Object, options []Option) (*owned.Owner, owned.Declared) {
	t.Helper()
	o := s.OwnerOf(t)
	children, err := s.Applier.Declare(o, []client.Object{want})
	require.NoError(t, err)
	for _, option := range options {
		option(children[0].Options)
	}
	return o, children[0]
}

// ReasonOf returns the reason of a [*owned.WaitingError].
func ReasonOf(wait *owned.WaitingError) string {
	reason, _ := wait.Waiting()
	return reason
}

// DelayOf returns the delay before the next reconcile that a [*owned.WaitingError] asks for. It returns 0 if the error asks for none.
func DelayOf(wait *owned.WaitingError) time.Duration {
	_, after := wait.Waiting()
	return after
}

// RequireWaits requires that err is a [*owned.WaitingError] with this reason, and with these parts in its message.
func RequireWaits(t *testing.T, err error, reason string, messages ...string) {
	t.Helper()
	var wait *owned.WaitingError
	require.ErrorAs(t, err, &wait)
	require.Equal(t, reason, ReasonOf(wait))
	for _, message := range messages {
		require.ErrorContains(t, err, message)
	}
}

// Shown returns the series of a metric, each as "label,label=value".
func Shown(t *testing.T, m *report.Metrics, name string) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, m.Register(registry))
	families, err := registry.Gather()
	require.NoError(t, err)
	var all []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() != name {
				continue
			}
			var labels []string
			for _, l := range metric.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			all = append(all, fmt.Sprintf("%s=%v", strings.Join(labels, ","), value))
		}
	}
	slices.Sort(all)
	return all
}
