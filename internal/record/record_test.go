package record_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/record"
)

func TestParseLastApplied(t *testing.T) {
	tests := map[string]struct {
		reason     string
		annotation string
		want       record.LastApplied
	}{
		"Created":   {reason: "The object was written by POST.", annotation: "v1:created:0a", want: record.LastApplied{Method: record.ByCreate, Hash: "0a"}},
		"Applied":   {reason: "The object was applied.", annotation: "v1:applied:0a", want: record.LastApplied{Method: record.ByApply, Hash: "0a"}},
		"Replicas":  {reason: "Replicas were sent.", annotation: "v1:applied:0a:replicas", want: record.LastApplied{Method: record.ByApply, Hash: "0a", Replicas: true}},
		"Rewritten": {reason: "The API server has stored something else.", annotation: "v1:applied:0a:rewritten-0b:replicas", want: record.LastApplied{Method: record.ByApply, Hash: "0a", Rewritten: "0b", Replicas: true}},
		"Absent":    {reason: "The object was written by others.", annotation: "", want: record.LastApplied{Method: record.ByOthers}},
		"Later":     {reason: "A later version of the format is not known.", annotation: "v2:applied:0a:replicas", want: record.LastApplied{Method: record.ByOthers}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := record.ParseLastApplied(tc.annotation)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if got.Method != record.ByOthers {
				require.Equal(t, tc.annotation, got.String())
			}
		})
	}
}

func TestMarkOf(t *testing.T) {
	const owner = "App.apps.example.com/shop/web/0e1c"
	app := schema.GroupKind{Group: "apps.example.com", Kind: "App"}
	tests := map[string]struct {
		reason        string
		owner, object string
		retained      string
		want          record.Mark
		marked        bool
	}{
		"Complete": {
			reason: "It names an owner and this object.", owner: owner, object: "ConfigMap/other/data",
			want:   record.Mark{Owner: record.Name{Kind: app, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}, UID: "0e1c"},
			marked: true,
		},
		"Retained": {
			reason: "It stays.", owner: owner, object: "ConfigMap/other/data", retained: "true",
			want:   record.Mark{Owner: record.Name{Kind: app, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}, UID: "0e1c", Retained: true},
			marked: true,
		},
		"ClusterScopedOwner": {
			reason: "Such an owner has no namespace.", owner: "Node//one/0e1c", object: "ConfigMap/other/data",
			want:   record.Mark{Owner: record.Name{Kind: schema.GroupKind{Kind: "Node"}, NamespacedName: types.NamespacedName{Name: "one"}}, UID: "0e1c"},
			marked: true,
		},
		"None":            {reason: "Most objects have no mark."},
		"Copy":            {reason: "It names the object that this one was copied from.", owner: owner, object: "ConfigMap/other/original"},
		"CopyInNamespace": {reason: "So does a copy in another namespace.", owner: owner, object: "ConfigMap/shop/data"},
		"OtherKind":       {reason: "So does an object that got the annotations of another kind.", owner: owner, object: "Secret/other/data"},
		"WithoutObject":   {reason: "A part of a mark is none.", owner: owner},
		"WithoutUID":      {reason: "A name is not enough.", owner: "App.apps.example.com/shop/web", object: "ConfigMap/other/data"},
		"EmptyUID":        {reason: "An empty UID would be that of an owner that has none.", owner: "App.apps.example.com/shop/web/", object: "ConfigMap/other/data"},
		"EmptyName":       {reason: "Nothing has an empty name.", owner: "App.apps.example.com/shop//0e1c", object: "ConfigMap/other/data"},
		"EmptyKind":       {reason: "Nothing has an empty kind.", owner: "/shop/web/0e1c", object: "ConfigMap/other/data"},
		"TooManyParts":    {reason: "No name contains a slash.", owner: "App/shop/web/../../0e1c", object: "ConfigMap/other/data"},
		"OnlySlashes":     {reason: "There is nothing in it.", owner: "///", object: "///"},
		"VeryLong":        {reason: "It is as long as an annotation may be.", owner: strings.Repeat("/", 256<<10), object: "ConfigMap/other/data"},
		"NoText":          {reason: "It is no text.", owner: "\xff\x00/\xff/\xff", object: "\xff"},
		"OtherRetainValue": {
			reason: "Only this package's own value counts.", owner: owner, object: "ConfigMap/other/data", retained: "yes",
			want:   record.Mark{Owner: record.Name{Kind: app, NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web"}}, UID: "0e1c"},
			marked: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "data", Annotations: map[string]string{}}}
			for key, value := range map[string]string{record.Owner: tc.owner, record.Object: tc.object, record.Retained: tc.retained} {
				if value != "" {
					obj.Annotations[key] = value
				}
			}
			got, marked := record.MarkOf(obj, schema.GroupKind{Kind: "ConfigMap"})
			require.Equal(t, tc.marked, marked, tc.reason)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func FuzzMarkOf(f *testing.F) {
	f.Add("App.apps.example.com/shop/web/0e1c", "ConfigMap/other/data")
	f.Add("////", "")
	f.Fuzz(func(t *testing.T, owner, object string) {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "data", Annotations: map[string]string{
			record.Owner: owner, record.Object: object,
		}}}
		m, marked := record.MarkOf(obj, schema.GroupKind{Kind: "ConfigMap"})
		if marked && (m.UID == "" || m.Owner.Name == "" || object != "ConfigMap/other/data" || !strings.HasSuffix(owner, string(m.UID))) {
			t.Errorf("%q, %q: %+v", owner, object, m)
		}
	})
}

func TestOrderOf(t *testing.T) {
	for value, want := range map[string]int{"": 0, "3": 3, "-3": 0, "99999999999999999999": 0, "one": 0} {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{record.Order: value}}}
		require.Equal(t, want, record.OrderOf(obj), value)
	}
}

func TestRunRecord(t *testing.T) {
	for _, set := range []string{"", "jobs", "a:b"} {
		for _, r := range []record.Run{
			{State: record.RunStarted, Content: "abc", UID: "u-i-d", Set: set}, {State: record.RunComplete, Content: "abc", Set: set}, {State: record.RunFailed, Content: "abc", Set: set},
		} {
			require.Equal(t, r, record.ParseRun(r.String()))
		}
	}
	require.Equal(t, "v1:started:abc:u-i-d", record.Run{State: record.RunStarted, Content: "abc", UID: "u-i-d"}.String())
	require.Equal(t, "v1:started:abc:u-i-d:jobs", record.Run{State: record.RunStarted, Content: "abc", UID: "u-i-d", Set: "jobs"}.String())
	require.Equal(t, "v1:complete:abc:jobs", record.Run{State: record.RunComplete, Content: "abc", Set: "jobs"}.String())
	require.Equal(t, "v1:complete:abc", record.Run{State: record.RunComplete, Content: "abc"}.String())
	for _, broken := range []string{"", "v1", "v1:complete", "v1:started:a", "v2:complete:a", "v1:whatever:a", "complete"} {
		require.Zero(t, record.ParseRun(broken), "%q: it has never run", broken)
	}
}

func TestRecordKey(t *testing.T) {
	named := func(namespace, name string) metav1.Object {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	require.Equal(t, "run-once.opblocks.dev/web", record.Key(record.RunPrefix, "shop", named("shop", "web")))
	require.Equal(t, "run-once.opblocks.dev/other_web", record.Key(record.RunPrefix, "shop", named("other", "web")))
	long := strings.Repeat("long", 40)
	require.Len(t, record.Key(record.RunPrefix, "shop", named("shop", long)), len(record.RunPrefix)+63)
	require.NotEqual(t, record.Key(record.RunPrefix, "shop", named("shop", long+"a")), record.Key(record.RunPrefix, "shop", named("shop", long+"b")))
}

func TestParseExpansion(t *testing.T) {
	for value, reason := range map[string]string{
		"":                      "there is none",
		"no JSON":               "this package writes JSON",
		`{"namespace": "shop"}`: "it names no StatefulSet",
		`{"name": "web"}`:       "nor where it is",
		`{"namespace": "shop", "name": "../web"}`: "no object is named so, and a read of it would hold up the deletion of the owner",
		`{"namespace": "a/b", "name": "web"}`:     "the same for the namespace",
	} {
		require.Nil(t, record.ParseExpansion(value), reason)
	}
	e := record.ParseExpansion(`{"namespace": "shop", "name": "web", "replicas": 3}`)
	require.Equal(t, &record.Expansion{Namespace: "shop", Name: "web", Replicas: new(int32(3))}, e)
}

// Objects in clusters have these finalizers, so the names must not change.
func TestFinalizer(t *testing.T) {
	require.Equal(t, "children.opblocks.dev/storage", record.Finalizer("storage"))
	require.Equal(t, "children.opblocks.dev/set", record.Finalizer(""))
	set, ok := record.SetOf(record.Finalizer("storage"))
	require.True(t, ok)
	require.Equal(t, "storage", set)
	_, ok = record.SetOf("example.com/storage")
	require.False(t, ok)
}

// TestDocumented compares the keys in this package with the tables in docs/records.md.
func TestDocumented(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), "record.go", nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var keys []string
	ast.Inspect(source, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, "opblocks.dev/") {
			keys = append(keys, text)
		}
		return true
	})
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "records.md"))
	require.NoError(t, err)
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z.-]*opblocks\\.dev/[a-z-]*)").FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1])
	}
	slices.Sort(keys)
	slices.Sort(documented)
	require.Equal(t, keys, documented, "the tables of docs/records.md have other keys than record.go")
}

// TestOnChildren compares the table onChildren with the table in docs/records.md.
func TestOnChildren(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "records.md"))
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(page), "## On children")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(opblocks\\.dev/[a-z-]*)` \\| (annotation|label|finalizer)").FindAllStringSubmatch(section, -1) {
		documented[row[2]] = append(documented[row[2]], row[1])
	}
	for form, keys := range documented {
		require.ElementsMatch(t, keys, record.OnChildren(record.Form(form), func(record.ChildKey) bool { return true }), form)
	}
	require.Len(t, documented, 3)
}
