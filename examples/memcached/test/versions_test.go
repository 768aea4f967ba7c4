package test

import (
	"errors"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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
		u.finish(t)
	})
	t.Run("Killed", func(t *testing.T) {
		t.Parallel()
		u := newUpgrade(t, withoutMigration)
		u.serveBoth(t)
		for i := range 16 {
			u.kill(t, 1+i%3, i%2 == 0) // while the children get the new version of their owner
		}
		for i := range 4 {
			u.kill(t, 3+2*i, i%2 == 0) // in the migration, which sends a write for each object
		}
		u.finish(t)
	})
	t.Run("RolledBack", func(t *testing.T) {
		t.Parallel()
		u := newUpgrade(t, withoutMigration)
		u.serveBoth(t)
		u.kill(t, 15, true)
		require.Equal(t, []string{"v1alpha1", "v1"}, u.storedVersions(t), "the migration is halfway")
		require.NoError(t, u.ControlPlane.InstallCRDs(t.Context(), crdFile(t, "v1alpha1", "v1alpha1", "v1")))
		o := u.start(t, u.ControlPlane.Config())
		u.migrated(t, "v1alpha1")
		o.Stop()
		require.NoError(t, u.ControlPlane.InstallCRDs(t.Context(), formerFile))
		o = u.startFormer(t)
		o.Pass(t, u, u.objects()...)
		u.assertKept(t, cachev1alpha1.GroupVersion.String())
	})
}

// upgrade is a control plane with Memcacheds that the former operator has reconciled.
type upgrade struct {
	*user
	webhooks *controlplane.Webhooks
	names    []string
	children []unstructured.Unstructured
	before   map[string]*cachev1alpha1.Memcached
}

// newUpgrade starts a control plane whose CRD has v1alpha1 alone, and runs the former operator until it has reconciled ten Memcacheds.
func newUpgrade(t *testing.T, options controlplane.Options) *upgrade {
	t.Helper()
	options.CRDs = []string{formerFile}
	cp := controlplane.New(t, options)
	u := &upgrade{user: &user{operatortest.NewUser(t, cp, versionsScheme)}, before: map[string]*cachev1alpha1.Memcached{}}
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

func (u *upgrade) startFormer(t *testing.T) *operatortest.Operator {
	t.Helper()
	options := ctrl.Options{Scheme: formerScheme, Cache: controller.Cache(u.Namespace)}
	return operatortest.Start(t, u.ControlPlane.Config(), options, &cachev1.Memcached{}, controller.SetupWithManager)
}

// serveBoth gives the CRD both versions, with the conversion webhook that [upgrade.start] serves.
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
			storageversion.Migrate(mgr, &cachev1.Memcached{}),
		)
	})
}

// kill starts a process of the operator, and returns after it has died at its nth write.
func (u *upgrade) kill(t *testing.T, n int, committed bool) {
	t.Helper()
	m := &mortal{at: n, committed: committed, died: make(chan struct{})}
	access := u.ControlPlane.Config()
	access.Wrap(func(next http.RoundTripper) http.RoundTripper { return mortalTransport{m, next} })
	o := u.start(t, access)
	select {
	case <-m.died:
	case <-time.After(operatortest.Patience):
		t.Fatalf("there were less than %d writes: the upgrade has ended already", n)
	}
	o.Stop()
}

// finish runs the operator until the objects are stored in v1, removes v1alpha1, and checks what is left.
func (u *upgrade) finish(t *testing.T) {
	t.Helper()
	o := u.start(t, u.ControlPlane.Config())
	u.migrated(t, "v1")
	o.Pass(t, u, u.objects()...)
	u.assertKept(t, cachev1.GroupVersion.String())
	o.Stop()

	require.NoError(t, u.ControlPlane.InstallCRDs(t.Context(), crdFile(t, "v1", "v1")))
	o = u.start(t, u.ControlPlane.Config())
	var objects []client.Object
	for _, name := range u.names {
		objects = append(objects, u.memcached(name, 0))
	}
	o.Pass(t, u, objects...)
	for request := range o.Requests.Take() {
		assert.Contains(t, request, "memcacheds", "a restart without v1alpha1 writes no child")
	}
	u.set(t, u.names[0], func(s *cachev1.MemcachedSpec) { s.Size = 5 })
	operatortest.Eventually(t, "it works on", func(c *assert.CollectT) {
		assert.EqualValues(c, 5, *operatortest.Live(c, u, u.Deployment(u.names[0])).Spec.Replicas)
	})
}

// storedVersions returns the versions in which objects may be stored.
func (u *upgrade) storedVersions(t require.TestingT) []string {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crdName}}
	return operatortest.Live(t, u, crd).Status.StoredVersions
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
func (u *upgrade) listChildren(t *testing.T) (children []unstructured.Unstructured) {
	t.Helper()
	for _, kind := range []metav1.TypeMeta{{APIVersion: "apps/v1", Kind: "DeploymentList"}, {APIVersion: "v1", Kind: "ServiceList"}} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersionKind())
		require.NoError(t, u.List(t.Context(), list, client.InNamespace(u.Namespace)))
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

// crdFile writes a file with the CRD, reduced to some versions, and stored in one.
func crdFile(t *testing.T, stored string, versions ...string) string {
	t.Helper()
	text, err := os.ReadFile(baseFile)
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal(text, &crd))
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !slices.Contains(versions, v.Name)
	})
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == stored
	}
	text, err = yaml.Marshal(crd)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "crd.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// mortal is a process that dies at one of its writes. It sends no write after that.
type mortal struct {
	at        int  // the number of this write
	committed bool // the API server has done this write, and its answer is lost
	died      chan struct{}

	mu     sync.Mutex
	writes int
}

var errDied = errors.New("the process has died")

// next counts a write. It returns whether the write is sent, and whether the process dies with it.
func (m *mortal) next() (sent, dies bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
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
	sent, dies := m.next()
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
