package reconciletest_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

const roleFinalizer = "example.com/role"

// elsewhere returns a scenario of an operator that keeps an object outside of the namespace of its shop. It deletes the object before it
// removes the finalizer of the shop. If the object has no UID, write creates it. Otherwise write updates it.
func elsewhere[T client.Object](empty T, name func(*Shop) client.ObjectKey, write func(ctx context.Context, c client.Client, s *Shop, is T) error, actions ...reconciletest.Action) reconciletest.Scenario {
	return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		b.For(&Shop{})
		return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil { // the cache of a new process may show the past
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			is := empty.DeepCopyObject().(T)
			is.SetNamespace(name(s).Namespace)
			is.SetName(name(s).Name)
			if s.DeletionTimestamp != nil {
				if !controllerutil.ContainsFinalizer(s, roleFinalizer) {
					return ctrl.Result{}, nil
				}
				if err := c.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
					return ctrl.Result{}, err
				}
				controllerutil.RemoveFinalizer(s, roleFinalizer)
				return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
			}
			if controllerutil.AddFinalizer(s, roleFinalizer) {
				return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, s))
			}
			if err := p.APIReader().Get(ctx, name(s), is); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, write(ctx, c, s, is)
		}}
	}, actions...)
}

// readsIn returns rules that allow reading the ConfigMap with the shop's motto.
func readsIn(s *Shop) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{s.Namespace + "-" + s.Name}}}
}

// writeRole creates the role, or updates its rules.
func writeRole(ctx context.Context, c client.Client, s *Shop, is *rbacv1.ClusterRole) error {
	if is.UID == "" {
		is.Rules = readsIn(s)
		return c.Create(ctx, is)
	}
	if reflect.DeepEqual(is.Rules, readsIn(s)) {
		return nil
	}
	is.Rules = readsIn(s)
	return c.Update(ctx, is)
}

// writeOnce creates the object. All shops want the same one.
func writeOnce(ctx context.Context, c client.Client, _ *Shop, is *corev1.ConfigMap) error {
	if is.UID != "" {
		return nil
	}
	return c.Create(ctx, is)
}

func ofShop(s *Shop) client.ObjectKey { return client.ObjectKey{Name: "shop-" + s.Name} }

func ofNamespaceAndShop(s *Shop) client.ObjectKey {
	return client.ObjectKey{Name: s.Namespace + "-shop-" + s.Name}
}

func inSystem(name func(*Shop) client.ObjectKey) func(*Shop) client.ObjectKey {
	return func(s *Shop) client.ObjectKey {
		return client.ObjectKey{Namespace: "shops-system", Name: name(s).Name}
	}
}

// faultyShared are operators in which two shops of one name share an object.
var faultyShared = map[string]faulty{
	"SharesClusterRole": {
		reason: "two shops of one name in two namespaces overwrite one ClusterRole in turn",
		scenario: func(sound bool) reconciletest.Scenario {
			name := ofShop
			if sound {
				name = ofNamespaceAndShop
			}
			return elsewhere(&rbacv1.ClusterRole{}, name, writeRole, createAndDelete...)
		},
		kind: reconciletest.Findings.ChangesForeign,
		says: []string{"It changes what is not its own, without any fault.", "share what the operator creates: ClusterRole shop-web\n", "Let the name have the namespace in it"},
	},
	"DeletesTheObjectOfTheOther": {
		reason: "two shops of one name have one ConfigMap in a namespace of the operator, and the deletion of the first shop deletes it",
		scenario: func(sound bool) reconciletest.Scenario {
			name := inSystem(ofShop)
			if sound {
				name = inSystem(ofNamespaceAndShop)
			}
			s := elsewhere(&corev1.ConfigMap{}, name, writeOnce, createAndDelete...)
			s.Objects = []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shops-system"}}}
			return s
		},
		kind: reconciletest.Findings.ChangesForeign,
		says: []string{"ConfigMap shops-system/shop-web"},
	},
}

// These operators also have an object outside of the namespace of their shop, and do it correctly.
func TestSharesWell(t *testing.T) {
	lines := map[string]struct {
		reason   string
		scenario reconciletest.Scenario
	}{
		"Refuses": {"the operator writes no object that has another owner", elsewhere(&rbacv1.ClusterRole{}, ofShop, func(ctx context.Context, c client.Client, s *Shop, is *rbacv1.ClusterRole) error {
			if is.UID != "" && is.Labels["shop"] != s.Namespace {
				return errors.New("the name of the role is taken by a shop in another namespace")
			}
			is.Labels = map[string]string{"shop": s.Namespace}
			return writeRole(ctx, c, s, is)
		}, reconciletest.Create(shop()))},
		"Named": {"the user names the object, and has given both shops the same name", elsewhere(&rbacv1.ClusterRole{}, func(s *Shop) client.ObjectKey { return client.ObjectKey{Name: s.Spec.Motto} },
			writeRole, reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = "readers" })), reconciletest.Delete(shop()))},
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			report := reconciletest.Explore(t, with(line.scenario, reconciletest.Options{WithoutFaults: true}))
			assert.Empty(t, report.Failures, line.reason)
		})
	}
}
