package test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
	"github.com/opblocks/opblocks/reconcile/storageversion"
)

const (
	baseFile   = "../config/crd/bases/cache.example.com_memcacheds.yaml"
	formerFile = "testdata/crd_v1alpha1_only.yaml"
	crdName    = "memcacheds.cache.example.com"
)

var (
	versionsScheme = operatortest.NewScheme(cachev1.AddToScheme, cachev1alpha1.AddToScheme, apiextensionsv1.AddToScheme)

	// formerScheme has the type of v1 as v1alpha1, for the operator that knew v1alpha1 alone. The specs of this test mean the same in both.
	formerScheme = operatortest.NewScheme(func(s *runtime.Scheme) error {
		s.AddKnownTypes(cachev1alpha1.GroupVersion, &cachev1.Memcached{}, &cachev1.MemcachedList{})
		metav1.AddToGroupVersion(s, cachev1alpha1.GroupVersion)
		return nil
	})
)

// withoutMigration is a cluster that does not migrate what is stored, as clusters before Kubernetes 1.37.
var withoutMigration = controlplane.Options{APIServerArgs: []string{"--runtime-config=storagemigration.k8s.io/v1=false"}}

// TestVersions upgrades from the operator that knew v1alpha1 alone to the one that stores v1, until v1alpha1 is removed, and back. Nothing of
// the objects is lost, and of their children only the owner reference changes.
func TestVersions(t *testing.T) {
	t.Parallel()
	t.Run("Upgrade", func(t *testing.T) {
		t.Parallel()
		u := newUpgrade(t, controlplane.Options{Controllers: true}) // the cluster migrates what is stored
		u.serveBoth(t)
		u.finish(t, func() { u.changeDuringMigration(t) })
	})
	t.Run("Killed", func(t *testing.T) {
		t.Parallel()
		u := newUpgrade(t, withoutMigration)
		u.serveBoth(t)
		for i := range 16 {
			u.kill(t, &mortal{at: 1 + i%3, committed: i%2 == 0}) // while the children get the new version of their owner
		}
		for i := range 4 {
			u.kill(t, &mortal{at: 3 + 2*i, committed: i%2 == 0, manager: migration}) // which sends a write for each object
		}
		u.finish(t, func() {})
	})
	t.Run("RolledBack", func(t *testing.T) {
		t.Parallel()
		u := newUpgrade(t, withoutMigration)
		u.serveBoth(t)
		u.kill(t, &mortal{at: 6, committed: true, manager: migration})
		require.Equal(t, []string{"v1alpha1", "v1"}, u.storedVersions(t), "the migration is halfway")
		u.release(t, crdFile(t, "v1alpha1", served("v1alpha1"), served("v1")), func() { u.migrated(t, "v1alpha1") })
		require.NoError(t, u.ControlPlane.InstallCRDs(t.Context(), crdFile(t, "v1alpha1", served("v1alpha1"), unserved("v1"))))
		o := u.startFormer(t, migrate) // the operator of v1 does not find its objects now
		u.forgotten(t, "v1")
		o.Stop()
		assert.Empty(t, o.Requests.Denied())
		require.NoError(t, u.ControlPlane.InstallCRDs(t.Context(), formerFile))
		o = u.startFormer(t)
		o.Pass(t, u, u.objects()...)
		assert.Empty(t, o.Requests.Denied())
		u.assertKept(t, cachev1alpha1.GroupVersion.String())
		u.assertApplied(t, "v1alpha1")
	})
}

// upgrade is a control plane with Memcacheds that the former operator has reconciled.
type upgrade struct {
	*user
	access   *rest.Config // the rights of the operator
	webhooks *controlplane.Webhooks
	names    []string
	children []unstructured.Unstructured
	before   map[string]*cachev1alpha1.Memcached
}

// newUpgrade starts a control plane whose CRD has v1alpha1 alone, and runs the former operator until it has reconciled ten Memcacheds.
func newUpgrade(t *testing.T, options controlplane.Options) *upgrade {
	t.Helper()
	cp := controlplane.New(t, options)
	u := &upgrade{user: &user{operatortest.NewUser(t, cp, versionsScheme)}, before: map[string]*cachev1alpha1.Memcached{}}
	u.access = operatortest.Install(t, u.User, "memcached").Access(t)
	u.Kubectl(t, "apply", "--filename=../config/webhook/migration_role.yaml")
	u.Kubectl(t, "delete", "customresourcedefinition", crdName)
	require.NoError(t, cp.InstallCRDs(t.Context(), formerFile))
	for i := range 10 {
		name := "cache-" + strconv.Itoa(i)
		u.names = append(u.names, name)
		require.NoError(t, u.Create(t.Context(), &cachev1alpha1.Memcached{ObjectMeta: u.Meta(name), Spec: cachev1alpha1.MemcachedSpec{
			Size: int32(i % 3), MemoryMB: 64, MaxConnections: int32(100 + i),
		}}))
	}
	o := u.startFormer(t)
	o.Pass(t, u, u.objects()...)
	o.Stop()
	u.children = u.listChildren(t)
	require.Len(t, u.children, 20, "a Deployment and a Service each")
	for _, name := range u.names {
		u.before[name] = operatortest.Live(t, u, &cachev1alpha1.Memcached{ObjectMeta: u.Meta(name)})
	}
	return u
}

// objects returns the Memcacheds in v1alpha1, with their names alone.
func (u *upgrade) objects() (all []client.Object) {
	for _, name := range u.names {
		all = append(all, &cachev1alpha1.Memcached{ObjectMeta: u.Meta(name)})
	}
	return all
}

// startFormer starts the operator that works on v1alpha1, with more that its manager runs.
func (u *upgrade) startFormer(t *testing.T, more ...func(ctrl.Manager) error) *operatortest.Operator {
	t.Helper()
	options := ctrl.Options{Scheme: formerScheme, Cache: controller.Cache(u.Namespace)}
	return operatortest.Start(t, u.access, options, &cachev1.Memcached{}, func(mgr ctrl.Manager) error {
		err := controller.SetupWithManager(mgr)
		for _, add := range more {
			err = errors.Join(err, add(mgr))
		}
		return err
	})
}

func migrate(mgr ctrl.Manager) error { return storageversion.Migrate(mgr, &cachev1.Memcached{}) }

// serveBoth installs the CRD with both versions, and with the conversion webhook that [upgrade.start] serves.
func (u *upgrade) serveBoth(t *testing.T) {
	t.Helper()
	u.webhooks = controlplane.NewWebhooks(t, u.ControlPlane, controlplane.WebhookOptions{CRDs: []string{baseFile}})
}

// start starts the operator of both versions.
func (u *upgrade) start(t *testing.T, access *rest.Config) *operatortest.Operator {
	t.Helper()
	return operatortest.Start(t, access, ctrl.Options{
		Scheme: versionsScheme, Cache: controller.Cache(u.Namespace), WebhookServer: webhook.NewServer(u.webhooks.Options()),
	}, &cachev1.Memcached{}, func(mgr ctrl.Manager) error {
		return errors.Join(
			controller.SetupWithManager(mgr),
			ctrl.NewWebhookManagedBy(mgr, &cachev1.Memcached{}).Complete(),
			migrate(mgr),
		)
	})
}

// kill starts a process of the operator, and returns after it has died.
func (u *upgrade) kill(t *testing.T, m *mortal) {
	t.Helper()
	m.died = make(chan struct{})
	access := rest.CopyConfig(u.access)
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return mortalTransport{m, next} })
	o := u.start(t, access)
	select {
	case <-m.died:
	case <-time.After(operatortest.Patience):
		t.Fatalf("there were less than %d writes: the upgrade has ended already", m.at)
	}
	o.Stop()
}

// release runs the operator with a CRD until something has happened.
func (u *upgrade) release(t *testing.T, crd string, happens func()) {
	t.Helper()
	require.NoError(t, u.ControlPlane.InstallCRDs(t.Context(), crd))
	o := u.start(t, u.access)
	happens()
	o.Stop()
	assert.Empty(t, o.Requests.Denied())
}

// finish runs the operator until the objects are stored in v1, removes v1alpha1 in two releases, and checks what is left. It calls
// migrating during the migration.
func (u *upgrade) finish(t *testing.T, migrating func()) {
	t.Helper()
	u.release(t, baseFile, func() {
		migrating()
		u.migrated(t, "v1")
		operatortest.Eventually(t, "the children have the new owner", func(c *assert.CollectT) {
			for _, child := range u.listChildren(c) {
				assert.Equal(c, cachev1.GroupVersion.String(), child.GetOwnerReferences()[0].APIVersion)
			}
		})
		u.assertKept(t, cachev1.GroupVersion.String())
	})
	u.release(t, crdFile(t, "v1", served("v1"), unserved("v1alpha1")), func() { u.forgotten(t, "v1alpha1") })
	require.NoError(t, u.ControlPlane.InstallCRDs(t.Context(), crdFile(t, "v1", served("v1"))))
	o := u.start(t, u.access)
	var objects []client.Object
	for _, name := range u.names {
		objects = append(objects, u.memcached(name, 0))
	}
	o.Pass(t, u, objects...)
	for request := range o.Requests.Take() {
		assert.Contains(t, request, "memcacheds", "a restart without v1alpha1 writes no child")
	}
	assert.Empty(t, o.Requests.Denied())
	u.assertApplied(t, "v1")
	operatortest.Eventually(t, "it works on", func(c *assert.CollectT) {
		assert.EqualValues(c, 5, *operatortest.Live(c, u, u.Deployment(u.names[0])).Spec.Replicas)
	})
}

// assertApplied asserts that a user may still send a server-side apply: the API server refuses it if managedFields name a version that is gone.
func (u *upgrade) assertApplied(t *testing.T, version string) {
	t.Helper()
	manifest := filepath.Join(t.TempDir(), "memcached.yaml")
	require.NoError(t, os.WriteFile(manifest, fmt.Appendf(nil, "apiVersion: cache.example.com/%s\nkind: Memcached\nmetadata: {name: %s}\nspec: {size: 5}\n", version, u.names[0]), 0o600))
	u.Kubectl(t, "apply", "--server-side", "--force-conflicts", "--filename="+manifest)
}

// forgotten waits until the managedFields of no object name a version.
func (u *upgrade) forgotten(t *testing.T, version string) {
	t.Helper()
	gone := schema.GroupVersion{Group: cachev1.GroupVersion.Group, Version: version}.String()
	operatortest.Eventually(t, gone+" is forgotten", func(c *assert.CollectT) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: cachev1.GroupVersion.Group, Version: other(version), Kind: "MemcachedList"})
		require.NoError(c, u.List(t.Context(), list, client.InNamespace(u.Namespace)))
		assert.Len(c, list.Items, len(u.names))
		for _, item := range list.Items {
			for _, entry := range item.ManagedFields {
				assert.NotEqual(c, gone, entry.APIVersion, "%s of %s", entry.Manager, item.Name)
			}
		}
	})
}

func other(version string) string {
	if version == "v1" {
		return "v1alpha1"
	}
	return "v1"
}

// storedVersions returns the versions in which objects may be stored.
func (u *upgrade) storedVersions(t require.TestingT) []string {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	return operatortest.Live(t, u, crd).Status.StoredVersions
}

// changeDuringMigration changes an object after the operator has asked the cluster to migrate. The cluster begins when its garbage collector
// has seen a change of the kind that is newer than the request: without this change, a minute or two later. If the cluster does not migrate, as
// before Kubernetes 1.37, changeDuringMigration does nothing.
func (u *upgrade) changeDuringMigration(t *testing.T) {
	t.Helper()
	kind := schema.GroupVersionKind{Group: "storagemigration.k8s.io", Version: "v1", Kind: "StorageVersionMigration"}
	if _, err := u.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); apimeta.IsNoMatchError(err) {
		return
	}
	operatortest.Eventually(t, "the cluster has noted the request", func(c *assert.CollectT) {
		request := &unstructured.Unstructured{}
		request.SetGroupVersionKind(kind)
		require.NoError(c, u.Get(t.Context(), client.ObjectKey{Name: crdName}, request))
		version, _, _ := unstructured.NestedString(request.Object, "status", "resourceVersion")
		assert.NotEmpty(c, version)
	})
	u.Kubectl(t, "annotate", "memcached", u.names[0], "example.com/note=changed")
}

// migrated waits until all objects are stored in a version.
func (u *upgrade) migrated(t *testing.T, version string) {
	t.Helper()
	operatortest.Eventually(t, "all is stored in "+version, func(c *assert.CollectT) { assert.Equal(c, []string{version}, u.storedVersions(c)) })
}

// assertKept asserts that the Memcacheds are as they were before the upgrade, and that only the owner references of the children have changed.
func (u *upgrade) assertKept(t *testing.T, owner string) {
	t.Helper()
	for _, name := range u.names {
		now := operatortest.Live(t, u, &cachev1alpha1.Memcached{ObjectMeta: u.Meta(name)})
		assert.Equal(t, u.before[name].UID, now.UID)
		assert.Equal(t, u.before[name].Generation, now.Generation, "%s", name)
		assert.Empty(t, cmp.Diff(u.before[name].Spec, now.Spec), "%s", name)
	}
	children := u.listChildren(t)
	for i := range children {
		assert.Equal(t, owner, children[i].GetOwnerReferences()[0].APIVersion, "%s", children[i].GetName())
	}
	assert.Empty(t, cmp.Diff(withoutOwners(u.children), withoutOwners(children)))
}

// listChildren returns the Deployments and Services.
func (u *upgrade) listChildren(t require.TestingT) (children []unstructured.Unstructured) {
	for _, kind := range []metav1.TypeMeta{{APIVersion: "apps/v1", Kind: "DeploymentList"}, {APIVersion: "v1", Kind: "ServiceList"}} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind())
		require.NoError(t, u.List(context.Background(), list, client.InNamespace(u.Namespace)))
		children = append(children, list.Items...)
	}
	return children
}

// withoutOwners returns copies of children without their owner references, without what each write changes, which for a Deployment is the
// generation too, and without the status.
func withoutOwners(children []unstructured.Unstructured) (copies []map[string]any) {
	for i := range children {
		child := children[i].DeepCopy()
		child.SetOwnerReferences(nil)
		child.SetManagedFields(nil)
		child.SetResourceVersion("")
		child.SetGeneration(0)
		unstructured.RemoveNestedField(child.Object, "status")
		annotations := child.GetAnnotations()
		for key := range annotations {
			if strings.HasPrefix(key, "opblocks.dev/") {
				delete(annotations, key)
			}
		}
		child.SetAnnotations(annotations)
		copies = append(copies, child.Object)
	}
	return copies
}

// version is a version of the CRD, which is served or not.
type version struct {
	name   string
	served bool
}

func served(name string) version   { return version{name, true} }
func unserved(name string) version { return version{name, false} }

// crdFile writes a file with the CRD, reduced to some versions, and stored in one.
func crdFile(t *testing.T, stored string, versions ...version) string {
	t.Helper()
	text, err := os.ReadFile(baseFile)
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal(text, &crd))
	all := crd.Spec.Versions
	crd.Spec.Versions = nil
	for _, v := range all {
		if i := slices.IndexFunc(versions, func(want version) bool { return want.name == v.Name }); i >= 0 {
			v.Storage, v.Served = v.Name == stored, versions[i].served
			crd.Spec.Versions = append(crd.Spec.Versions, v)
		}
	}
	text, err = yaml.Marshal(crd)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "crd.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// mortal is a process that dies at one of its writes. It sends no write after that.
type mortal struct {
	at        int    // the number of this write
	manager   string // only its writes count; empty: all
	committed bool   // the API server has done this write, and its answer is lost
	died      chan struct{}

	mu     sync.Mutex
	writes int
}

// migration is the field manager of the storage migration.
const migration = "opblocks-storage-migration"

var errDied = errors.New("the process has died")

// next counts a write. It returns whether the write is sent, and whether the process dies with it.
func (m *mortal) next(manager string) (sent, dies bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.manager != "" && manager != m.manager {
		return m.writes < m.at, false
	}
	m.writes++
	return m.writes < m.at || m.writes == m.at && m.committed, m.writes == m.at
}

type mortalTransport struct {
	*mortal
	base http.RoundTripper
}

// RoundTrip sends a request, unless it is a write of a process that has died. Reads go on: nobody acts on them any more.
func (m mortalTransport) RoundTrip(request *http.Request) (response *http.Response, err error) {
	if request.Method == http.MethodGet {
		return m.base.RoundTrip(request)
	}
	sent, dies := m.next(request.URL.Query().Get("fieldManager"))
	if dies {
		defer close(m.died)
	}
	if sent {
		response, err = m.base.RoundTrip(request)
	}
	if sent && !dies || err != nil {
		return response, err
	}
	if response != nil {
		return nil, errors.Join(errDied, response.Body.Close())
	}
	return nil, errDied
}

// WrappedRoundTripper lets client-go find the connections to close.
func (m mortalTransport) WrappedRoundTripper() http.RoundTripper { return m.base }
