package corpus

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

// FuzzDeploymentsAndServices applies a random valid object to a real API server, and then another random one with the same name. It checks
// that applying again sends nothing, that a field which another writer changes is repaired, and that nothing of the first object is left
// after the second apply.
func FuzzDeploymentsAndServices(f *testing.F) {
	const seeds, length = 30, 600
	random := rand.New(rand.NewPCG(1, 2))
	for i := range seeds {
		data := make([]byte, (i+1)*length/seeds)
		for j := range data {
			data[j] = byte(random.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		env := newFuzzEnv(t)
		c := &choices{data: data}
		headless, recreate := c.yes(), c.yes() // both fields are immutable
		deployments := [2]client.Object{c.deployment("web", recreate), c.deployment("web", recreate)}
		services := [2]client.Object{c.service("web", headless), c.service("web", headless)}
		for _, pair := range [][2]client.Object{deployments, services} {
			s := fuzzed(t, env, pair[0])
			s.expect(t, s.want, apply.Created, 1, "the first object")
			s.expect(t, s.want, apply.Unchanged, 0, "the second apply")
			s.expect(t, s.want, apply.Unchanged, 0, "the third apply")
			s.changeSomeField(t, c)

			s.want = pair[1]
			_, _, err := s.apply(t.Context(), s.want)
			require.NoError(t, err, "another object over the first")
			s.compareWithNew(t, s.want, "what only the first object wanted", &counts{})
			s.expect(t, s.want, apply.Unchanged, 0, "the other object again")
			s.changeSomeField(t, c)
			s.refresh(t)
			s.expect(t, s.want, apply.Unchanged, 0, "in the end")
		}
	})
}

// newFuzzEnv returns a namespace in which no controller writes. The owner exists.
func newFuzzEnv(t *testing.T) *ownedtest.Server {
	t.Helper()
	cp := cluster(t)
	env := ownedtest.NewWithOwner(t, cp)
	require.NoError(t, cp.PauseControllers())
	t.Cleanup(func() { require.NoError(t, cp.ResumeControllers()) })
	return env
}

// fuzzed returns a test subject for an object that has not been applied yet.
func fuzzed(t *testing.T, env *ownedtest.Server, want client.Object) *subject {
	t.Helper()
	m := &manifest{name: t.Name(), refused: map[string]error{}}
	s := &subject{manifest: m, form: "typed", want: want, other: env.Other, owner: env.Owner, writes: &writeCounter{}, applier: apply.New()}
	want.SetNamespace(env.Namespace)
	counted, err := client.New(s.writes.wrap(env.Plane.Config()), client.Options{Mapper: env.Other.RESTMapper()})
	require.NoError(t, err)
	s.client = &upToDateClient{Client: counted}
	s.apiReader = counted
	return s
}

// changeSomeField changes one field as another writer, and requires that an apply repairs it.
func (s *subject) changeSomeField(t *testing.T, c *choices) {
	t.Helper()
	paths := fieldsOf(s.sent(t))
	at, before := paths[c.below(len(paths))], s.live(t)
	if change, _ := s.editToOtherValue(t, at, &immutableFields{}, &counts{}); change != nil {
		s.repair(t, []path{at}, before, &counts{})
	}
}
