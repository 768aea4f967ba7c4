package corpus

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/testkinds"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// corpusEnv has the control plane and the namespaces in which the manifests are applied.
type corpusEnv struct {
	controlPlane *controlplane.ControlPlane
	scheme       *runtime.Scheme
	codecs       serializer.CodecFactory
	config       *rest.Config
	mapper       meta.RESTMapper
	other        client.Client
	kinds        *owned.Kinds
	namespaces   map[string]string        // by form: the namespace of the typed or the unstructured objects
	owners       map[string]client.Object // the owner in each namespace
	droppable    shapes                   // the fields that the typed subjects could drop, by shapeOf
	accepted     sync.Map                 // the changes that the API server accepted for fields of the typed subjects, by shapeOf
	newNamespace func(*testing.T) string  // creates another namespace
}

// manifest is a file of testdata/manifests. It is tested in two forms: as a Go struct (typed), and as an unstructured object.
type manifest struct {
	name    string
	even    bool // every second manifest is even: see subject.plansChange
	yaml    []byte
	typed   *subject                  // the manifest as a Go struct
	untyped *subject                  // the manifest as an unstructured object
	changes map[string]map[string]any // the changes of one field that the typed subject has tried as another writer, by the path of the field
	refused map[string]error          // the changes that the API server refused to the typed subject; the unstructured subject does not try them
}

// cluster is a control plane with the controllers of Kubernetes.
var cluster = controlplane.Shared(controlplane.Options{Controllers: true, CRDs: []string{"../testkinds"}})

func newCorpusEnv(t *testing.T) *corpusEnv {
	t.Helper()
	cp := cluster(t)
	c := &corpusEnv{controlPlane: cp, scheme: runtime.NewScheme(), config: cp.Config(), namespaces: map[string]string{}, owners: map[string]client.Object{}}
	c.config.WarningHandler = rest.NoWarnings{}
	require.NoError(t, scheme.AddToScheme(c.scheme))
	require.NoError(t, apiextensionsv1.AddToScheme(c.scheme))
	c.scheme.AddKnownTypeWithName(testkinds.GadgetKind, &testkinds.Gadget{})
	c.scheme.AddKnownTypeWithName(testkinds.WidgetKind, &testkinds.Widget{})
	metav1.AddToGroupVersion(c.scheme, testkinds.GadgetKind.GroupVersion())
	metav1.AddToGroupVersion(c.scheme, testkinds.WidgetKind.GroupVersion())
	c.codecs = serializer.NewCodecFactory(c.scheme, serializer.EnableStrict)

	http, err := rest.HTTPClientFor(c.config)
	require.NoError(t, err)
	c.mapper, err = apiutil.NewDynamicRESTMapper(c.config, http)
	require.NoError(t, err)
	c.other, err = client.New(c.config, client.Options{HTTPClient: http, Mapper: c.mapper, Scheme: c.scheme})
	require.NoError(t, err)
	server, err := discovery.NewDiscoveryClientForConfigAndClient(c.config, http)
	require.NoError(t, err)
	c.kinds = &owned.Kinds{Schemas: applyschema.FromServer(server.OpenAPIV3())}
	for _, custom := range []client.Object{&testkinds.Gadget{}, &testkinds.Widget{}} {
		require.Eventually(t, func() bool { // the API server publishes schemas a moment after it serves the kind
			_, err := c.kinds.Of(custom, c.scheme)
			return err == nil
		}, controlplane.Patience, 20*time.Millisecond)
	}
	c.newNamespace = func(t *testing.T) string { return controlplane.Namespace(t, cp) }
	for _, form := range []string{"typed", "unstructured"} {
		c.namespaces[form] = c.newNamespace(t)
	}
	return c
}

func (c *corpusEnv) manifests(t *testing.T) []manifest {
	t.Helper()
	names, err := filepath.Glob("testdata/manifests/*.yaml")
	require.NoError(t, err)
	var files []manifest
	for _, name := range names {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		files = append(files, manifest{name: strings.TrimSuffix(filepath.Base(name), ".yaml"), yaml: b, refused: map[string]error{}, changes: map[string]map[string]any{}})
	}
	slices.SortStableFunc(files, func(a, b manifest) int { return len(b.yaml) - len(a.yaml) }) // the longest files first, so that the parallel tests end earlier
	for i := range files {
		files[i].even = i%2 == 0
	}
	return files
}

// otherVersion is the name of an environment variable. It is set if the tests run on another version of Kubernetes than the one for which
// the corpus was written.
const otherVersion = "OPBLOCKS_KUBERNETES"

// newManifests are the manifests with a kind or a field that only Kubernetes 1.36 has.
var newManifests = []string{"deployment-scheduling-group", "mutatingadmissionpolicy-labels"}

// isForVersion reports whether the Kubernetes version under test has the kind and all fields of a manifest.
func isForVersion(m manifest) bool {
	return os.Getenv(otherVersion) == "" || !slices.Contains(newManifests, m.name)
}

// subject returns the test subject for a manifest: its object as a Go struct (form "typed") or as an unstructured object, with an owner and
// a client. A cluster-scoped object gets a unique name, in place of the word corpus.
func (c *corpusEnv) subject(t *testing.T, m *manifest, form string) *subject {
	t.Helper()
	s := &subject{manifest: m, form: form, other: c.other, writes: &writeCounter{}, applier: apply.New(), droppable: &c.droppable, accepted: &c.accepted}
	if form == "typed" {
		m.typed = s
	} else {
		m.untyped = s
	}
	obj := c.decode(t, m.yaml, form)
	namespaced, err := c.other.IsObjectNamespaced(obj)
	require.NoError(t, err)
	namespace := c.namespaces[form]
	switch {
	case !namespaced:
		unique := "corpus-" + form[:1] + namespace[strings.LastIndex(namespace, "-")+1:]
		obj = c.decode(t, bytes.ReplaceAll(m.yaml, []byte("corpus"), []byte(unique)), form)
		s.rename = strings.NewReplacer(unique, "corpus-fresh")
		t.Cleanup(func() {
			if err := c.other.Delete(context.Background(), obj); client.IgnoreNotFound(err) != nil {
				t.Errorf("delete %s: %v", s, err)
			}
		})
	case strings.HasPrefix(m.name, "resourcequota") || strings.HasPrefix(m.name, "limitrange"):
		namespace = c.newNamespace(t) // an object of this kind would limit all other objects of the namespace
	}
	s.want, s.owner = obj, c.owner(t, namespace, namespaced)
	if namespaced {
		obj.SetNamespace(namespace)
	}
	counted, err := client.New(s.writes.wrap(c.config), client.Options{Mapper: c.mapper, Scheme: c.scheme})
	require.NoError(t, err)
	s.client = &upToDateClient{Client: counted}
	s.apiReader, s.applier.Kinds = counted, c.kinds
	return s
}

// decode returns a manifest as a Go struct or as an unstructured object, depending on the form.
func (c *corpusEnv) decode(t *testing.T, manifest []byte, form string) client.Object {
	t.Helper()
	if form == "unstructured" {
		encoded, err := yaml.ToJSON(manifest)
		require.NoError(t, err)
		u := &unstructured.Unstructured{}
		require.NoError(t, u.UnmarshalJSON(encoded))
		return u
	}
	obj, _, err := c.codecs.UniversalDeserializer().Decode(manifest, nil, nil)
	require.NoError(t, err)
	return obj.(client.Object)
}

// owner returns the owner of the objects in a namespace: a ConfigMap. The owner of cluster-scoped objects is the namespace.
func (c *corpusEnv) owner(t *testing.T, namespace string, namespaced bool) client.Object {
	t.Helper()
	key := fmt.Sprint(namespace, namespaced)
	if known, ok := c.owners[key]; ok {
		return known
	}
	var owner client.Object = &corev1.Namespace{}
	if namespaced {
		owner = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"}}
		require.NoError(t, c.other.Create(t.Context(), owner))
	} else {
		require.NoError(t, c.other.Get(t.Context(), client.ObjectKey{Name: namespace}, owner))
	}
	c.owners[key] = owner
	return owner
}

// createAndSettle creates all objects, and waits until no controller writes to them any more.
func (c *corpusEnv) createAndSettle(t *testing.T, subjects []*subject) {
	t.Helper()
	var wg sync.WaitGroup
	queue := make(chan *subject)
	for range 8 {
		wg.Go(func() {
			for s := range queue {
				if op, n, err := s.apply(t.Context(), s.want); err != nil || op != apply.Created || n != 1 {
					t.Errorf("%s: %s by %d writes: %v", s, op, n, err)
				}
			}
		})
	}
	for _, s := range subjects {
		queue <- s
	}
	close(queue)
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	c.awaitControllers(t)
	const quiet = 3
	versions, same := map[string]string{}, 0
	require.Eventually(t, func() bool {
		same++
		for _, s := range subjects {
			s.refresh(t)
			if v := s.client.last.GetResourceVersion(); v != versions[s.String()] || !s.observed(t) {
				versions[s.String()], same = v, 0
			}
		}
		return same >= quiet
	}, controlplane.Patience, time.Second, "controllers have not settled")
}

// awaitControllers creates a Deployment and waits until its pod is ready. Controllers process their queues in order. So they have begun
// with all objects that were created before, even on a busy machine.
func (c *corpusEnv) awaitControllers(t *testing.T) {
	t.Helper()
	last := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.newNamespace(t), Name: "last"}}
	d := ownedresources.NewDeployment(last, map[string]string{"app": "last"}, corev1.Container{Name: "last", Image: "last"})
	require.NoError(t, c.other.Create(t.Context(), d))
	require.Eventually(t, func() bool {
		return c.other.Get(t.Context(), client.ObjectKeyFromObject(d), d) == nil && d.Status.AvailableReplicas == 1
	}, controlplane.Patience, 100*time.Millisecond, "the Deployment that was created last is available")
}

// observed reports whether the object's controller has observed the latest generation.
func (s *subject) observed(t *testing.T) bool {
	seen, found, err := unstructured.NestedInt64(s.live(t), "status", "observedGeneration")
	return err != nil || !found || seen == s.client.last.GetGeneration()
}
