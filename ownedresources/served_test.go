package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/set"
)

// If a child is left out because its kind is not served, a child that is built from its live object is built from
// nil. Existing objects of the kind stay.
func TestIfServedWithoutManager(t *testing.T) {
	served := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap"), served} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}
	var listed []string
	c := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(owner).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			listed = append(listed, strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1."))
			return c.List(ctx, list, options...)
		},
	}).Build()
	var given []*policyv1.PodDisruptionBudget
	left := Build(func(*Shop) *policyv1.PodDisruptionBudget {
		t.Error("a child is built whose kind is not served")
		return nil
	}).IfServed()
	follower := BuildFrom(left.Live(), func(_ *Shop, live *policyv1.PodDisruptionBudget) (*configMap, error) {
		given = append(given, live)
		return &configMap{ObjectMeta: metav1.ObjectMeta{Name: "follower"}}, nil
	})
	secret := Build(func(*Shop) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "secret"}}
	}).IfServed()
	require.NoError(t, Ensure(follower, left, secret).Reconcile(t.Context(), c, owner))
	require.Equal(t, []*policyv1.PodDisruptionBudget{nil}, given)
	require.NoError(t, c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "follower"}, &configMap{}))
	require.NoError(t, c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "secret"}, &corev1.Secret{}))
	require.Equal(t, []string{"ConfigMapList", "SecretList"}, listed, "a list of a kind that is not served would wait for ever")
}

// flickering is a RESTMapper that knows the kind Secret at some calls, and does not know it at others.
type flickering struct {
	meta.RESTMapper
	known []bool
}

func (m *flickering) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if gk.Kind == "Secret" && len(m.known) > 0 {
		known := m.known[0]
		if m.known = m.known[1:]; !known {
			return nil, &meta.NoKindMatchError{GroupKind: gk}
		}
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

// If the kind disappears after the children were written and before they are pruned, a later reconcile lists them to
// prune them.
func TestIfServedWhilePruning(t *testing.T) {
	known := meta.NewDefaultRESTMapper(nil)
	known.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper := &flickering{RESTMapper: known}
	lists := 0
	c := fake.NewClientBuilder().WithRESTMapper(mapper).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			return c.List(ctx, list, options...)
		},
	}).Build()
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}
	set := Ensure(Build(func(*Shop) *corev1.Secret { return nil }).IfServed())
	mapper.known = []bool{true, false}
	require.NoError(t, set.Reconcile(t.Context(), c, owner))
	require.Zero(t, lists)
	require.NoError(t, set.Reconcile(t.Context(), c, owner))
	require.Equal(t, 1, lists)
	require.NoError(t, set.Reconcile(t.Context(), c, owner))
	require.Equal(t, 1, lists, "nothing has changed")
}

func TestServedCondition(t *testing.T) {
	monitors := Build(constant("a", "")).IfServed("Monitoring")
	rules := Build(constant("b", "")).IfServed("Monitoring")
	others := Build(constant("c", "")).IfServed("Other")
	k := &owned.Kind{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Monitor"}}
	tests := map[string]struct {
		reason string
		states [2]set.ChildState
		want   metav1.Condition
	}{
		"Served": {
			reason: "All are served and ready.",
			states: [2]set.ChildState{{Served: set.ServedNow}, {Served: set.ServedNow}},
			want:   metav1.Condition{Status: metav1.ConditionTrue, Reason: "KindServed"},
		},
		"BothMissing": {
			reason: "The same message is not repeated.",
			states: [2]set.ChildState{{Served: set.NotServed}, {Served: set.NotServed}},
			want:   metav1.Condition{Status: metav1.ConditionFalse, Reason: "KindNotServed", Message: "Monitor of example.com/v1 is not served by the API server, so it is left out"},
		},
		"OneMissing": {
			reason: "What is left out comes first.",
			states: [2]set.ChildState{{Served: set.ServedNow, NotReady: "Monitor a"}, {Served: set.NotServed}},
			want:   metav1.Condition{Status: metav1.ConditionFalse, Reason: "KindNotServed", Message: "Monitor of example.com/v1 is not served by the API server, so it is left out; Monitor a is not ready"},
		},
		"NotWatched": {
			reason: "A missing permission shows here.",
			states: [2]set.ChildState{{Served: set.ServedNow}, {Served: set.NotWatched}},
			want:   metav1.Condition{Status: metav1.ConditionFalse, Reason: "KindNotWatched", Message: "Monitor of example.com/v1 is left out until its watch has started, for which the operator needs get, list and watch"},
		},
		"NotReady": {
			reason: "A child that is served counts as any other.",
			states: [2]set.ChildState{{Served: set.ServedNow, NotReady: "Monitor a"}, {Served: set.ServedNow}},
			want:   metav1.Condition{Status: metav1.ConditionFalse, Reason: "NotReady", Message: "Monitor a is not ready"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := set.Reconciliation{
				Set: Ensure(monitors, rules, others).set, Kinds: []*owned.Kind{k, k, k},
				States: append(tc.states[:], set.ChildState{Served: set.NotServed}),
			}
			tc.want.Type = "Monitoring"
			require.Equal(t, tc.want, r.ServedCondition("Monitoring"), tc.reason)
		})
	}
	require.Equal(t, []string{"Monitoring", "Other"}, Ensure(others, monitors, rules).set.ConditionTypes())
}

// A write may be refused because its kind is not served any more. Then the error is a WaitingError.
func TestCheckRefusal(t *testing.T) {
	set := Ensure(Build(constant("a", "")).IfServed())
	d := &owned.Declared{Kind: &owned.Kind{GVK: schema.GroupVersionKind{Kind: "Monitor"}}, Object: &configMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	resource := schema.GroupResource{Group: "example.com", Resource: "monitors"}
	unknown := apierrors.NewGenericServerResponse(404, "post", resource, "", "404 page not found", 0, true)
	tests := map[string]struct {
		reason string
		err    error
		waits  bool
	}{
		"UnknownResource":  {"The API server has no such resource.", unknown, true},
		"NoMatch":          {"The RESTMapper has noticed.", &meta.NoKindMatchError{}, true},
		"MethodNotAllowed": {"The definition is being deleted.", apierrors.NewMethodNotSupported(resource, "create"), true},
		"NamespaceMissing": {"The kind is served, and something else is missing.", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default"), false},
		"Invalid":          {"The object is wrong.", apierrors.NewInvalid(schema.GroupKind{}, "a", nil), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := set.set.Served.CheckRefusal(d, tc.err)
			if !tc.waits {
				require.Equal(t, tc.err, err, tc.reason)
				return
			}
			var wait *owned.WaitingError
			require.ErrorAs(t, err, &wait, tc.reason)
			reason, after := wait.Waiting()
			require.Equal(t, "KindNotServed", reason)
			require.Equal(t, 5*time.Second, after)
			require.True(t, strings.HasPrefix(wait.Error(), "Monitor a: its kind is not served any more: "), wait.Error())
		})
	}
}

// If discovery fails, it is unknown whether the kind of a child is served. Then the children that come after that child are not created.
func TestIfServedWhenDiscoveryFails(t *testing.T) {
	known := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "ConfigMap"} {
		known.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	broken := errors.New("discovery is down")
	c := fake.NewClientBuilder().WithRESTMapper(failing{known, broken}).Build()
	owner := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}
	first := Build(func(*Shop) *corev1.Secret { return nil }).IfServed()
	require.ErrorIs(t, Ensure(first, Build(constant("after", "")).After(first)).Reconcile(t.Context(), c, owner), broken)
	err := c.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "after"}, &configMap{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}

// failing is a RESTMapper that fails for Secrets.
type failing struct {
	meta.RESTMapper
	err error
}

func (m failing) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if gk.Kind == "Secret" {
		return nil, m.err
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}
