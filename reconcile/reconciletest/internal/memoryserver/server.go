package memoryserver

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/crd"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/webhook"
)

// Server is an API server in memory. The server and its clients may be used concurrently.
type Server struct {
	scheme *runtime.Scheme
	kinds  *kinds

	hooks       []webhook.Hook          // the webhooks that are called for writes
	convertible map[*kind.Versions]bool // the kinds that the operator's webhook converts, because their Go types can convert themselves

	mu       sync.Mutex // protects the fields below
	store    store
	suffixes suffixes
	dryRuns  map[generatedName]uint64 // how many dry runs have created each name

	fieldManagers map[*kind.Kind]map[string]*managedfields.FieldManager // see [Server.fieldManager]

	webhooks  webhook.Caller
	admits    bool  // webhooks are called for writes
	collected int64 // the revision at which the garbage collector found nothing to do
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
	convertible, err := webhookConverted(scheme, kinds)
	if err != nil {
		return nil, err
	}
	server := &Server{
		scheme: scheme, kinds: kinds, hooks: s.hooks, convertible: convertible, store: store{tables: map[schema.GroupVersionKind]*table{}},
		suffixes: suffixes{last: map[generatedName]uint64{}}, dryRuns: map[generatedName]uint64{}, fieldManagers: map[*kind.Kind]map[string]*managedfields.FieldManager{},
	}
	if s.earlier != nil {
		server.store.earlier = &s.earlier.store
	}
	server.createNamespaces("default", "kube-system")
	return server, nil
}

// Client returns a client without a cache. Each of its requests is done when the call returns.
func (s *Server) Client() client.WithWatch { return s.NotingClient(func(schema.GroupVersionKind) {}) }

// NotingClient is like Client, and calls note with the kind of each request before it carries out the request.
func (s *Server) NotingClient(note func(schema.GroupVersionKind)) client.WithWatch {
	return &liveClient{server: s, note: note}
}

// ServeWebhooks sets the handlers of the webhooks that an operator has registered, by their paths.
func (s *Server) ServeWebhooks(handlers *http.ServeMux) { s.webhooks.Serve(handlers) }

// AdmitByWebhooks makes the server call webhooks for writes from now on.
func (s *Server) AdmitByWebhooks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admits = true
}

// WatchWebhooks starts to record whether a write calls a webhook, for WebhookCalled. If broken is not nil, each webhook fails with it until
// WebhookCalled is called.
func (s *Server) WatchWebhooks(broken error) { s.webhooks.Watch(broken) }

// WebhookCalled reports whether a write has called a webhook since WatchWebhooks was called.
func (s *Server) WebhookCalled() bool { return s.webhooks.Called() }

// IsReview reports whether a server has called a webhook with this context.
func IsReview(ctx context.Context) bool { return webhook.IsReview(ctx) }

// MissingWebhook returns an error if a request needed a webhook that the operator has not registered. The error says what to do.
func (s *Server) MissingWebhook() error { return s.webhooks.Missing() }

// kind returns the kind with this GroupVersionKind. If the server does not have it, the error satisfies meta.IsNoMatchError.
func (s *Server) kind(gvk schema.GroupVersionKind) (*kind.Kind, error) {
	if k := s.kinds.find(gvk); k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("the server in memory has no kind %s: give it the custom resource definition, or use a version that it serves: %w",
		gvk.Kind, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}})
}

type settings struct {
	hooks       []webhook.Hook
	definitions []*crd.Definition
	earlier     *Server
}

// Option is [CRDs], [Webhooks] or [Following].
type Option func(*settings) error

// CRDs adds the custom resource definitions in YAML or JSON files. If a path is a folder, CRDs reads the files directly
// in it. Other documents are ignored. It is an error if a path has no custom resource definition.
func CRDs(paths ...string) Option {
	return func(s *settings) error {
		for _, path := range paths {
			definitions, err := crd.Read(path)
			if err != nil {
				return err
			}
			s.definitions = append(s.definitions, definitions...)
		}
		return nil
	}
}
