//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package ownedresources

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// usersContent returns an input that reads the content of a user's Secret. If the Secret does not exist, the value is
// empty.
func usersContent(reads ...Read[*Shop]) *Input[*Shop, string] {
	return From(func(ctx context.Context, r client.Reader, owner *Shop) (string, error) {
		var read corev1.Secret
		err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "users"}, &read)
		return string(read.Data["content"]), client.IgnoreNotFound(err)
	}, reads...)
}

func usersSecret(*Shop) []types.NamespacedName { return []types.NamespacedName{{Name: "users"}} }

// labelOfMetadata reads a label of a user's Secret from its metadata. If the label is missing, it returns an empty text.
func labelOfMetadata(ctx context.Context, r client.Reader, owner *Shop) (string, error) {
	m := secretMetadata()
	err := r.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "users"}, m)
	return m.Labels["content"], client.IgnoreNotFound(err)
}

func secretMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}

// copyInto builds a Secret that contains the value of an input.
func copyInto(name string, input *Input[*Shop, string], options ...childOption) *Child[*Shop, *corev1.Secret] {
	return with(BuildFrom(input, func(_ *Shop, content string) (*corev1.Secret, error) {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"copy": []byte(content)}}, nil
	}), options...)
}

// showRead writes into the status what a step has read.
func showRead(owner *Shop, content string) {
	meta.SetStatusCondition(&owner.Status.Conditions, metav1.Condition{Type: "Read", Status: metav1.ConditionTrue, Reason: "Read", Message: content})
}

// A cache may have two informers of one kind: one of whole objects and one of metadata. Each may be behind the other. An input
// or a step never reads an older version of an object than the event that triggered the reconcile had, so no change is missed.
// Nothing is read yet when the shop is created: TestChildrenSurviveEveryFault tries the faults there.
func TestTwoInformersOfAKind(t *testing.T) {
	byName := func(_ context.Context, _ client.Reader, m *metav1.PartialObjectMetadata) []ctrl.Request {
		if m.Name != "users" {
			return nil
		}
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: "web"}}}
	}
	whole := reconcile.Func(func(ctx context.Context, c client.Client, owner *Shop) error {
		var read corev1.Secret
		err := c.Get(ctx, types.NamespacedName{Namespace: owner.Namespace, Name: "users"}, &read)
		showRead(owner, string(read.Data["content"]))
		return client.IgnoreNotFound(err)
	})
	part := reconcile.Func(func(ctx context.Context, c client.Client, owner *Shop) error {
		label, err := labelOfMetadata(ctx, c, owner)
		showRead(owner, label)
		return err
	})
	children := func(children ...AnyChild[*Shop]) reconcile.NamedStep[*Shop] {
		return reconcile.Named("children", Ensure(children...))
	}
	built := func() *Child[*Shop, *corev1.Secret] {
		return Build(func(*Shop) *corev1.Secret { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "built"}} })
	}
	reads := Reads(&corev1.Secret{}, usersSecret)
	cached := ReadsCached(&corev1.Secret{}, usersSecret)
	tests := map[string]struct {
		reason string
		steps  func() []reconcile.NamedStep[*Shop]
	}{
		"BuiltAndReadWhole": {"The set that reads a Secret also builds Secrets.", func() []reconcile.NamedStep[*Shop] {
			return []reconcile.NamedStep[*Shop]{children(copyInto("copy", usersContent(reads)))}
		}},
		"BuiltIfServedAndReadWhole": {"The events of the kind come from a watch that ends when the kind is not served.", func() []reconcile.NamedStep[*Shop] {
			return []reconcile.NamedStep[*Shop]{children(copyInto("copy", usersContent(reads), withIfServed()))}
		}},
		"BuiltAndReadAsMetadata": {"Metadata is read of a kind that is built.", func() []reconcile.NamedStep[*Shop] {
			return []reconcile.NamedStep[*Shop]{children(copyInto("copy", From(labelOfMetadata, reads)))}
		}},
		"CachedAndReadAsMetadata": {"The whole objects are watched, and the metadata is read.", func() []reconcile.NamedStep[*Shop] {
			return []reconcile.NamedStep[*Shop]{children(BuildFrom(From(labelOfMetadata, cached),
				func(owner *Shop, content string) (*corev1.ConfigMap, error) {
					return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "copy"}, Data: map[string]string{"copy": content}}, nil
				}))}
		}},
		"StepReadsWhole": {"A step watches the metadata of what another step builds, and reads the whole object.", func() []reconcile.NamedStep[*Shop] {
			return []reconcile.NamedStep[*Shop]{children(built()), reconcile.Named("read", whole, reconcile.Watching(secretMetadata(), byName))}
		}},
		"StepReadsWhatIsMetadata": {"A step watches the metadata, and reads the whole object.", func() []reconcile.NamedStep[*Shop] {
			return []reconcile.NamedStep[*Shop]{reconcile.Named("read", whole, reconcile.Watching(secretMetadata(), byName))}
		}},
		"StepReadsMetadata": {"A step references what another step builds, and reads the metadata.", func() []reconcile.NamedStep[*Shop] {
			return []reconcile.NamedStep[*Shop]{children(built()), reconcile.Named("read", part).Reads(&corev1.Secret{}, usersSecret)}
		}},
	}
	users := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users", Labels: map[string]string{"content": "a"}}, Data: map[string][]byte{"content": []byte("a")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			reconciletest.Explore(t, withShops(reconciletest.Scenario{
				Start: startSteps(test.steps),
				Actions: []reconciletest.Action{
					reconciletest.Create(newShop()).WithoutFaults(),
					reconciletest.Create(users),
					reconciletest.Change(users, func(s *corev1.Secret) {
						s.Labels["content"], s.Data = "ab", map[string][]byte{"content": []byte("ab")}
					}),
					reconciletest.Delete(users),
					reconciletest.Create(users),
				},
			}))
		})
	}
}

// What TestTwoInformersOfAKind proves also holds for a set in a reconciler that the user has written.
func TestTwoInformersInAReconcilerOfOnesOwn(t *testing.T) {
	users := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "users"}, Data: map[string][]byte{"content": []byte("a")}}
	reconciletest.Explore(t, withShops(reconciletest.Scenario{
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager()
			set := Ensure(
				copyInto("copy", usersContent(Reads(&corev1.Secret{}, usersSecret))),
				copyInto("versions", VersionHash(ReadsCached(&corev1.Secret{}, usersSecret))).
					KeepWhileMissing(func(_, _ *corev1.Secret) {}))
			b := ctrl.NewControllerManagedBy(mgr).For(&Shop{})
			if err := set.SetupWithBuilder(mgr, b); err != nil {
				return err
			}
			return b.Complete(ctrlreconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
				var owner Shop
				if err := mgr.GetClient().Get(ctx, request.NamespacedName, &owner); err != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
				err := set.Reconcile(ctx, mgr.GetClient(), &owner)
				if _, waits := errors.AsType[*WaitingError](err); waits {
					return ctrl.Result{}, nil
				}
				return ctrl.Result{}, err
			}))
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(newShop()).WithoutFaults(),
			reconciletest.Create(users),
			reconciletest.Change(users, func(s *corev1.Secret) { s.Data = map[string][]byte{"content": []byte("ab")} }),
			reconciletest.Delete(users),
			reconciletest.Create(users),
		},
	}))
}
