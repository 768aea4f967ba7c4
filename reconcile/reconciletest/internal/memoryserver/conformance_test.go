package memoryserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

var crdPaths = []string{
	"testdata/widgets.yaml", "testdata/gadgets.yaml", "../../../../examples/memcached/config/crd/bases", "../../../../examples/app/config/crd/bases",
	"../../../../examples/databaseuser/config/crd/bases",
}

// TestConformance sends the same random requests to this server and to a real API server. The answers and the stored objects must be the
// same. It runs as many sequences of requests as fit into ten seconds, and always the same ones. With OPBLOCKS_CONFORMANCE=5m it runs new
// sequences for five minutes. -run TestConformance/SEED repeats one sequence.
func TestConformance(t *testing.T) {
	duration, seed := 10*time.Second, uint64(0)
	if asked := os.Getenv("OPBLOCKS_CONFORMANCE"); asked != "" {
		var err error
		duration, err = time.ParseDuration(asked)
		require.NoError(t, err)
		seed = uint64(time.Now().Unix()) * 1000
	}
	theirs := newRealSide(t)
	end := time.Now().Add(duration)
	requests, first := 0, seed
	for failed := 0; time.Now().Before(end) && failed < maxFailures; seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { requests += compareServers(t, theirs, seed, kindsByWeight) }) {
			failed++
		}
	}
	t.Logf("%d requests in %d sequences from seed %d", requests, seed-first, first)
}

// maxFailures is the number of differences after which the test gives up.
const maxFailures = 5

// FuzzConformance runs the sequences of TestConformance with seeds of the fuzzer.
func FuzzConformance(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(seed)
	}
	var once sync.Once
	var theirs client.Client
	f.Fuzz(func(t *testing.T, seed uint64) {
		realControlPlane(t) // skips the test with -short
		once.Do(func() { theirs = newRealSide(t) })
		compareServers(t, theirs, seed, kindsByWeight)
	})
}

var realControlPlane = controlplane.Shared(controlplane.Options{})

// imitated is the minor version of Kubernetes whose answers this server imitates. Other versions have other texts for some errors.
const imitated = "v1.37."

// skipOtherVersions skips the test if OPBLOCKS_KUBERNETES names another version.
func skipOtherVersions(t testing.TB) {
	t.Helper()
	if version := os.Getenv("OPBLOCKS_KUBERNETES"); version != "" && !strings.HasPrefix(version, imitated) {
		t.Skipf("the server in memory is compared with Kubernetes %sx, and OPBLOCKS_KUBERNETES is %s", imitated, version)
	}
}

func newRealSide(t testing.TB) client.Client {
	t.Helper()
	skipOtherVersions(t)
	cp := realControlPlane(t)
	require.NoError(t, cp.InstallCRDs(context.Background(), crdPaths...))
	config := cp.Config()
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: testScheme})
	require.NoError(t, err)
	return c
}

// TestConformanceOfVersions does the same as TestConformance for a kind with two served versions.
func TestConformanceOfVersions(t *testing.T) {
	theirs := newRealSide(t)
	for seed := uint64(100); seed < 120; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compareServers(t, theirs, seed, versionsOfOneKind) })
	}
}

// compareServers runs one sequence of requests for some kinds in a namespace of its own, and returns how many requests it sent.
func compareServers(t *testing.T, theirs client.Client, seed uint64, kinds []string) (requests int) {
	t.Helper()
	memory, err := New(testScheme, CRDs(crdPaths...))
	require.NoError(t, err)
	namespace := fmt.Sprintf("conformance-%d-%d", seed, time.Now().UnixNano())
	sides := []*side{newSide(t, memory.Client(), namespace), newSide(t, theirs, namespace)}
	random := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), kinds: kinds}
	var log []string
	for range 40 {
		request := random.request()
		requests++
		got, want := sides[0].do(request), sides[1].do(request)
		log = append(log, fmt.Sprintf("%s\n      -> %s", request.title, want.summary()))
		if diff := cmp.Diff(want.lines(), got.lines()); diff != "" {
			t.Errorf("seed %d, request %d: the real server answers (-), the server in memory (+):\n%s\nrequests:\n%s\nraw error of the real server: %v\nof the server in memory: %v", seed, requests, diff,
				strings.Join(log[max(0, len(log)-6):], "\n"), want.raw, got.raw)
			return requests
		}
	}
	for _, kind := range slices.Compact(slices.Sorted(slices.Values(kinds))) {
		got, want := sides[0].list(t, kind), sides[1].list(t, kind)
		require.Equal(t, want, got, "seed %d: what the real server lists of kind %s is expected", seed, kind)
	}
	return requests
}

// list lists the objects of a kind with several selectors, and returns the names that are found.
func (s *side) list(t *testing.T, kind string) (found []string) {
	t.Helper()
	for _, selector := range []client.ListOption{client.MatchingLabels{}, client.MatchingLabels{"l": "1"}, client.HasLabels{"m"}, client.MatchingFields{"metadata.name": "a"}} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(newObject(kind).GroupVersionKind())
		list.SetKind(list.GetKind() + "List")
		require.NoError(t, s.client.List(t.Context(), list, client.InNamespace(s.namespace), selector))
		for _, item := range list.Items {
			found = append(found, fmt.Sprintf("%v: %s", selector, item.GetName()))
		}
	}
	return found
}

// side is one of the two servers, with the objects that its client has read so far.
type side struct {
	client    client.Client
	namespace string
	seen      map[string][]*unstructured.Unstructured // by kind and name, the oldest first
	uids      map[string]string                       // the stand-ins that replace UIDs in comparisons
	values    map[string]string
}

func newSide(t *testing.T, c client.Client, namespace string) *side {
	t.Helper()
	space := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}}
	require.NoError(t, c.Create(t.Context(), space))
	return &side{client: c, namespace: namespace, seen: map[string][]*unstructured.Unstructured{}, uids: map[string]string{}, values: map[string]string{}}
}

// outcome is the result of a request, in a form that can be compared between the two servers.
type outcome struct {
	Reason  metav1.StatusReason
	Code    int32
	Message string
	Causes  []string
	Answer  map[string]any // the object in the answer
	Stored  map[string]any // the object that is stored afterwards
	Moved   bool           // the stored resource version has changed

	raw string
}

func (o outcome) summary() string {
	if o.Message != "" {
		return fmt.Sprintf("%d %s %s", o.Code, o.Reason, o.Message)
	}
	return fmt.Sprintf("ok, moved=%v", o.Moved)
}

func (o outcome) lines() []string {
	content, err := json.MarshalIndent(o, "", " ")
	if err != nil {
		panic(err)
	}
	return strings.Split(string(content), "\n")
}

func jsonOf(v any) string {
	content, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(content)
}

func (s *side) do(r request) (o outcome) {
	key := r.kind + "/" + r.name
	before := s.latest(key)
	answer, err := r.send(s)
	if err != nil {
		o.fail(s, err)
	} else if answer != nil {
		o.Answer = s.normalize(answer)
	}
	stored := newObject(r.kind)
	err = s.client.Get(context.Background(), client.ObjectKey{Namespace: s.namespace, Name: r.name}, stored)
	switch {
	case apierrors.IsNotFound(err):
		o.Moved = before != nil
		s.seen[key] = append(s.seen[key], nil)
	case err != nil:
		panic(err)
	default:
		o.Stored = s.normalize(stored)
		o.Moved = before == nil || before.GetResourceVersion() != stored.GetResourceVersion()
		s.seen[key] = append(s.seen[key], stored)
	}
	return o
}

func (s *side) latest(key string) *unstructured.Unstructured {
	if seen := s.seen[key]; len(seen) > 0 {
		return seen[len(seen)-1]
	}
	return nil
}

// back returns the object as it was read the given number of reads before. It returns nil if there is none.
func (s *side) back(key string, steps int) *unstructured.Unstructured {
	seen := s.seen[key]
	if i := len(seen) - 1 - steps; i >= 0 && seen[i] != nil {
		return seen[i].DeepCopy()
	}
	return nil
}

func (o *outcome) fail(s *side, err error) {
	o.raw = err.Error()
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		o.Message = err.Error()
		return
	}
	o.Reason, o.Code = status.Status().Reason, status.Status().Code
	o.Message = s.plain(status.Status().Message)
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			o.Causes = append(o.Causes, fmt.Sprintf("%s: %s: %s", cause.Field, cause.Type, s.plain(firstLine(cause.Message))))
		}
		slices.Sort(o.Causes)
		o.Causes = slices.Compact(o.Causes)
		o.Message, _, _ = strings.Cut(o.Message, "is invalid: ") // the causes that follow have no fixed order
	}
}

// firstLine returns the first line of a message. The real server appends a diff of objects.
func firstLine(message string) string {
	line, _, _ := strings.Cut(message, "\n")
	return line
}

var (
	uidPattern      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	numberPattern   = regexp.MustCompile(`\([0-9]+\)`)
	storagePattern  = regexp.MustCompile(`StorageError: .*AdditionalErrorMsg: `)
	documentPattern = regexp.MustCompile(`value: "\{.*\}": `)                           // has the resource version
	schemaPattern   = regexp.MustCompile(`(?s)(failed to create typed patch object).*`) // several errors have no fixed order
	nodePortPattern = regexp.MustCompile(`value: 3[0-9]{4}\b`)
	structPattern   = regexp.MustCompile(`value: \[?\{.*\}\]?`) // the real server prints its own Go types
)

// plain replaces the parts of a message that differ between the two servers.
func (s *side) plain(message string) string {
	message = strings.ReplaceAll(uidPattern.ReplaceAllStringFunc(message, s.uid), s.namespace, "namespace")
	message = schemaPattern.ReplaceAllString(message, "$1")
	message = documentPattern.ReplaceAllString(message, "value: document: ")
	message = structPattern.ReplaceAllString(message, "value: {}")
	message = numberPattern.ReplaceAllString(message, "(version)")
	message = nodePortPattern.ReplaceAllString(message, "value: node port")
	return storagePattern.ReplaceAllString(message, "")
}

func (s *side) uid(given string) string {
	if s.uids[given] == "" {
		s.uids[given] = fmt.Sprintf("uid-%d", len(s.uids))
	}
	return s.uids[given]
}

// chosen returns a stand-in for a value that the server chose, such as an address. The stand-in only shows whether the value has changed.
func (s *side) chosen(uid any, what string, given any) any {
	text := fmt.Sprint(given)
	if text == "None" || text == "0" || text == "" {
		return given
	}
	key := fmt.Sprint(uid, what)
	if before, has := s.values[key]; has && before != text {
		return "another " + what
	}
	s.values[key] = text
	return what
}

func (s *side) normalize(live *unstructured.Unstructured) map[string]any {
	object := s.plainValues(live.DeepCopy().Object).(map[string]any)
	metadata := object["metadata"].(map[string]any)
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if metadata[name] != nil {
			metadata[name] = "time"
		}
	}
	delete(metadata, "resourceVersion")
	metadata["managedFields"] = normalizeManagers(live)
	switch live.GetKind() {
	case "Service":
		s.normalizeService(object)
	case "Pod": // an admission plug-in sets the account; it is disabled if no controllers run
		unstructured.RemoveNestedField(object, "spec", "serviceAccount")
		unstructured.RemoveNestedField(object, "spec", "serviceAccountName")
	}
	return object
}

// plainValues replaces UIDs and the namespace in all fields of a value.
func (s *side) plainValues(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			value[key] = s.plainValues(value[key])
		}
	case []any:
		for i := range value {
			value[i] = s.plainValues(value[i])
		}
	case string:
		return strings.ReplaceAll(uidPattern.ReplaceAllStringFunc(value, s.uid), s.namespace, "namespace")
	}
	return value
}

func (s *side) normalizeService(object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	uid := object["metadata"].(map[string]any)["uid"]
	if spec["clusterIP"] != nil {
		spec["clusterIP"] = s.chosen(uid, "address", spec["clusterIP"])
	}
	if all, has := spec["clusterIPs"].([]any); has {
		for i := range all {
			all[i] = s.chosen(uid, "address", all[i])
		}
	}
	if spec["healthCheckNodePort"] != nil {
		spec["healthCheckNodePort"] = s.chosen(uid, "health port", spec["healthCheckNodePort"])
	}
	ports, _ := spec["ports"].([]any)
	for _, port := range ports {
		if port := port.(map[string]any); port["nodePort"] != nil {
			port["nodePort"] = s.chosen(uid, fmt.Sprint("node port of ", port["name"], port["protocol"], port["port"]), port["nodePort"])
		}
	}
}

// normalizeManagers removes the times from the managed fields. The entries were sorted by time, so it sorts them in another way.
func normalizeManagers(live *unstructured.Unstructured) []string {
	managers := []string{}
	for _, m := range live.GetManagedFields() {
		managers = append(managers, fmt.Sprintf("%s %s %s %s: %s", m.Manager, m.Operation, m.Subresource, m.APIVersion, m.FieldsV1.GetRawString()))
	}
	sort.Strings(managers)
	return managers
}
