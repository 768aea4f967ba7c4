package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/storageversion"
)

var scheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(cachev1.AddToScheme(scheme))
	utilruntime.Must(storev1alpha1.AddToScheme(scheme))
	ctrl.SetLogger(logr.Discard())
}

// operator is the operator of the example memcached in this process, with an additional reconciler that calls an API outside of the
// cluster. If tracing is not nil, it records spans. Its metrics are scraped.
type operator struct {
	end     context.CancelFunc
	done    sync.WaitGroup
	outside *outside
	mu      sync.Mutex
	errs    []error
}

// tracing has the provider that receives the spans of an operator.
type tracing struct{ provider *sdktrace.TracerProvider }

// wrapTransport adds a span for each request that a pass sends. Requests outside of a pass get none, such as watches and leases.
func (t *tracing) wrapTransport(transport http.RoundTripper) http.RoundTripper {
	return otelhttp.NewTransport(transport, otelhttp.WithTracerProvider(t.provider), otelhttp.WithFilter(func(r *http.Request) bool {
		return trace.SpanContextFromContext(r.Context()).IsValid()
	}))
}

func startOperator(access *rest.Config, faults *faults, tracing *tracing, metrics *database) (*operator, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	access.Wrap(faults.wrapTransport)
	if tracing != nil {
		access.Wrap(tracing.wrapTransport)
	}
	mgr, err := reconcile.NewManager(access, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         controller.Cache(),
		Logger:                        logr.Discard(),
		Metrics:                       metricsserver.Options{BindAddress: address},
		Controller:                    config.Controller{SkipNameValidation: new(true)},
		LeaderElection:                true,
		LeaderElectionID:              "memcached.cache.example.com",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	if err := controller.IndexPods(mgr.GetFieldIndexer()); err != nil {
		return nil, err
	}
	r := reconcile.For(mgr, controller.Steps()...)
	if tracing != nil {
		r.WithTracer(tracing.provider.Tracer("github.com/opblocks/opblocks"))
	}
	if err := r.Complete(); err != nil {
		return nil, err
	}
	if err := storageversion.Migrate(mgr, &cachev1.Memcached{}); err != nil {
		return nil, err
	}
	o := &operator{outside: newOutside()}
	if err := o.outside.setUp(mgr); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.end = cancel
	o.done.Go(func() { o.add(mgr.Start(ctx)) })
	o.done.Go(func() { o.add(scrapeUntil(ctx, newTarget("http://"+address+"/metrics"), metrics)) })
	return o, nil
}

func (o *operator) add(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.errs = append(o.errs, err)
}

// stop stops the operator and returns its errors. It may be called twice.
func (o *operator) stop() error {
	o.end()
	o.done.Wait()
	return errors.Join(o.errs...)
}

// freeAddress returns an address on this machine that no program listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// scrapeUntil scrapes at regular times until the context is done. It returns an error if no scrape succeeds.
func scrapeUntil(ctx context.Context, t *target, metrics *database) error {
	ticker := time.NewTicker(scrapesPause)
	defer ticker.Stop()
	var err error
	for {
		select {
		case <-ctx.Done():
			if t.seen == nil && err != nil {
				return fmt.Errorf("scrape: %w", err)
			}
			return nil
		case now := <-ticker.C: // the metrics server starts together with the manager
			err = t.scrape(ctx, metrics, now)
		}
	}
}

// faults can make requests of the operator fail.
type faults struct{ failing atomic.Bool }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wrapTransport answers writes of Deployments in the namespace failing with status 500, like an API server whose etcd is too slow.
func (f *faults) wrapTransport(transport http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if !f.failing.Load() || r.Method == http.MethodGet || !strings.Contains(r.URL.Path, "/apps/v1/namespaces/"+failing+"/deployments") {
			return transport.RoundTrip(r)
		}
		if r.Body != nil {
			r.Body.Close() //nolint:errcheck // as a transport does
		}
		const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: request timed out","code":500}`
		return &http.Response{
			StatusCode: http.StatusInternalServerError, Status: "500 Internal Server Error", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), Request: r,
		}, nil
	})
}
