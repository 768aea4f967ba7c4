package diff

import "testing"

func TestPath(t *testing.T) {
	tests := map[string]struct {
		reason string
		path   Path
		want   string
	}{
		"Empty":      {reason: "the value itself has no path", path: nil, want: ""},
		"Fields":     {reason: "fields are joined by dots", path: Path{}.Field("spec").Field("replicas"), want: "spec.replicas"},
		"Items":      {reason: "items stand in brackets", path: Path{}.Field("ports").Item("0").Field("name"), want: "ports[0].name"},
		"ItemFirst":  {reason: "a path may begin with an item", path: Path{}.Item("a=b").Field("c"), want: "[a=b].c"},
		"NestedList": {reason: "a list of lists", path: Path{}.Field("a").Item("0").Item("1"), want: "a[0][1]"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.path.String(); got != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPathKeepsItsParent(t *testing.T) {
	parent := make(Path, 1, 8)
	parent[0] = "a"
	b, c := parent.Field("b"), parent.Item("c")
	if b.String() != "a.b" || c.String() != "a[c]" {
		t.Errorf("paths below one parent share memory: %q, %q", b, c)
	}
}
