package reconciletest_test

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

const entryFinalizer = "example.com/entry"

// enters returns a scenario of an operator that adds an entry to an object of others, and takes it back only if it is sound.
func enters[T client.Object](sound bool, shared T, add, remove func(shared T, s *Shop)) reconciletest.Scenario {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			is := shared.DeepCopyObject().(T)
			if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil { // the cache of a new process may show the past
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(shared), is); err != nil {
				return ctrl.Result{}, err
			}
			before := is.DeepCopyObject().(T)
			if s.DeletionTimestamp == nil {
				if controllerutil.AddFinalizer(s, entryFinalizer) {
					return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
				}
				add(is, s)
				return ctrl.Result{}, patchIfChanged(ctx, c, before, is)
			}
			if !controllerutil.ContainsFinalizer(s, entryFinalizer) {
				return ctrl.Result{}, nil
			}
			if sound {
				if remove(is, s); patchIfChanged(ctx, c, before, is) != nil {
					return ctrl.Result{Requeue: true}, nil //nolint:staticcheck // reconcilers still use it
				}
			}
			controllerutil.RemoveFinalizer(s, entryFinalizer)
			return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
		}
	}, createAndDelete...)
	s.Objects = []client.Object{shared}
	return s
}

// patchIfChanged writes what differs between before and after. The patch fails if the object has changed since it was read.
func patchIfChanged(ctx context.Context, c client.Client, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if data, err := patch.Data(after); err != nil || isEmptyPatch(data, before) {
		return err
	}
	return c.Patch(ctx, after, patch)
}

func isEmptyPatch(data []byte, of client.Object) bool {
	return string(data) == `{"metadata":{"resourceVersion":"`+of.GetResourceVersion()+`"}}`
}

// faultyEntries are operators that leave an entry in an object of others.
var faultyEntries = map[string]faulty{
	"LeavesKey": {
		reason: "a key of a shared ConfigMap stays when its shop is gone",
		scenario: func(sound bool) reconciletest.Scenario {
			shared := config("all-shops")
			shared.Data = map[string]string{"title": "all shops"}
			return enters(sound, shared, func(is *corev1.ConfigMap, s *Shop) { is.Data[s.Name] = "open" }, func(is *corev1.ConfigMap, s *Shop) { delete(is.Data, s.Name) })
		},
		kind: reconciletest.Findings.LeavesEntry,
		says: []string{"It leaves an entry in an object of somebody else, without any fault.", "ConfigMap default/all-shops: data.web\n", "Remove it before the finalizer is removed"},
	},
	"LeavesSubject": {
		reason: "a subject of a shared RoleBinding stays",
		scenario: func(sound bool) reconciletest.Scenario {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "readers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
				Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "ann"}},
			}
			isShop := func(s *Shop) func(rbacv1.Subject) bool {
				return func(subject rbacv1.Subject) bool {
					return subject.Kind == rbacv1.ServiceAccountKind && subject.Name == s.Name
				}
			}
			return enters(sound, binding, func(is *rbacv1.RoleBinding, s *Shop) {
				if !slices.ContainsFunc(is.Subjects, isShop(s)) {
					is.Subjects = append(is.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: s.Name})
				}
			}, func(is *rbacv1.RoleBinding, s *Shop) { is.Subjects = slices.DeleteFunc(is.Subjects, isShop(s)) })
		},
		kind: reconciletest.Findings.LeavesEntry,
		says: []string{"RoleBinding default/readers: subjects"},
	},
	"LeavesFinalizer": {
		reason: "a finalizer on an object of others stays, so nobody can delete it any more",
		scenario: func(sound bool) reconciletest.Scenario {
			return enters(sound, config("all-shops"), func(is *corev1.ConfigMap, s *Shop) { controllerutil.AddFinalizer(is, "example.com/"+s.Name) },
				func(is *corev1.ConfigMap, s *Shop) { controllerutil.RemoveFinalizer(is, "example.com/"+s.Name) })
		},
		kind: reconciletest.Findings.LeavesEntry,
		says: []string{"ConfigMap default/all-shops: metadata.finalizers"},
	},
}
