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
