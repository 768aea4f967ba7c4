package state

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestRandomNames(t *testing.T) {
	job := func(colour, name string) object { return object{"metadata": object{"name": name}, "colour": colour} }
	one := State{
		"Job default/web-x7k2p": job("red", "web-x7k2p"), "Job default/web-q9d4m": job("blue", "web-q9d4m"), "Job default/web-fixed": job("red", "web-fixed"),
		"Shop default/web": object{"status": object{"job": "web-x7k2p"}}, "Job default/zoo-a": object{},
	}
	other := State{
		"Job default/web-a1b2c": job("blue", "web-a1b2c"), "Job default/web-z9y8x": job("red", "web-z9y8x"), "Job default/web-fixed": job("red", "web-fixed"),
		"Shop default/web": object{"status": object{"job": "web-z9y8x"}},
	}
	var names RandomNames
	names.Add(one, other)
	if diff := cmp.Diff([]string{"Job default/web-*"}, names.Describe()); diff != "" {
		t.Errorf("what one run has too many is no random name: -want +got:\n%s", diff)
	}
	t.Run("Align", func(t *testing.T) {
		tests := map[string]struct {
			reason string
			edit   func(s State)
			want   []string
		}{
			"Same": {
				reason: "objects are matched by their contents, and references to them follow", edit: func(State) {},
				want: []string{"Job default/zoo-a: present without faults, absent here"},
			},
			"OneMore": {
				reason: "an object that is left behind is found", edit: func(s State) { s["Job default/web-mmmmm"] = job("red", "web-mmmmm") },
				want: []string{
					"Job default/web-<random 1>: absent without faults, present here", "Job default/zoo-a: present without faults, absent here",
					`Shop default/web: status.job: "web-x7k2p" without faults, "web-<random 1>" here`,
				},
			},
			"OneLess": {
				reason: "and so is one that is missing", edit: func(s State) { delete(s, "Job default/web-a1b2c") },
				want: []string{"Job default/web-q9d4m: present without faults, absent here", "Job default/zoo-a: present without faults, absent here"},
			},
			"OtherContent": {
				reason: "contents count", edit: func(s State) { s["Job default/web-a1b2c"] = job("blau", "web-a1b2c") },
				want: []string{`Job default/web-q9d4m: colour: "blue" without faults, "blau" here`, "Job default/zoo-a: present without faults, absent here"},
			},
		}
		for name, tc := range tests {
			t.Run(name, func(t *testing.T) {
				got := maps.Clone(other)
				tc.edit(got)
				if diff := cmp.Diff(tc.want, Difference(one, names.Align(got, one))); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			})
		}
	})
	t.Run("Simplify", func(t *testing.T) {
		for name, want := range map[string]string{"web-x7k2p": "web-*", "web-new": "web-*", "web-fixed": "web-fixed", "zoo-a": "zoo-a", "web": "web"} {
			if got := names.Simplify("Job", client.ObjectKey{Namespace: "default", Name: name}); got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
	})
	t.Run("ZeroValue", func(t *testing.T) {
		var none RandomNames
		if got := none.Simplify("Job", client.ObjectKey{Name: "web-x7k2p"}); got != "web-x7k2p" {
			t.Errorf("got %s", got)
		}
		if diff := cmp.Diff(other, none.Align(other, one)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRandomNamesOutside(t *testing.T) {
	users := func(names ...string) object {
		made := object{}
		for i, name := range names {
			made[name] = object{"role": []string{"admin", "guest"}[i]}
		}
		return made
	}
	item := func(name string) object { return object{"name": name, "size": "1"} }
	one := State{
		External:           object{"users": users("ann-x7k2p", "bob-q9d4m"), "hosts": []any{item("h-11111")}, "log": []any{"made h-11111", "made ann-x7k2p"}, "counts": object{"1": "a"}},
		"Shop default/web": object{"status": object{"account": "ann-x7k2p"}},
	}
	other := State{
		External:           object{"users": users("ann-a1b2c", "bob-z9y8x"), "hosts": []any{item("h-22222")}, "log": []any{"made h-22222", "made ann-a1b2c"}, "counts": object{"2": "a"}},
		"Shop default/web": object{"status": object{"account": "ann-a1b2c"}},
	}
	var names RandomNames
	names.Add(one, other)
	if diff := cmp.Diff([]string{"external: hosts.*", "external: log.*", "external: users.*"}, names.Describe()); diff != "" {
		t.Errorf("a short name may be a number: -want +got:\n%s", diff)
	}
	tests := map[string]struct {
		reason string
		users  object
		want   []string
	}{
		"Same":    {"names are matched by what they name", users("ann-a1b2c", "bob-z9y8x"), nil},
		"OneLess": {"one that is missing is found", users("ann-a1b2c"), []string{`external: users.bob-q9d4m.role: "guest" without faults, nothing here`}},
		"OneMore": {
			"and so is one that is left over", object{"ann-a1b2c": object{"role": "admin"}, "bob-z9y8x": object{"role": "guest"}, "bob-77777": object{"role": "guest"}},
			[]string{`external: users.<random 1>.role: nothing without faults, "guest" here`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := maps.Clone(other)
			got[External] = object{"users": tc.users, "hosts": []any{item("h-22222")}, "log": []any{"made h-22222", "made ann-a1b2c"}, "counts": object{"1": "a"}}
			if diff := cmp.Diff(tc.want, Difference(one, names.Align(got, one))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
