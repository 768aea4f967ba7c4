package operatortest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const (
	// Patience is the timeout for what should happen at once, on a machine that is busy with other tests. It is longer than the
	// longest backoff of an operator, which is a minute.
	Patience = controlplane.Patience
	interval = 50 * time.Millisecond
)

// backoff returns the times between the checks of one condition. Most checks are requests. The times grow from 0.05 s
// to 0.6 s.
func backoff() *wait.Backoff { return &wait.Backoff{Duration: interval, Factor: 1.5, Steps: 6} }

// Eventually waits until all assertions of check hold. The longer it waits, the less often it checks.
func Eventually(t testing.TB, what string, check func(c *assert.CollectT)) {
	t.Helper()
	next, between := time.Duration(0), backoff()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		pause(context.Background(), next)
		next = between.Step()
		check(c)
	}, Patience, time.Millisecond, what)
}

// pause waits for some time, or until the context is cancelled.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Live reads an object, which must exist, from the API server. Nothing of its former content is left.
func Live[T client.Object](t require.TestingT, c client.Reader, obj T) T {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	key := client.ObjectKeyFromObject(obj)
	reflect.ValueOf(obj).Elem().SetZero()
	obj.SetNamespace(key.Namespace)
	obj.SetName(key.Name)
	require.NoError(t, c.Get(context.Background(), key, obj))
	return obj
}

// Change reads an object, edits it, and sends a merge patch, as kubectl edit does.
func Change[T client.Object](t testing.TB, c client.Client, obj T, edit func(T)) {
	t.Helper()
	before := Live(t, c, obj).DeepCopyObject().(T)
	edit(obj)
	require.NoError(t, c.Patch(t.Context(), obj, client.MergeFrom(before)))
}

// StatusOf returns the observed generation of an object, and one of its conditions.
type StatusOf[T client.Object] func(obj T, conditionType string) (observedGeneration int64, condition metav1.Condition)

// AwaitReady waits until the present generation is observed and the condition Ready has the given status. It returns
// the object.
func (status StatusOf[T]) AwaitReady(t testing.TB, c client.Reader, obj T, want metav1.ConditionStatus) T {
	t.Helper()
	Eventually(t, "Ready is "+string(want), func(a *assert.CollectT) {
		generation, ready := status(Live(a, c, obj), conditions.Ready)
		assert.Equal(a, obj.GetGeneration(), generation)
		assert.Equal(a, want, ready.Status, "%s: %s", ready.Reason, ready.Message)
	})
	return obj
}

// AwaitReason waits until a condition has a reason, and returns the condition.
func (status StatusOf[T]) AwaitReason(t testing.TB, c client.Reader, obj T, conditionType, reason string) (condition metav1.Condition) {
	t.Helper()
	Eventually(t, conditionType+" is "+reason, func(a *assert.CollectT) {
		_, condition = status(Live(a, c, obj), conditionType)
		assert.Equal(a, reason, condition.Reason, "%s: %s", condition.Status, condition.Message)
	})
	return condition
}

// Untyped returns an object in the namespace with a generated name and any spec, also one that the Go type does not allow. If
// spec is nil, the object has none.
func (u *User) Untyped(kind schema.GroupVersionKind, spec any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(kind)
	obj.SetNamespace(u.Namespace)
	obj.SetGenerateName("test-")
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

// AssertAdmission asserts that the API server refuses a spec as invalid with an error that contains refused, or that it accepts
// the spec if refused is empty.
func (u *User) AssertAdmission(t *testing.T, kind schema.GroupVersionKind, spec any, refused, reason string) {
	t.Helper()
	err := u.Create(t.Context(), u.Untyped(kind, spec))
	if refused == "" {
		assert.NoError(t, err, reason)
	} else if assert.True(t, apierrors.IsInvalid(err), "%s: %v", reason, err) {
		assert.ErrorContains(t, err, refused, reason)
	}
}
