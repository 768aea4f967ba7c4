package memoryserver

import (
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// Server is an API server in memory. It and its clients are safe for concurrent use.
type Server struct {
	scheme *runtime.Scheme
	kinds  *kinds

	earlier *Server // whose results this one reuses; nil: none

	mu       sync.Mutex
	differs  bool // at some revision the earlier server stored something else
	tables   map[schema.GroupVersionKind]*table
	order    []*table  // by kind
	history  []*change // the changes of all kinds; the change to revision r is history[r-firstRevision-1], nil if skipped
	watchers watchers

	collected int64 // the revision at which the garbage collector had nothing left to do

	generated map[generatedName]uint64 // the number of the last name
	skipped   uint64                   // numbers that are not used any more, by Advance
}

// New returns a server whose only objects are the namespaces "default" and "kube-system". It serves the built-in kinds
// and the kinds of the custom resource definitions in the options. The scheme has the Go types that its clients accept.
func New(scheme *runtime.Scheme, options ...Option) (*Server, error) {
	var s settings
	for _, option := range options {
		if err := option(&s); err != nil {
			return nil, err
		}
	}
	kinds, err := kindsWith(s.definitions)
	if err != nil {
		return nil, err
	}
	server := &Server{scheme: scheme, kinds: kinds, earlier: s.earlier, tables: map[schema.GroupVersionKind]*table{}, generated: map[generatedName]uint64{}}
	server.createNamespaces("default", "kube-system")
	return server, nil
}

// Client returns a client without a cache. Each of its requests is done when the call returns.
func (s *Server) Client() client.WithWatch { return &liveClient{server: s} }

// kind returns a kind that the server has. The error satisfies meta.IsNoMatchError.
func (s *Server) kind(gvk schema.GroupVersionKind) (*kind.Kind, error) {
	if k := s.kinds.find(gvk); k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("the server in memory has no kind %s: give it the custom resource definition, or use a version that it serves: %w",
		gvk.Kind, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}})
}

// table returns the objects of a kind. The caller holds the lock.
func (s *Server) table(k *kind.Kind) *table {
	t := s.tables[k.GVK]
	if t == nil {
		t = &table{kind: k, records: map[client.ObjectKey]*record{}}
		s.tables[k.GVK] = t
		s.order = append(s.order, t)
		slices.SortFunc(s.order, compareKinds)
	}
	return t
}

// The values that the server generates depend on the object's kind and name, and on how many of that name there were. They do not
// depend on what else was created before, so two runs that create the same objects in another order have the same values.

// newUID returns the UID of a new object. UIDs differ in their first characters as in their last, as random ones do: some
// operators shorten them. The object of a dry run has another one than the object that is created.
func (s *Server) newUID(k *kind.Kind, key client.ObjectKey, dryRun bool) types.UID {
	n := uint64(0)
	if r := s.table(k).records[key]; r != nil {
		n = r.deletions()
	}
	if dryRun {
		n = ^n
	}
	hash := hashOf(k, key.String(), n)
	return types.UID(fmt.Sprintf("%08x-%04x-4000-8000-%012x", uint32(hash), uint16(hash>>32), mixed(hash)>>16))
}

// suffixAlphabet is the real server's. It has no vowels, so that no suffix spells a word.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// newSuffix returns what is appended to generateName: five characters, as from the real server. A prefix gets a suffix
// for the second time only after all others.
func (s *Server) newSuffix(k *kind.Kind, namespace, prefix string) string {
	const length, spread = 5, 7_368_787 // a prime near half of 27^5, so that neighbours look different
	id := generatedName{k, namespace, prefix}
	s.generated[id] = max(s.generated[id], s.skipped) + 1
	n := hashOf(k, namespace+"/"+prefix, 0)>>16 + s.generated[id]*spread
	suffix := make([]byte, length)
	for i := range suffix {
		suffix[i] = suffixAlphabet[n%uint64(len(suffixAlphabet))]
		n /= uint64(len(suffixAlphabet))
	}
	return string(suffix)
}

// generatedName is what the names have in common that are generated from one prefix.
type generatedName struct {
	kind              *kind.Kind
	namespace, prefix string
}

// hashOf returns a hash of a kind, a name and a number.
func hashOf(k *kind.Kind, name string, n uint64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %s %d", k.GVK.GroupKind(), name, n) // it returns no error
	return mixed(h.Sum64())
}

// mixed spreads each bit of a hash over all bits of another one. It is the last step of SplitMix64.
func mixed(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
