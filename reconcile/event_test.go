package reconcile

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// told is a recorder that keeps what it is told.
type told struct{ events []sent }

type sent struct{ Type, Reason, Action, Note string }

func (r *told) Eventf(_, _ runtime.Object, eventType, reason, action, _ string, args ...any) {
	r.events = append(r.events, sent{eventType, reason, action, args[0].(string)})
}

func (r *told) take() []sent {
	defer func() { r.events = nil }()
	return r.events
}

func TestEvents(t *testing.T) {
	boom := errors.New("boom")
	ready := sent{"Normal", "Ready", "Reconcile", "Everything is as wanted"}
	failed := sent{"Warning", "Failed", "MyStep", "boom"}
	conflict := apierrors.NewConflict(resource, "x", errors.New("modified"))
	tests := map[string]struct {
		reason string
		passes []error
		want   []sent
	}{
		"ready":               {"once, not with each pass", []error{nil, nil, nil}, []sent{ready}},
		"ready in own words":  {"as its condition says", []error{Success("Provisioned", 0, "The account is there.")}, []sent{{"Normal", "Ready", "Reconcile", "The account is there."}}},
		"fails":               {"once, not with each pass: the conditions show that it goes on", []error{boom, boom, boom}, []sent{failed}},
		"fails for something": {"another error is news", []error{boom, errors.New("bang")}, []sent{failed, {"Warning", "Failed", "MyStep", "bang"}}},
		"heals":               {"and fails again, which is news too", []error{boom, nil, boom, nil}, []sent{failed, ready, failed, ready}},
		"waits":               {"nothing is wrong", []error{Wait("X", time.Minute, "x"), nil}, []sent{ready}},
		"terminal":            {"somebody has to do something", []error{Stalled("BadName", boom), Stalled("BadName", boom)}, []sent{{"Warning", "BadName", "MyStep", "boom"}}},
		"conflict":            {"no failure", []error{conflict, nil}, []sent{ready}},
		"conflict in between": {"the same failure still", []error{boom, conflict, boom}, []sent{failed}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pass, recorder := 0, &told{}
			h := newHarness(t, interceptor.Funcs{}, Named("my-step", Func(func(context.Context, client.Client, *budget) error {
				pass++
				return tc.passes[pass-1]
			})))
			h.recorder = recorder
			for range tc.passes {
				h.pass(t)
			}
			if diff := cmp.Diff(tc.want, recorder.events); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

// Ready is told of when it is written.
func TestNoEventForAStatusThatIsNotWritten(t *testing.T) {
	fail, recorder := true, &told{}
	h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if fail {
			return apierrors.NewConflict(resource, "a", errors.New("modified"))
		}
		return c.SubResource(sub).Patch(ctx, obj, p, opts...)
	}}, Named("one", giving(nil)))
	h.recorder = recorder
	h.pass(t)
	require.Empty(t, recorder.take())
	fail = false
	h.pass(t)
	require.Len(t, recorder.take(), 1)
}

func TestNoteFitsIntoAnEvent(t *testing.T) {
	tests := map[string]struct{ reason, message string }{
		"as long as it may be": {"whole", strings.Repeat("x", 1024)},
		"too long":             {"cut, or the API server refuses the event", strings.Repeat("x", 1024+1)},
		"too long, in Chinese": {"no half character is left", strings.Repeat("错", 400)},
		"not even text":        {"replaced, since protobuf has no such strings", "x\xff\xfe"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			recorder := &told{}
			h := newHarness(t, interceptor.Funcs{}, Named("one", giving(errors.New(tc.message))))
			h.recorder = recorder
			h.pass(t)
			note := recorder.take()[0].Note
			require.LessOrEqual(t, len(note), 1024, tc.reason)
			require.True(t, utf8.ValidString(note), tc.reason)
			require.Equal(t, len(tc.message) > 1024, strings.HasSuffix(note, "…"), tc.reason)
			h.pass(t)
			require.Equal(t, 1, h.writes, "nor does it change with each pass")
		})
	}
}

func TestActions(t *testing.T) {
	for name, want := range map[string]string{
		"workload": "Workload", "my-step": "MyStep", "two words": "TwoWords", "v2": "V2", "öl": "Öl", "…": "Reconcile", "KeepsCase": "KeepsCase",
	} {
		require.Equal(t, want, camelCase(name))
	}
}

// The values of Secrets in a pass that goes wrong in every way: they are in no condition, log, event or metric.
func TestCanary(t *testing.T) {
	recorder, log := &told{}, &logs{}
	var b strings.Builder
	way := 0
	ways := []func(value Sensitive) error{
		func(value Sensitive) error { return errors.Join(errors.New("login: " + value.String())) },
		func(value Sensitive) error { return Wait("X", 0, "login with %s", value) },
		func(value Sensitive) error {
			return Wait("X", 0, "login with %+v %x %d", []Sensitive{value}, value, value)
		},
		func(value Sensitive) error { panic(value) },
		func(value Sensitive) error { panic(struct{ Password Sensitive }{value}) },
		func(Sensitive) error { return nil },
	}
	h := newHarness(t, interceptor.Funcs{}, Named("account", Func(func(ctx context.Context, c client.Client, b *budget) error {
		value, _, err := ReadSecret(ctx, c, b.Namespace, selector("db", "password"))
		if err != nil {
			return err
		}
		return ways[way](value)
	}), Reporting("Account"), Referencing(&corev1.Secret{}, nothing)))
	registry := h.withMetrics(t)
	h.recorder = recorder
	require.NoError(t, h.client.Create(t.Context(), databaseSecret()))
	for ; way < len(ways); way++ {
		_, err := h.Reconcile(log.into(t.Context()), request)
		require.NoError(t, err)
		for _, c := range conditionsOf(h.status(t)) {
			b.WriteString(c.Message + c.Reason)
		}
	}
	for _, e := range recorder.take() {
		b.WriteString(e.Note + e.Reason)
	}
	b.WriteString(strings.Join(log.lines, "\n"))
	b.WriteString(registry.text(t))
	require.Contains(t, b.String(), hidden)
	requireHidden(t, b.String())
}
