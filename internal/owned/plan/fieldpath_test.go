package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestParseFieldPath(t *testing.T) {
	name := func(name string) pathElement { return pathElement{name: name} }
	index := func(i int) pathElement { return pathElement{index: i, isIndex: true} }
	tests := map[string]struct {
		reason string
		path   string
		want   fieldPath
		bad    bool
	}{
		"Field":         {reason: "One name.", path: "spec", want: fieldPath{name("spec")}},
		"Nested":        {reason: "Names are separated by dots.", path: "spec.replicas", want: fieldPath{name("spec"), name("replicas")}},
		"Item":          {reason: "A number in brackets is an index.", path: "spec.ports[12].name", want: fieldPath{name("spec"), name("ports"), index(12), name("name")}},
		"ListInList":    {reason: "Indices may be anywhere.", path: "a[0].b[1].c", want: fieldPath{name("a"), index(0), name("b"), index(1), name("c")}},
		"ItemItself":    {reason: "A value of a set has no field.", path: "tags[3]", want: fieldPath{name("tags"), index(3)}},
		"KeyOfMap":      {reason: "Another text in brackets is a key, dots and slashes included.", path: "metadata.labels[example.com/team]", want: fieldPath{name("metadata"), name("labels"), name("example.com/team")}},
		"Empty":         {reason: "There is no field.", path: "", bad: true},
		"OnlyIndex":     {reason: "An object is no list.", path: "[0].name", bad: true},
		"NotClosed":     {reason: "The bracket is not closed.", path: "spec.ports[0", bad: true},
		"EmptyName":     {reason: "A name is missing between two dots.", path: "spec..name", bad: true},
		"TrailingDot":   {reason: "A name is missing at the end.", path: "spec.", bad: true},
		"NoDotAfterKey": {reason: "A dot is missing behind the bracket.", path: "spec.ports[0]name", bad: true},
	}
	for testName, tc := range tests {
		t.Run(testName, func(t *testing.T) {
			got, ok := parseFieldPath(tc.path)
			require.Equal(t, tc.bad, !ok, tc.reason)
			if tc.bad {
				return
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(pathElement{})); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestJSONPointer(t *testing.T) {
	path, ok := parseFieldPath("metadata.annotations[example.com/a~b]")
	require.True(t, ok)
	require.Equal(t, "/metadata/annotations/example.com~1a~0b", jsonPointer(path), "slashes and tildes are escaped")
}
