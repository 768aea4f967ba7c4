package forecast

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/reconcile/preview"
)

var shop = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Shop"}

func object(name string, changes ...preview.Change) Object {
	for i := range changes {
		changes[i].Name = types.NamespacedName{Namespace: "default", Name: name}
	}
	return Object{Kind: shop, Name: types.NamespacedName{Namespace: "default", Name: name}, Changes: changes}
}

func applied(have, want string) preview.Change {
	c := preview.Change{Kind: statefulSet, Action: Apply, Differences: []preview.Difference{{Path: "spec.template.spec.containers[0].image", Have: have, Want: want}}}
	SetEffects(&c, nil)
	return c
}

func text(t *testing.T, r *Report, f Format) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, r.Write(&out, f))
	found, _, _ := strings.Cut(out.String(), "\nThis plan is not exact")
	return found
}

// The first lines of the plan must say what happens to five hundred databases, so that nobody overlooks it.
func TestReport(t *testing.T) {
	r := &Report{}
	r.Expect("Shop", 500)
	for i := range 480 {
		r.Add(object(fmt.Sprintf("shop-%03d", i), applied(`"cache:1"`, `"cache:2"`)))
	}
	for i := range 20 {
		r.Add(object(fmt.Sprintf("unchanged-%d", i), preview.Change{Kind: statefulSet, Action: None}))
	}
	require.True(t, r.HasChanges())
	require.False(t, r.HasFailures())
	if diff := cmp.Diff(`Shop: 480 of 500 change, 20 are as desired.
All changes are in the same field: spec.template.spec.containers[0].image.
480 × StatefulSet is changed: its pods are replaced
No child is deleted.

480 × StatefulSet is changed
    spec.template.spec.containers[0].image: "cache:1" → "cache:2"
    its pods are replaced
  StatefulSet default/shop-000 of Shop default/shop-000 is shown; also default/shop-001, default/shop-002, default/shop-003 and 476 more
`, text(t, r, Text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReportOfDangers(t *testing.T) {
	r := &Report{LeftOut: []string{`Step "b" is left out.`, `Step "a" is left out.`, `Step "a" is left out.`}}
	r.Expect("Shop", 8)
	lost := preview.Change{Kind: claim, Action: Recreate, After: "Job default/migrate is ready"}
	SetEffects(&lost, nil)
	r.Add(object("a", preview.Change{Kind: service, Action: Create}, lost))
	r.Add(object("b", applied(`"1"`, `"2"`)))
	r.Add(object("c", applied(`"1"`, `"3"`)))
	r.Add(Object{Kind: shop, Name: types.NamespacedName{Namespace: "default", Name: "paused"}, Skipped: "it is paused"})
	r.Add(object("w", preview.Change{Kind: statefulSet, Waits: "waits for secrets \"w\""}))
	r.Add(object("f", preview.Change{Kind: statefulSet, Err: errors.New("create StatefulSet default/f: \x1b[31mforbidden\n now")},
		preview.Change{Kind: schema.GroupKind{Kind: "ConfigMap"}, Action: Delete, After: "no child of Shop f fails"}))
	r.Add(Object{Kind: shop, Name: types.NamespacedName{Namespace: "default", Name: "u"}, Err: errors.New("no answer")})
	r.Ended = "it was interrupted"
	require.True(t, r.HasFailures())
	if diff := cmp.Diff(`THE PLAN IS NOT COMPLETE: it was interrupted
Shop: 4 of 8 change, 1 have a child that waits, 1 are skipped, 1 have a child that fails, 1 are not known, 1 were not looked at.
1 × PersistentVolumeClaim is deleted and created again, later: the new claim is empty; the old volume is kept only if its reclaim policy is Retain
1 × ConfigMap is deleted, later
2 × StatefulSet is changed: its pods are replaced
1 × Service is created
Of all children, 1 are deleted and created again, 1 are deleted later: DATA IS LOST in 1 of these. What is not listed stays as it is.
1 × StatefulSet waits: see below
1 × StatefulSet fails: see below
1 × Shop is not known: see below

1 × PersistentVolumeClaim is deleted and created again, later (DATA IS LOST)
    the new claim is empty; the old volume is kept only if its reclaim policy is Retain
    this waits until Job default/migrate is ready
  PersistentVolumeClaim default/a of Shop default/a

1 × ConfigMap is deleted, later
    this waits until no child of Shop f fails
  ConfigMap default/f of Shop default/f

2 × StatefulSet is changed
    spec.template.spec.containers[0].image: "1" → "2"
    its pods are replaced
  StatefulSet default/b of Shop default/b is shown; also default/c; values differ from object to object

1 × Service is created
  Service default/a of Shop default/a

What fails, waits or is not known:
  1 × waits for secrets "w"
      StatefulSet default/w of Shop default/w
  1 × create StatefulSet default/f: [31mforbidden now
      StatefulSet default/f of Shop default/f
  1 × no answer
      Shop default/u
  A child that fails or waits holds up only the children that come after it. The others of its object are changed, and also deleted and created again. But while one fails, what the object does not want any more is not deleted.

Skipped:
  1 × it is paused
      Shop default/paused
`, text(t, r, Text)); diff != "" {
		t.Errorf("the worst comes first, and a terminal gets no control characters (-want +got)\n%s", diff)
	}
	require.Equal(t, []string{`Step "a" is left out.`, `Step "b" is left out.`}, r.limits()[:2])
}

// The report shows a text that somebody wrote into a field literally. The text must not work as Markdown, as HTML or as a mention.
func TestReportIsQuoted(t *testing.T) {
	r := &Report{}
	r.Expect("Shop", 1)
	r.Add(object("a", applied("\"1\"", "\"```<img src=x>@everyone\""), preview.Change{Kind: service, Err: errors.New("<script>alert(1)</script> [x](http://example.com) @everyone **")}))
	out := text(t, r, Markdown)
	require.Contains(t, out, "\n````\nspec.template.spec.containers[0].image: \"1\" → \"```<img src=x>@everyone\"\n````\n")
	require.Contains(t, out, `&lt;script&gt;alert(1)&lt;/script&gt; \[x\](http://example.com) &#64;everyone \*\*`)
	require.NotContains(t, out, "<script")
}

func TestReportAsJSON(t *testing.T) {
	r := &Report{}
	r.Expect("Shop", 3)
	long := `"` + strings.Repeat("x", 1000) + `"`
	r.Add(object("a", applied(`"1"`, long)))
	r.Add(object("b", applied(`"1"`, long)))
	require.Contains(t, text(t, r, Text), "… (1002 characters)")
	var out strings.Builder
	require.NoError(t, r.Write(&out, JSON))
	var found document
	require.NoError(t, json.Unmarshal([]byte(out.String()), &found))
	require.Equal(t, []kindDocument{{Kind: "Shop", Objects: 3, Change: 2, NotSeen: 1}}, found.Kinds)
	require.Equal(t, []changeDocument{{
		Action: Apply, Group: "apps", Kind: "StatefulSet", Count: 2, OwnerKind: "Shop", Owners: []string{"default/a", "default/b"}, Shown: "default/a",
		Differences: []differenceDocument{{"spec.template.spec.containers[0].image", `"1"`, long}}, Effects: []string{"its pods are replaced"},
	}}, found.Changes, "values are whole")
	require.Equal(t, []changeDocument{}, found.Skipped, "lists are never null")
	require.EqualError(t, r.Write(&out, "yaml"), `the format "yaml" of a plan is not known: use text, json or markdown`)
}

func TestReportOfNothing(t *testing.T) {
	r := &Report{}
	r.Expect("Shop", 0)
	require.False(t, r.HasChanges())
	require.Equal(t, "Shop: 0 of 0 change.\nNothing would be changed.\n", text(t, r, Text))
}

func TestWithoutMoved(t *testing.T) {
	name := types.NamespacedName{Namespace: "default", Name: "a"}
	for test, tc := range map[string]struct {
		reason string
		other  string
		want   int
	}{
		"another set applies it":       {"it moves", Apply, 1},
		"another set has it":           {"it has moved", None, 1},
		"another set deletes it, too":  {"two sets have written it", Delete, 2},
		"another set takes it off too": {"two sets have written it", Retain, 2},
	} {
		t.Run(test, func(t *testing.T) {
			got := WithoutMoved([]preview.Change{{Kind: service, Name: name, Action: Delete}, {Kind: service, Name: name, Action: tc.other}})
			require.Len(t, got, tc.want, tc.reason)
		})
	}
}
