//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

// Package blog_test has a sound operator of real size in the style of kubebuilder: it creates a StatefulSet, Services, a Secret, a ConfigMap,
// a PodDisruptionBudget and Jobs, and has a finalizer for a DNS record.
package blog_test

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// dnsServer is a DNS server outside of the cluster. It has one host for each owner.
type dnsServer struct{ hosts map[string]string }

func (d *dnsServer) State() any { return maps.Clone(d.hosts) }

// processDNS is the client of the DNS server in one process.
type processDNS struct {
	*dnsServer
	process *reconciletest.Process
}

func (d processDNS) Host(ctx context.Context, owner string) (host string, err error) {
	err = d.process.Query(ctx, "host of "+owner, func() error {
		host = d.hosts[owner]
		return nil
	})
	return host, err
}

func (d processDNS) SetHost(ctx context.Context, owner, host string) error {
	return d.process.Effect(ctx, "set host of "+owner+" to "+host, func() error {
		d.hosts[owner] = host
		return nil
	})
}

func (d processDNS) Remove(ctx context.Context, owner string) error {
	return d.process.Effect(ctx, "remove host of "+owner, func() error {
		delete(d.hosts, owner)
		return nil
	})
}

func TestBlogSurvives(t *testing.T) {
	scheme, err := newScheme()
	require.NoError(t, err)
	blog := &Blog{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "news"},
		Spec:       BlogSpec{Version: "1.0", Replicas: 1, Host: "news.example.com", Title: "News"},
	}
	report := reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			mgr := p.Manager()
			r := &BlogReconciler{
				Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Scheme: mgr.GetScheme(),
				DNS: processDNS{p.External().(*dnsServer), p},
			}
			return r.SetupWithManager(mgr)
		},
		External: func() reconciletest.External { return &dnsServer{hosts: map[string]string{}} },
		Actions: []reconciletest.Action{
			reconciletest.Create(blog).Then(reconciletest.Ready(blog)),
			reconciletest.Change(blog, func(b *Blog) { b.Spec.Replicas, b.Spec.Title = 2, "All news" }).Then(reconciletest.Ready(blog)),
			reconciletest.Change(blog, func(b *Blog) { b.Spec.Version, b.Spec.Host = "2.0", "new.example.com" }).Then(reconciletest.Ready(blog)),
			reconciletest.Delete(blog),
		},
		Options: reconciletest.Options{Limit: 100},
	}) // only a sample: all 645 faults would take a minute
	assert.NotEmpty(t, report.Survived)
}
