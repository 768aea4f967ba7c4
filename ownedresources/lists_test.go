package ownedresources

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/set"
)

// list returns a set with one ConfigMap for each name.
func list(names ...string) *ChildSet[*Shop] {
	s := Ensure(BuildEach(func(owner *Shop) (all []*configMap, err error) {
		for _, name := range names {
			all = append(all, constant(name, "")(owner))
		}
		return all, nil
	}))
	s.SetName("step")
	return s
}

func TestBuildEach(t *testing.T) {
	tests := map[string]struct {
		reason       string
		before, then []string
		sent         []string // beside reads
	}{
		"Grows":      {"Only what is new is created.", []string{"a"}, []string{"a", "b"}, []string{"POST configmaps"}},
		"Shrinks":    {"What falls out is pruned, also by a new process.", []string{"a", "b", "c"}, []string{"b"}, []string{"DELETE configmaps", "DELETE configmaps"}},
		"Empties":    {"An empty list prunes all.", []string{"a", "b"}, nil, []string{"DELETE configmaps", "DELETE configmaps"}},
		"Reordered":  {"The order in the list does not matter: names tell children apart.", []string{"a", "b"}, []string{"b", "a"}, nil},
		"StaysEmpty": {"Nothing is listed that was never written.", nil, nil, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			require.NoError(t, list(test.before...).Reconcile(t.Context(), env.Client, env.Owner))
			env.Requests.Sent()
			require.NoError(t, list(test.then...).Reconcile(t.Context(), env.Client, env.Owner))
			var writes []string
			for _, request := range env.Requests.Sent() {
				if !strings.HasPrefix(request, "GET ") {
					writes = append(writes, request)
				}
			}
			require.Equal(t, test.sent, writes, test.reason)
			for _, child := range append(test.before, test.then...) {
				want := false
				for _, kept := range test.then {
					want = want || kept == child
				}
				require.Equal(t, want, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: child}}), "%s: %s", test.reason, child)
			}
		})
	}
}

// Two children of the same name are an error before any request. Other children are still applied.
func TestBuildEachDuplicates(t *testing.T) {
	for _, others := range []int{1, 2 * set.NameIndexFrom} { // few and many children: many are compared with an index of the names
		t.Run(fmt.Sprint(others, "Others"), func(t *testing.T) {
			env := newEnvInMemory(t)
			names := []string{"twice"}
			for i := range others {
				names = append(names, fmt.Sprint("other-", i))
			}
			err := list(append(names, "twice")...).Reconcile(t.Context(), env.Client, env.Owner)
			require.ErrorContains(t, err, "ConfigMap "+env.Namespace+"/twice is desired twice: give each child a name of its own")
			require.Equal(t, 1, strings.Count(err.Error(), "desired twice"), "it is said once")
			require.ErrorContains(t, err, "ownedresources.list.", "it names the function that builds them")
			require.False(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: "twice"}}), "which of the two is meant is not known")
			for _, other := range names[1:] {
				require.True(t, env.Exists(t, &configMap{ObjectMeta: metav1.ObjectMeta{Name: other}}), other)
			}
		})
	}
}
