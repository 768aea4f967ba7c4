package memoryserver

import (
	"fmt"
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

	mu       sync.Mutex
	tables   map[schema.GroupVersionKind]*table
	history  []*change // of all kinds; the change to revision r is history[r-firstRevision-1], nil if skipped
	issued   uint64    // number of UIDs and name suffixes issued
	watchers watchers
}

// New returns a server whose only objects are the namespaces "default" and "kube-system". It serves the built-in kinds
// and those of the custom resource definitions in the options. The scheme has the Go types that its clients accept.
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
	server := &Server{scheme: scheme, kinds: kinds, tables: map[schema.GroupVersionKind]*table{}}
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
	}
	return t
}

// newUID returns the same sequence of UIDs in each run, so that a run can be repeated. They differ in their first
// characters and in their last, as random ones do: some operators shorten them.
func (s *Server) newUID() types.UID {
	const spread = 0x9e3779b1 // an odd number near 2^32 divided by the golden ratio, so that neighbours look different
	s.issued++
	return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", uint32(s.issued*spread), s.issued))
}

// suffixAlphabet is the real server's. It has no vowels, so that no suffix spells a word.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// newSuffix returns what is appended to generateName: five characters, as from the real server, but in order.
func (s *Server) newSuffix() string {
	const length, spread = 5, 7_368_787 // a prime near half of 27^5, so that neighbours look different
	s.issued++
	n := s.issued * spread
	suffix := make([]byte, length)
	for i := range suffix {
		suffix[i] = suffixAlphabet[n%uint64(len(suffixAlphabet))]
		n /= uint64(len(suffixAlphabet))
	}
	return string(suffix)
}
