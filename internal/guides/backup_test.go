//go:build !race

// The other files of this package have the build tag too.

package guides

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// SetupRestorable adds the controller of the guide "Backup and restore" to a manager.
func SetupRestorable(mgr ctrl.Manager) error {
	return reconcile.For(mgr,
		reconcile.Named("database", ownedresources.Ensure(
			ownedresources.Build(databasePassword).AdoptRestored().Generate("password", 32),
			ownedresources.Build(databaseStatefulSet).AdoptRestored(),
			ownedresources.Build(archive).AdoptRestored().Retain(func(*Shop) bool { return true }))),
	).Complete()
}

// archive returns a claim that stays when the Shop is deleted.
func archive(s *Shop) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: ownedresources.ObjectMeta(s)}
	claim.Name += "-archive"
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	return claim
}

var planeOfBackups = controlplane.Shared(controlplane.Options{Controllers: true, CRDs: []string{"testdata/shops.yaml"}})

// backup is a namespace whose objects are saved and restored.
type backup struct {
	client.Client
	plane *controlplane.ControlPlane
	shop  *Shop
	saved []client.Object
}

func newBackup(t *testing.T) *backup {
	t.Helper()
	plane := planeOfBackups(t)
	c, err := client.New(plane.Config(), client.Options{Scheme: scheme})
	require.NoError(t, err)
	b := &backup{Client: c, plane: plane, shop: shop()}
	b.shop.Namespace = controlplane.Namespace(t, plane)
	return b
}

// operate runs an operator, and returns a function that stops it.
func (b *backup) operate(t *testing.T, setUp func(ctrl.Manager) error) (stop func()) {
	t.Helper()
	options := reconcile.CacheOptions(b.shop.Namespace)
	mgr, err := reconcile.NewManager(b.plane.Config(), ctrl.Options{
		Scheme: scheme, Cache: options, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	require.NoError(t, setUp(mgr))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); assert.NoError(t, <-ended) })
	t.Cleanup(stop)
	return stop
}

// until waits until the live objects are as they should be.
func (b *backup) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 100*time.Millisecond, what)
}

func (b *backup) read(t *testing.T, obj client.Object) bool {
	t.Helper()
	err := b.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
	require.NoError(t, client.IgnoreNotFound(err))
	return err == nil
}

// save saves objects as a tool for backups does: without what only this API server knows.
func (b *backup) save(t *testing.T, withReferences bool, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		require.True(t, b.read(t, obj), "%T %s", obj, obj.GetName())
		copied := obj.DeepCopyObject().(client.Object)
		copied.SetUID("")
		copied.SetResourceVersion("")
		copied.SetManagedFields(nil)
		copied.SetFinalizers(nil)
		copied.SetCreationTimestamp(metav1.Time{})
		if !withReferences {
			copied.SetOwnerReferences(nil)
		}
		switch copied := copied.(type) {
		case *Shop:
			copied.Status = ShopStatus{}
		case *corev1.PersistentVolumeClaim: // the volume is lost
			copied.Spec.VolumeName, copied.Status = "", corev1.PersistentVolumeClaimStatus{}
			delete(copied.Annotations, "pv.kubernetes.io/bind-completed")
			delete(copied.Annotations, "pv.kubernetes.io/bound-by-controller")
		}
		b.saved = append(b.saved, copied)
	}
}

// lose deletes what was saved.
func (b *backup) lose(t *testing.T) {
	t.Helper()
	for _, obj := range b.saved {
		require.NoError(t, client.IgnoreNotFound(b.Delete(t.Context(), obj.DeepCopyObject().(client.Object), client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	for _, obj := range b.saved {
		b.until(t, obj.GetName()+" is gone", func() bool {
			live := obj.DeepCopyObject().(client.Object)
			if !b.read(t, live) {
				return true
			}
			live.SetFinalizers(nil)                                             // the operator is gone too
			if err := b.Update(t.Context(), live); !apierrors.IsConflict(err) { // a controller may have been faster
				require.NoError(t, client.IgnoreNotFound(err))
			}
			return false
		})
	}
}

// restore creates the saved objects, in this order. As tools for backups do, it skips an object that exists: the controller of StatefulSets
// may have created a claim again before it knew of the deletion.
func (b *backup) restore(t *testing.T) {
	t.Helper()
	for _, obj := range b.saved {
		if err := b.Create(t.Context(), obj); apierrors.IsAlreadyExists(err) {
			require.True(t, b.read(t, obj))
		} else {
			require.NoError(t, err)
		}
	}
}

// TestRestore walks through the guide on a real control plane: the owner, its children, the claims of the StatefulSet, and what is retained.
func TestRestore(t *testing.T) {
	for name, tc := range map[string]struct {
		reason         string
		ownerFirst     bool
		withReferences bool
	}{
		"children first, without references": {"Velero deletes owner references, and restores the kinds in an order of its own.", false, false},
		"owner first, with references":       {"An export that is applied again has them. The collector deletes such a child, so the operator has to be faster.", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackup(t)
			meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: b.shop.Namespace, Name: name} }
			password, database := &corev1.Secret{ObjectMeta: meta("web")}, &appsv1.StatefulSet{ObjectMeta: meta("web")}
			archived, data := &corev1.PersistentVolumeClaim{ObjectMeta: meta("web-archive")}, &corev1.PersistentVolumeClaim{ObjectMeta: meta("data-web-0")}
			children := []client.Object{password, database, archived, data}

			stop := b.operate(t, SetupRestorable)
			require.NoError(t, b.Create(t.Context(), b.shop))
			b.until(t, "all children exist", func() bool {
				return b.read(t, password) && b.read(t, database) && b.read(t, archived) && b.read(t, data)
			})
			stop()
			if tc.ownerFirst {
				b.save(t, tc.withReferences, append([]client.Object{b.shop}, children...)...)
			} else {
				b.save(t, tc.withReferences, append(children, b.shop)...)
			}
			value := string(password.Data["password"])
			b.lose(t)
			if tc.ownerFirst {
				b.operate(t, SetupRestorable)
			}
			b.restore(t)
			if !tc.ownerFirst {
				b.operate(t, SetupRestorable)
			}
			owner := b.shop.DeepCopyObject().(*Shop)
			b.until(t, "the children belong to the restored owner: "+tc.reason, func() bool {
				return b.read(t, owner) && b.read(t, password) && b.read(t, database) && b.read(t, archived) &&
					metav1.IsControlledBy(password, owner) && metav1.IsControlledBy(database, owner) &&
					archived.Labels["opblocks.dev/owner-uid"] == string(owner.UID)
			})
			if !tc.withReferences { // else the collector may have been faster
				require.Equal(t, value, string(password.Data["password"]), "a password that is there is never replaced")
				for _, saved := range b.saved {
					live := saved.DeepCopyObject().(client.Object)
					require.True(t, b.read(t, live), saved.GetName())
					require.Equal(t, saved.GetUID(), live.GetUID(), "%T %s was not created again", saved, saved.GetName())
				}
			}
		})
	}
}

// memoryAccounts are the accounts of an API outside, which no backup of the cluster has.
type memoryAccounts struct {
	mu      sync.Mutex
	byName  map[string]account
	created int
}

func (a *memoryAccounts) Get(_ context.Context, name string) (account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if found, exists := a.byName[name]; exists {
		return found, nil
	}
	return account{}, &apiError{Status: 404}
}

func (a *memoryAccounts) Create(_ context.Context, name string, made account) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.created++
	a.byName[name] = made
	return nil
}

func (a *memoryAccounts) Update(_ context.Context, name string, changed account) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byName[name] = changed
	return nil
}

func (a *memoryAccounts) Delete(_ context.Context, name string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byName, name)
	return nil
}

// SetupRestorableAccounts adds a controller to a manager that finds its accounts again after a restore.
func SetupRestorableAccounts(mgr ctrl.Manager, api accounts) error {
	step := external.New(external.Resource[*Shop, account]{
		Record: func(s *Shop) *external.Record { return &s.Status.Account },
		Key:    ownerOf,
		Observe: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) (account, error) {
			found, err := api.Get(ctx, ref.Key)
			return found, explain(err)
		},
		Adopt: func(s *Shop, observed account) error {
			if observed.Owner == ownerOf(s) { // the mark says whose it was
				return nil
			}
			return external.ErrExists
		},
		Desired: func(_ context.Context, _ client.Client, s *Shop) (account, error) {
			return account{Owner: ownerOf(s)}, nil
		},
		Differs: func(_ external.Reference, observed, desired account) bool { return observed.Owner != desired.Owner },
		Create: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, desired account) (string, error) {
			return "", explain(api.Create(ctx, ref.Key, desired))
		},
		Update: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference, _, desired account) error {
			return explain(api.Update(ctx, ref.Key, desired))
		},
		Delete: func(ctx context.Context, _ client.Client, _ *Shop, ref external.Reference) error {
			return explain(api.Delete(ctx, ref.Key))
		},
	})
	return reconcile.For(mgr, reconcile.Named("account", step).Finalizer("shop.example.com/account")).Complete()
}

// The record of a thing outside is in the status, which a tool for backups deletes. By its mark the thing is found again.
func TestRestoreOfAnAccount(t *testing.T) {
	b := newBackup(t)
	api := &memoryAccounts{byName: map[string]account{}}
	setUp := func(mgr ctrl.Manager) error { return SetupRestorableAccounts(mgr, api) }
	require.NoError(t, b.Create(t.Context(), b.shop))
	stop := b.operate(t, setUp)
	ready := func() bool {
		return b.read(t, b.shop) && b.shop.Status.Account.Key != "" && !b.shop.Status.Account.Pending
	}
	b.until(t, "the account exists", ready)
	stop()
	b.save(t, false, b.shop)
	b.lose(t) // and the account is still there
	b.restore(t)
	b.operate(t, setUp)
	b.until(t, "the account belongs to the restored Shop", ready)
	require.Equal(t, 1, api.created, "it was not created again")
}
