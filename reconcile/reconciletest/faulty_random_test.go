package reconciletest_test

import (
	"context"
	"crypto/rand"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// rack is a service outside of the cluster that has servers by their names.
type rack struct{ Servers map[string]server }

type server struct{ Motto string }

func (r *rack) State() any { return r }

// faultyRandom are operators that choose random names.
var faultyRandom = map[string]faulty{
	"RandomNameOutside": {
		reason: "the name of a server is stored after the server was created, so that a crash leaves one that nobody knows",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					name := s.Status.Account
					if name == "" {
						name = "i" + strings.ToLower(rand.Text()[:8])
					}
					record := func() error {
						if s.Status.Account == name {
							return nil
						}
						s.Status.Account = name
						return c.Status().Update(ctx, s)
					}
					if sound {
						if err := record(); err != nil {
							return ctrl.Result{}, err
						}
					}
					err := p.Effect(ctx, "create a server", func() error {
						p.External().(*rack).Servers[name] = server{s.Spec.Motto}
						return nil
					})
					return ctrl.Result{}, firstOf(err, record())
				}
			}, painted("red")...)
			s.External = func() reconciletest.External { return &rack{Servers: map[string]server{}} }
			return s
		},
		fault: reconciletest.Faults.CrashAfter,
		says: []string{
			"external: Servers.<random 1>.Motto: nothing without faults, \"red\" here",
			"11 runs: external Servers.<random N>.Motto is not empty here", "or a package variable): external: Servers.*",
		},
	},
}
